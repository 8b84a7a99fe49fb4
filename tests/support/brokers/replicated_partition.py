"""One partition on three brokers as values: real `Partition`s on real logs in memory, and messages that can be delayed.

`World` plays everything around a partition: the controller's state and orders, requests for ISR changes, fetches
and their responses on their way, clocks. A broker that dies is killed, not unplugged: its files are as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from kpybroker.broker.loop.offset_waiters import OffsetWaiter
from kpybroker.broker.replication.fetch_service import diverging_epoch
from kpybroker.broker.replication.partition import Partition
from kpybroker.core.replication.fetch_session import CachedPartition, FetchSession
from kpybroker.core.replication.follower import FetchState, FollowerLog, initial_state, out_of_range, truncation
from kpybroker.core.replication.leader_epochs import UNDEFINED_EPOCH, EpochEndOffset
from kpybroker.core.replication.replica import IsrChange
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.settings import LogCheckpoints
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchResponse
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records
from tests.support.storage.batches import batch, log_config
from tests.support.storage.lossy_files import LossyFiles

IDS = (1, 2, 3)
MIN_ISR = 2
LAG_MS = 1000
TOPIC_ID = bytes(15) + b"t"
BATCH_BYTES = len(batch(b"%04d" % 0))
VERSION = 9


class Record(NamedTuple):
    epoch: int
    value: int


class Order(NamedTuple):
    """The controller's state of the partition; what a LeaderAndIsr carries to a broker."""

    leader: int
    epoch: int
    partition_epoch: int
    isr: frozenset[int]


@dataclass(frozen=True, eq=False)
class Fetch:
    """A follower's request in flight."""

    follower: int
    leader: int
    state: FetchState
    asked: CachedPartition


@dataclass(frozen=True, eq=False)
class Response:
    fetch: Fetch
    error: ErrorCode
    data: FetchResponse.PartitionData
    records: bytes = b""


@dataclass(eq=False)
class Produced:
    """A record that a producer waits for with acks=all."""

    value: int
    offset: int
    leader: Partition
    waiter: OffsetWaiter


