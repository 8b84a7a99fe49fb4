"""`make bench-heartbeats`: the processor time of a heartbeat of the new protocol (KIP-848) that changes nothing.

    python -m compat_tests.bench.heartbeats [--members 10000] [--rounds 5]

A broker runs in this process on a temporary directory. Each figure is of whole requests, from the frame that a client
sent to the frame that it gets, one of each member in turn: of 10 000 members of one group, which share 1 000
partitions, and of 10 000 groups of one member each. The least of the rounds counts, so that a busy machine matters
little. Exits with 1 where one is above 60 µs, or where heartbeats have written a record.
`tests/core/group/test_many.py` shows that none does, without a clock.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

MICROSECONDS_MAX = 60.0
VERSION = 1
FRAME_SIZE = 4
SETTLING_ROUNDS = 4
PARTITIONS_MAX = 1_000
TOPIC = "many"
INTERVAL = "group.consumer.assignment.interval.ms"
HOUR_MS = str(60 * 60 * 1000)
KEYS = {
    "broker.id": "0",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.replication.factor": "1",
    # members are silent while the others join
    "group.consumer.max.session.timeout.ms": HOUR_MS,
    "group.consumer.session.timeout.ms": HOUR_MS,
    "group.consumer.max.assignment.interval.ms": HOUR_MS,
    # 10 000 members of one address are more than an address without a login may have
    **{f"kpybroker.max.state.bytes{of}": str(1 << 30) for of in ("", ".per.ip", ".per.principal")},
}


class Clients:
    """Members, each with its group and epoch, over one connection."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._connection = PlainConnectionInfo()

    async def ask(self, key: ApiKey, version: int, request: Any, response_class: type[Any]) -> Any:
        received = await self._broker.dispatcher.respond(_frame(key, version, request), self._connection)
        frame = received.read()[FRAME_SIZE:]
        _, position = parse_response_header(frame, key, version)
        return decode(response_class, frame[position:], version)

    async def beat(self, group_id: str, member_id: str, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
        response = await self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, VERSION, request, ConsumerGroupHeartbeatResponse)
        assert response.error_code == ErrorCode.NONE, f"{ErrorCode(response.error_code).name} {response.error_message}"
        return response

    async def join(self, group_id: str, member_id: str) -> Any:
        return await self.beat(
            group_id, member_id, 0, rebalance_timeout_ms=60_000, subscribed_topic_names=[TOPIC], topic_partitions=[]
        )

    async def ready(self, group_id: str) -> None:
        """Wait until the group has a coordinator that has loaded."""
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
        while True:
            found = await self.ask(ApiKey.FIND_COORDINATOR, 4, request, FindCoordinatorResponse)
            if not found.coordinators[0].error_code and not self._broker.groups.partitions.is_loading:
                return
            await trio.sleep(0.01)

    def spent(self, frames: Sequence[bytearray]) -> float:
        """Seconds of processor time of one request of each."""
        respond, connection = self._broker.dispatcher.respond_now, self._connection
        begin = time.thread_time()
        for frame in frames:
            outcome = respond(memoryview(frame), connection)
            assert isinstance(outcome, Response)
            outcome.sent()
        return time.thread_time() - begin


def _frame(key: ApiKey, version: int, request: Any) -> bytearray:
    return bytearray(encode_request_header(RequestHeader(key, version, 1, "many")) + encode(request, version))


def heartbeat_frame(group_id: str, member_id: str, epoch: int) -> bytearray:
    request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)
    return _frame(ApiKey.CONSUMER_GROUP_HEARTBEAT, VERSION, request)


async def one_group(broker: Broker, clients: Clients, count: int) -> list[bytearray]:
    """All its members have joined, and have what they are to have."""
    names = [f"member-{number}" for number in range(count)]
    await clients.ready("one")
    # The first member is assigned everything when it joins; it gives that up once the rest has a target.
    broker.config.set_dynamic({}, {INTERVAL: HOUR_MS})
    epochs = {name: (await clients.join("one", name)).member_epoch for name in names}
    broker.config.set_dynamic({}, {INTERVAL: "0"})
    owned: dict[str, list[ConsumerGroupHeartbeatRequest.TopicPartitions]] = {name: [] for name in names}
    for _ in range(SETTLING_ROUNDS):
        for name in names:
            response = await clients.beat("one", name, epochs[name], topic_partitions=owned[name])
            epochs[name] = response.member_epoch
            if response.assignment is not None:
                owned[name] = [
                    ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=one.topic_id, partitions=one.partitions)
                    for one in response.assignment.topic_partitions
                ]
            await trio.lowlevel.checkpoint()
    counts = [sum(len(topic.partitions) for topic in topics) for topics in owned.values()]
    assert len(set(epochs.values())) == 1, "not all members follow the same target"
    assert sum(counts) == broker.metadata.partition_count(TOPIC)
    assert max(counts) - min(counts) <= 1, f"{min(counts)} to {max(counts)} partitions"
    return [heartbeat_frame("one", name, epochs[name]) for name in names]


async def many_groups(clients: Clients, count: int) -> list[bytearray]:
    """Each has one member, which has the whole of a topic."""
    frames = []
    for number in range(count):
        group_id = f"group-{number}"
        epoch = (await clients.join(group_id, "member")).member_epoch
        frames.append(heartbeat_frame(group_id, "member", epoch))
    return frames


def written(broker: Broker) -> int:
    """The records of all groups."""
    partitions = range(broker.groups.partitions.partition_count)
    return sum(
        broker.replicas.hosted(GROUP_METADATA_TOPIC_NAME, index).online_log().log_end_offset for index in partitions
    )


def measured(broker: Broker, clients: Clients, frames: Sequence[bytearray], rounds: int) -> float:
    """The least µs of a heartbeat over the rounds. AssertionError if one has written something."""
    before = written(broker)
    spent = min(clients.spent(frames) for _ in range(rounds + 1))
    assert written(broker) == before, "a heartbeat that changes nothing has written a record"
    return spent / len(frames) * 1e6


async def measure(directory: str, count: int, rounds: int) -> bool:
    config = BrokerConfig({**KEYS, "log.dirs": directory, "num.partitions": str(min(count, PARTITIONS_MAX))})
    met = True
    print("| heartbeats that change nothing | µs of CPU |\n| --- | --- |")
    async with Broker.open(config) as broker:
        await broker.topics.auto_create([TOPIC])
        clients = Clients(broker)
        for name, frames in (
            (f"{count:,} members of one group", await one_group(broker, clients, count)),
            (f"{count:,} groups of one member", await many_groups(clients, count)),
        ):
            taken = measured(broker, clients, frames, rounds)
            is_met = taken <= MICROSECONDS_MAX
            met = met and is_met
            print(f"| {name} | {taken:.1f}{'' if is_met else ' **over**'} |")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--members", type=int, default=10_000, help="members, and groups [10000]")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds [5]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kpybroker-heartbeats-") as directory:
        return 0 if trio.run(measure, directory, options.members, options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
