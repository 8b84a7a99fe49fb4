"""Who looks on: at each broker by its own door, past the proxies, and at the tree.

A `Watcher` asks one broker what it says of the partitions it leads and of the group it coordinates; a `Prober` writes
to whatever that broker takes, so that who acknowledged is known, also where clients would have gone elsewhere; the
`StateWatcher` reads the state znodes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from compat_tests.faults.clients.writers import Task
from compat_tests.faults.history import (
    Acknowledged,
    CommitLook,
    FollowerLook,
    History,
    Look,
    Partition,
    Record,
    StateLook,
)
from compat_tests.overload.raw import Raw
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import build_batch

LATEST, EARLIEST = -1, -2
CONSUMER, DEBUGGING = -1, -2
LIST_OFFSETS_VERSION = 6
OFFSET_FETCH_VERSION = 7
OFFSET_COMMIT_VERSION = 6
GROUP_TOPIC = "__consumer_offsets"
GROUP_PARTITIONS = 2
STEPS_PER_FALSE_COMMIT = 8
PRODUCE_VERSION = 8
PAUSE_S = 0.15
RESPONSE_S = 3.0
PROBE_MS = 1_500
NOT_THERE = (OSError, EOFError)

T = TypeVar("T")
Offsets = dict[Partition, tuple[int, int]]
"""By partition (offset, leader epoch)."""


class AtBroker(Task):
    """One connection to one broker, made again whenever it is lost."""

    def __init__(self, name: str, history: History, broker: int, port: int) -> None:
        super().__init__(f"{name}-{broker}", history)
        self.broker = broker
        self._port = port

    def work(self) -> None:
        while not self.stopping.wait(PAUSE_S):
            with suppress(*NOT_THERE), Raw(("127.0.0.1", self._port), RESPONSE_S) as connection:
                while not self.stopping.wait(PAUSE_S):
                    self.step(connection)

    def step(self, connection: Raw) -> None:
        raise NotImplementedError


class GroupWatch(NamedTuple):
    """The group to look at, and a member of it, in whose name commits are tried that must be refused."""

    group: str
    partitions: Sequence[Partition]
    member_id: Callable[[], str | None]

    @property
    def coordinated_at(self) -> Partition:
        return GROUP_TOPIC, java_hash(self.group) % GROUP_PARTITIONS


class AsCoordinator(NamedTuple):
    """When a broker reported something as a group's coordinator, and the leader epoch that it was elected in."""

    time_ns: int
    leader_epoch: int


def as_coordinator(connection: Raw, group: GroupWatch, ask: Callable[[], T]) -> tuple[T, AsCoordinator | None]:
    """What the broker reported belongs to the epoch that it was elected in before and after, if that is one."""
    place = group.coordinated_at
    before = ask_offsets(connection, [place])
    response = ask()
    now_ns = time.monotonic_ns()
    after = ask_offsets(connection, [place])
    if place not in before or place not in after or before[place][1] != after[place][1]:
        return response, None
    return response, AsCoordinator(now_ns, before[place][1])


def look_at_commits(connection: Raw, group: GroupWatch) -> Iterator[tuple[AsCoordinator, Partition, int]]:
    """Each committed offset, if the broker is the coordinator."""
    wanted = [
        OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[index for _, index in places])
        for topic, places in _by_topic(group.partitions).items()
    ]
    request = OffsetFetchRequest(group_id=group.group, topics=wanted)
    response, look = as_coordinator(connection, group, lambda: connection.ask(request, OFFSET_FETCH_VERSION))
    if response.error_code != ErrorCode.NONE or look is None:
        return
    for topic in response.topics:
        for found in topic.partitions:
            if found.error_code == ErrorCode.NONE:
                yield look, (topic.name, found.partition_index), found.committed_offset


def false_commit(group: str, member_id: str, epoch: int, partitions: Sequence[Partition]) -> OffsetCommitRequest:
    """Of offset 0 in these partitions."""
    topics = [
        OffsetCommitRequest.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
                for _, index in places
            ],
        )
        for topic, places in _by_topic(partitions).items()
    ]
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=epoch, member_id=member_id, topics=topics)


def is_accepted(response: Any) -> bool:
    """Whether any partition of an OffsetCommit was."""
    return any(done.error_code == ErrorCode.NONE for topic in response.topics for done in topic.partitions)


class Watcher(AtBroker):
    def __init__(
        self, history: History, broker: int, port: int, partitions: Sequence[Partition], group: GroupWatch
    ) -> None:
        super().__init__("watcher", history, broker, port)
        self._partitions = partitions
        self._group = group
        self._steps = 0

    def step(self, connection: Raw) -> None:
        self._look_at_partitions(connection)
        self._look_at_commits(connection)
        self._steps += 1
        if self._steps % STEPS_PER_FALSE_COMMIT == 0:
            self._commit_falsely(connection)

    def _look_at_partitions(self, connection: Raw) -> None:
        """First the high watermark: the end asked for afterwards in the same epoch is not below it. The log start last:
        it was asked for after the time of the look.
        """
        high = ask_offsets(connection, self._partitions)
        asked_ns = time.monotonic_ns()
        ends = ask_offsets(connection, self._partitions, LATEST, DEBUGGING)
        reported_ns = time.monotonic_ns()
        starts = ask_offsets(connection, self._partitions, EARLIEST)
        for partition, (end, epoch) in ends.items():
            high_watermark, leader_epoch = high.get(partition, (-1, -1))
            if partition not in high:
                look = FollowerLook(asked_ns, reported_ns, self.broker, end)
                self.history.follower_looks[partition].append(look)
            elif epoch == leader_epoch and partition in starts:
                start, _ = starts[partition]
                self.history.looks[partition].append(Look(reported_ns, self.broker, epoch, start, high_watermark, end))

    def _look_at_commits(self, connection: Raw) -> None:
        for look, partition, offset in look_at_commits(connection, self._group):
            found = CommitLook(look.time_ns, self.broker, look.leader_epoch, offset)
            self.history.commit_looks[partition].append(found)

    def _commit_falsely(self, connection: Raw) -> None:
        """As one who is no member, and as a member of a generation that never was: neither may commit."""
        for member_id, generation in (("no-one", 1), (self._group.member_id() or "no-one", 0)):
            request = false_commit(self._group.group, member_id, generation, self._group.partitions)
            if is_accepted(connection.ask(request, OFFSET_COMMIT_VERSION)):
                self.history.failures.append(f"{self.broker} took a commit of {member_id} in generation {generation}")