class Node:
    """One broker: what survives a kill (files, two checkpoints), and what does not."""

    def __init__(self, broker_id: int, world: World) -> None:
        self.id = broker_id
        self.files = LossyFiles()
        self.checkpoint = 0
        self.is_up = True
        self.following: FetchState | None = None
        self._world = world
        self._cached: tuple[tuple[int, int, int], dict[int, Record]] = ((-1, -1, -1), {})
        self._load(0)

    def _load(self, log_start_offset: int) -> None:
        self.log = Log(
            self.files,
            f"/{self.id}/t-0",
            log_config(min_insync_replicas=MIN_ISR),
            now_ms=self._world.now,
            checkpoints=LogCheckpoints(log_start_offset, had_clean_shutdown=False),
        )
        self.log.update_high_watermark(self.checkpoint)
        self.partition = Partition("t", 0, TOPIC_ID, self.id, self.log, self._world)
        self._cached = ((-1, -1, -1), {})

    def kill(self) -> None:
        self.is_up = False
        self.following = None
        self.partition.take_offline()  # nothing waits for a dead broker

    def boot(self) -> None:
        self.is_up = True
        self._load(self.log.log_start_offset)

    @property
    def leads(self) -> bool:
        return self.partition.leader is not None

    @property
    def records(self) -> dict[int, Record]:
        """The records in the log, by offset."""
        log = self.log
        at = (log.log_start_offset, log.log_end_offset, log.truncations)
        if self._cached[0] != at:
            self._cached = (at, dict(_records_in(log)))
        return self._cached[1]

    # --- orders

    def obey(self, order: Order) -> None:
        """Carry out an order, as `Replicas` does."""
        partition, log = self.partition, self.log
        if order.epoch <= partition.leader_epoch:
            return
        self.following = None
        if order.leader == self.id:
            partition.lead(order.epoch, order.partition_epoch, sorted(order.isr), list(IDS))
            return
        partition.follow(order.leader, order.epoch, list(IDS))
        self.following = initial_state(
            "t",
            0,
            TOPIC_ID,
            order.epoch,
            FollowerLog(log.log_end_offset, log.high_watermark, log.latest_epoch),
            truncates_on_fetch=self._world.truncates_on_fetch,
        )

    # --- as a follower, as `FollowerFetcher` does it

    def cut(self, offset: int, *, is_complete: bool = True) -> None:
        assert offset >= self.log.high_watermark, "what is committed was cut off"
        self.log.truncate_to(offset, now_ms=self._world.now)
        self._continue_at(offset, is_complete=is_complete)

    def _continue_at(self, offset: int, *, is_complete: bool = True) -> None:
        assert self.following is not None
        self.following.truncated(offset, self.log.latest_epoch, is_complete=is_complete)

    def truncate_at_divergence(self, leader: EpochEndOffset) -> None:
        assert self.following is not None
        own = self.log.end_offset_for_epoch(leader.epoch)
        cut = truncation(leader, own, self.following.fetch_offset, self.log.log_end_offset)
        self.cut(cut.offset, is_complete=cut.is_complete or self._world.truncates_on_fetch)

    def ask(self) -> Fetch:
        state = self.following
        assert state is not None
        epoch = state.last_fetched_epoch if self._world.truncates_on_fetch else UNDEFINED_EPOCH
        start = self.log.log_start_offset
        asked = CachedPartition((TOPIC_ID, "t", 0), state.fetch_offset, 0, state.leader_epoch, epoch, start)
        return Fetch(self.id, self.partition.leader_id, state, asked)

    def take(self, response: Response) -> None:
        state, asked = self.following, response.fetch.asked
        if state is not response.fetch.state or state.is_truncating or state.fetch_offset != asked.fetch_offset:
            return
        data, diverging = response.data, response.data.diverging_epoch
        if response.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._find_range()
        elif response.error is not ErrorCode.NONE:
            return  # retried, or given up until the next order
        elif diverging is not None:
            self.truncate_at_divergence(EpochEndOffset(diverging.epoch, diverging.end_offset))
        else:
            info = self.partition.append_as_follower(
                memoryview(bytearray(response.records)), data.high_watermark, data.log_start_offset
            )
            end = info.last_offset + 1 if info.size else state.fetch_offset
            state.fetched(end, data.high_watermark, self.log.latest_epoch if info.size else UNDEFINED_EPOCH)

    def _find_range(self) -> None:
        leader = self._world.leader_of(self)
        if leader is None:
            return
        step = out_of_range(self.log.log_end_offset, leader.log.log_start_offset, leader.log.log_end_offset)
        if step.truncate_to is not None:
            self.cut(step.truncate_to)
        elif step.restart_at is not None:
            self.log.truncate_fully_and_start_at(step.restart_at, now_ms=self._world.now)
            self._continue_at(step.fetch_offset)

    # --- as a leader, as `FetchService` does it

    def serve(self, fetch: Fetch, count: int) -> Response:
        data = FetchResponse.PartitionData()
        try:
            records = self._serve(fetch, data, count)
        except KafkaError as error:
            return Response(fetch, ErrorCode(error.code), data)
        return Response(fetch, ErrorCode.NONE, data, records)

    def _serve(self, fetch: Fetch, data: FetchResponse.PartitionData, count: int) -> bytes:
        asked = fetch.asked
        log = self.partition.readable_log(asked.current_leader_epoch, only_leader=True)
        data.diverging_epoch = diverging_epoch(asked, log)
        if data.diverging_epoch is not None:
            return b""
        found = log.read(asked.fetch_offset, count * BATCH_BYTES, min_one_message=count > 0)
        data.log_start_offset = log.log_start_offset
        session = FetchSession(is_follower=True, uses_topic_ids=True, now_ms=self._world.now)
        self.partition.follower_fetched(
            fetch.follower, asked.fetch_offset, asked.log_start_offset, session, self._world.now
        )
        data.high_watermark = log.high_watermark
        if found.slice is None:
            return b""
        records = found.slice.read()
        found.slice.release()
        return bytes(records)

    def write(self, value: int) -> Produced:
        """A Produce with acks=all; raises the error that the client would receive."""
        records = memoryview(batch(b"%04d" % value))
        offset = self.partition.append(ProducedBatches(records, self._world.now, VERSION)).first_offset
        waiter = self.partition.offset_waiters.add(offset + 1, inf)
        self.partition.offset_waiters.wake(self.partition.high_watermark)
        return Produced(value, offset, self.partition, waiter)


def _records_in(log: Log) -> list[tuple[int, Record]]:
    if log.log_start_offset == log.log_end_offset:
        return []
    found = log.read(log.log_start_offset, 1 << 30)
    assert found.slice is not None
    stored = found.slice.read()
    found.slice.release()
    return [
        (record.offset, Record(header.partition_leader_epoch, int(record.value)))
        for position, header in iter_batches(stored)
        for record in iter_records(stored, header, position)
        if record.value is not None
    ]


@dataclass
class World:
    """Everything around the partitions. It is their `PartitionHost`."""

    truncates_on_fetch: bool = True
    now: int = 1_000_000
    lag_time_max_ms: int = LAG_MS
    asked: list[tuple[Partition, IsrChange]] = field(default_factory=list)
    nodes: dict[int, Node] = field(default_factory=dict)
    on_isr_change: Callable[[Partition, IsrChange], None] = lambda partition, change: None

    def __post_init__(self) -> None:
        self.nodes = {broker_id: Node(broker_id, self) for broker_id in IDS}

    def now_ms(self) -> int:
        return self.now

    def is_alive(self, broker_id: int) -> bool:
        return self.nodes[broker_id].is_up

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        self.on_isr_change(partition, change)
        self.asked.append((partition, change))

    def leader_of(self, node: Node) -> Node | None:
        """The leader of the epoch that the node follows in, if it can be reached."""
        leader = self.nodes.get(node.partition.leader_id)
        if leader is None or not leader.is_up or not leader.leads:
            return None
        return leader if leader.partition.leader_epoch == node.partition.leader_epoch else None
