"""Hosted brokers with their levers in this process: connections and files are real or in memory, methods are called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.network.transport import socket_transport
from kpybroker.config.broker import BrokerConfig
from kpybroker.control.catalogue import all_methods
from kpybroker.control.hosted import Hosted
from kpybroker.control.levers.leadership import active_controller
from kpybroker.control.levers.topology import Topology
from kpybroker.control.plan import BrokerPlan
from kpybroker.control.start import equip
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.hosted import running
from tests.support.brokers.running_broker import ask, settings
from tests.support.network.memory_transport import MemoryTransport
from tests.support.storage.batches import batch

WAIT_S_MAX, POLL_S = 60, 0.002


class HostedCluster:
    """`call` a method of the channel, and ask brokers as a client does, without a connection."""

    def __init__(self, hosted: Hosted) -> None:
        self.hosted = hosted
        self.topology = hosted.part(Topology)
        self._methods = all_methods()

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self._methods[method].call(self.hosted, arguments)

    def __getitem__(self, broker_id: int) -> Broker:
        return self.hosted.broker(broker_id)

    @property
    def controller(self) -> Broker:
        found = active_controller(self.hosted.brokers.values())
        assert found is not None
        return found

    async def create_topic(self, name: str, *assignments: list[int], **configs: str) -> None:
        """A partition for each list of replicas; returns when every broker knows it."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                for index, replicas in enumerate(assignments)
            ],
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        response = await ask(self.controller, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
        assert response.topics[0].error_code == 0, response
        for broker in self.hosted.brokers.values():
            assert await broker.metadata.wait_until(lambda known: name in known.topics, 60)

    async def produce(
        self, topic: str, *values: bytes, broker: int, acks: int = -1, timeout_ms: int = 60_000, version: int = 9
    ) -> int:
        """The error code."""
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch(*values)))
        topic_data = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topic_data)
        response = await ask(self[broker], request, version)
        code: int = response.responses[0].partition_responses[0].error_code
        return code

    async def records(self, topic: str, *, broker: int) -> bytes:
        """What a consumer gets of partition 0 from its begin, without waiting."""
        asked = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_bytes=1 << 20, session_epoch=-1, topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])]
        )
        response = await ask(self[broker], request, 12)
        return bytes(response.responses[0].partitions[0].records)

    async def leader(self, topic: str, *, other_than: int = -1) -> int:
        """The broker that leads partition 0, once it knows that it does."""

        def leading() -> list[int]:
            hosted = [(broker, broker.replicas.partition(topic, 0)) for broker in self.hosted.brokers.values()]
            return [b.node_id for b, p in hosted if p is not None and p.leader is not None and b.node_id != other_than]

        await eventually(lambda: len(leading()) == 1, f"a leader other than {other_than}")
        return leading()[0]

    def state(self, topic: str, partition: int = 0) -> tuple[int, int, set[int]]:
        """Leader, leader epoch and ISR as the controller has sent them; during an election, as some broker knows."""
        brokers = self.hosted.brokers.values()
        known = active_controller(brokers) or next(iter(brokers))
        state = known.metadata.partition(topic, partition)
        assert state is not None
        return state.leader, state.leader_epoch, set(state.isr)

    def leader_known_by(self, broker: int, topic: str) -> int:
        found = self[broker].metadata.leader_and_epoch(topic, 0)
        assert found is not None
        return found[0]

    def log_end(self, topic: str, *, broker: int) -> int:
        return self[broker].replicas.hosted(topic, 0).online_log().log_end_offset

    def high_watermark(self, topic: str, *, broker: int) -> int:
        return self[broker].replicas.hosted(topic, 0).high_watermark


async def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = trio.current_time() + WAIT_S_MAX
    while not condition():
        assert trio.current_time() < deadline, f"not within {WAIT_S_MAX} s: {what}"
        await trio.sleep(POLL_S)


@asynccontextmanager
async def hosted_cluster(
    directory: Path, count: int = 3, *, on_sockets: bool = False, **keys: str
) -> AsyncIterator[HostedCluster]:
    """Brokers 0, 1, ... Keys are Kafka's with `.` written as `_`, and `{}` in a value is the broker. Without sockets,
    connections are in memory."""
    plans = []
    for broker_id in range(count):
        (directory / str(broker_id)).mkdir(parents=True, exist_ok=True)
        own = {"broker_id": str(broker_id), "controlled_shutdown_retry_backoff_ms": "1"}
        own["replica_fetch_wait_max_ms"] = "100"
        own_keys = {name: value.replace("{}", str(broker_id)) for name, value in keys.items()}
        port = 0 if on_sockets else 9092 + broker_id
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        plans.append(BrokerPlan.of(BrokerConfig(settings(directory / str(broker_id), **own, **listeners, **own_keys))))
    memory = MemoryTransport()
    hosted = Hosted(plans, directory)
    hosted._parts[Topology] = Topology(socket_transport if on_sockets else lambda _: memory)
    equip(hosted)
    async with running(hosted):
        try:
            yield HostedCluster(hosted)
        finally:
            with trio.CancelScope(shield=True):
                await hosted.reset()