def ask_offsets(
    connection: Raw, partitions: Sequence[Partition], timestamp: int = LATEST, replica_id: int = CONSUMER
) -> Offsets:
    """Of those partitions that the broker reports; a consumer's latest is the high watermark, asked of the leader."""
    request = ListOffsetsRequest(
        replica_id=replica_id,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                    for name, index in partitions
                    if name == topic
                ],
            )
            for topic in _topics(partitions)
        ],
    )
    response = connection.ask(request, LIST_OFFSETS_VERSION)
    return {
        (topic.name, found.partition_index): (found.offset, found.leader_epoch)
        for topic in response.topics
        for found in topic.partitions
        if found.error_code == ErrorCode.NONE
    }


class Prober(AtBroker):
    """One record after the other into each partition, acks=all, never tried again."""

    def __init__(self, history: History, broker: int, port: int, partitions: Sequence[Partition]) -> None:
        super().__init__("prober", history, broker, port)
        self._partitions = partitions
        self._number = 0

    def step(self, connection: Raw) -> None:
        for partition in self._partitions:
            record = Record(self.name, self._number)
            self._number += 1
            sent_ns = time.monotonic_ns()
            response = self._produce(connection, partition, record.value(40))
            if response.error_code == ErrorCode.NONE:
                reported = Acknowledged(record, response.base_offset, sent_ns, time.monotonic_ns(), self.broker)
                self.history.acknowledged[partition].append(reported)
            else:
                self.history.refused[record] = ErrorCode(response.error_code).name

    def _produce(self, connection: Raw, partition: Partition, value: str) -> Any:
        topic, index = partition
        batch = bytes(build_batch([(None, value.encode(), int(time.time() * 1000))]))
        data = ProduceRequest.PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=PROBE_MS,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        return connection.ask(request, PRODUCE_VERSION).responses[0].partition_responses[0]


class StateWatcher(Task):
    """The state znodes; `latest` is what was seen last, also while ZooKeeper is away."""

    def __init__(self, history: History, zookeeper: str, partitions: Sequence[Partition]) -> None:
        super().__init__("state watcher", history)
        self.latest: dict[Partition, StateLook] = {}
        self._partitions = partitions
        self._tree = KazooClient(zookeeper, timeout=10.0)

    def work(self) -> None:
        with suppress(KazooTimeoutError):
            self._tree.start(timeout=30)
        while not self.stopping.wait(PAUSE_S / 2):
            for partition in self._partitions:
                with suppress(KazooException, KazooTimeoutError):
                    self._look(partition)
        self._tree.stop()
        self._tree.close()

    def _look(self, partition: Partition) -> None:
        asked_ns = time.monotonic_ns()
        data, stat = self._tree.get(f"/brokers/topics/{partition[0]}/partitions/{partition[1]}/state")
        found = json.loads(data)
        look = StateLook(
            asked_ns,
            time.monotonic_ns(),
            stat.version,
            found["leader"],
            found["leader_epoch"],
            found["controller_epoch"],
            frozenset(found["isr"]),
        )
        self.history.states[partition].append(look)
        self.latest[partition] = look


_HEARD = re.compile(
    r"\[([-\d]+ [:\d]+),(\d{3})\] INFO .*"
    r"(?:\[Partition (\S+)-(\d+) broker=\d+\] ISR updated to .* and version updated to"
    r"|Leader (\S+)-(\d+) with .* starts at leader epoch .* with partition epoch) (\d+)"
)


def heard_states(log: str) -> Iterator[tuple[Partition, int, int]]:
    """Partition, version of its state and monotonic time of each that a leader took up, by what either broker logs."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    for line in log.splitlines():
        if found := _HEARD.match(line):
            at, ms, changed, changed_index, led, led_index, version = found.groups()
            at_ns = int(time.mktime(time.strptime(at, "%Y-%m-%d %H:%M:%S"))) * 10**9 + int(ms) * 10**6
            yield (changed or led, int(changed_index or led_index)), int(version), at_ns - offset_ns


def _topics(partitions: Collection[Partition]) -> list[str]:
    return list(dict.fromkeys(topic for topic, _ in partitions))


def _by_topic(partitions: Collection[Partition]) -> dict[str, list[Partition]]:
    return {topic: [place for place in partitions if place[0] == topic] for topic in _topics(partitions)}


def java_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())`, by which a group finds its partition."""
    number = 0
    for unit in text.encode("ascii"):
        number = (31 * number + unit) & 0xFFFFFFFF
    return abs(number - (number >> 31 << 32)) & 0x7FFFFFFF
