"""One partition hosted here: its log, its part in replication, and whoever waits for it.

All methods run on the loop, and none of those that read state and append to it has a checkpoint in between. Rules as
in Kafka's `Partition.scala`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.turns import in_thread, run_flush
from kpybroker.core.producer_state import NO_VERIFICATION, VerificationGuard
from kpybroker.core.replica import LeaderState
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.control import EndTransactionMarker, build_end_transaction_batch
from kpybroker.wire.records.long_walk import is_long_walk
from kpybroker.wire.records.validate import validate_and_assign

if TYPE_CHECKING:
    from kpybroker.core.fetch_session import FetchSession, PartitionKey
    from kpybroker.storage.append import AppendInfo
    from kpybroker.storage.log import Log
    from kpybroker.wire.records.validate import ValidatedRecords

ALL_IN_SYNC = -1
NO_LEADER = -1


class OffsetWaiter:
    """Someone waits until the high watermark reaches `offset`; `error` tells why it never will."""

    __slots__ = ("error", "event", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.event = trio.Event()
        self.error: KafkaError | None = None


class Partition:
    """`leader` is set while this broker leads; `log` is None while its directory is offline."""

    __slots__ = (
        "_flushing",
        "_offset_waiters",
        "_sessions",
        "_told_log_start",
        "_unread_bytes",
        "broker_id",
        "controller_epoch",
        "index",
        "isr",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "partition_epoch",
        "replicas",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, index: int, topic_id: bytes, broker_id: int, log: Log | None) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.log = log
        self.leader: LeaderState | None = None
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.controller_epoch = -1
        self.isr: list[int] = []
        self.replicas: list[int] = []
        self._offset_waiters: list[OffsetWaiter] = []
        self._sessions: dict[FetchSession, PartitionKey] = {}
        self._flushing: trio.Event | None = None
        self._told_log_start = -1
        self._unread_bytes = 0

    # --- leadership

    def take_state(
        self, leader_id: int, leader_epoch: int, partition_epoch: int, isr: list[int], replicas: list[int]
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = list(isr)
        self.replicas = list(replicas)

    def make_leader(self) -> None:
        """Lead in the epoch taken by `take_state`: the epoch starts at the log's end."""
        log = self.online_log()
        log.assign_epoch(self.leader_epoch, log.log_end_offset)
        self.leader = LeaderState(self.broker_id, self.replicas, self.isr, log.log_end_offset, log.high_watermark)
        self._set_high_watermark(log, self.leader.high_watermark)

    def make_follower(self) -> None:
        self.leader = None
        self.fail_waiters(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.notify(0)

    def take_offline(self) -> None:
        """The log's directory failed, or the replica was stopped."""
        self.leader = None
        self.log = None
        self.fail_waiters(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.notify(0)

    def online_log(self) -> Log:
        if self.log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.index} is in an offline log directory")
        return self.log

    def leader_log(self) -> Log:
        """The log, when this broker leads; raises NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR."""
        log = self.online_log()
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return log

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """The client's idea of the epoch (KIP-320); -1 asks for no check."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # --- writing

    def is_long_walk(self, records: memoryview) -> bool:
        """Whether validating `records` would hold the loop, so that `walk_in_thread` is to do it for `append`."""
        return is_long_walk(records, self.leader_log().rules)

    async def walk_in_thread(
        self, records: memoryview, request_version: int, now_ms: int, limiter: trio.CapacityLimiter
    ) -> ValidatedRecords:
        """`records` validated as if the log were empty. Others append meanwhile; `append` sees to that."""
        log = self.leader_log()
        validate = partial(
            validate_and_assign,
            records,
            log.rules,
            base_offset=0,
            now_ms=now_ms,
            leader_epoch=self.leader_epoch,
            request_version=request_version,
            partition=log.partition,
        )
        return await in_thread(validate, limiter)

    def append(
        self,
        records: bytearray | memoryview,
        required_acks: int,
        request_version: int,
        now_ms: int,
        checked: ValidatedRecords | None = None,
        guard: VerificationGuard = NO_VERIFICATION,
    ) -> AppendInfo:
        """Append a client's batches as leader. Raises KafkaError; stamps offsets into `records`."""
        log = self.leader_log()
        leader = self.leader
        assert leader is not None
        if required_acks == ALL_IN_SYNC and len(leader.isr) < log.config.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {sorted(leader.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {log.config.min_insync_replicas} for partition {self.topic}-{self.index}",
            )
        info = log.append_as_leader(
            records,
            self.leader_epoch,
            now_ms=now_ms,
            verification_guard=guard,
            request_version=request_version,
            checked=checked,
        )
        self._after_append(log, leader, info)
        return info

    def append_internal(
        self, batch: bytes | bytearray, *, now_ms: int, guard: VerificationGuard = NO_VERIFICATION
    ) -> AppendInfo:
        """Append a coordinator's own batch, held to min.insync.replicas as acks=all is."""
        log = self.leader_log()
        leader = self.leader
        assert leader is not None
        if len(leader.isr) < log.config.min_insync_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        info = log.append_as_coordinator(batch, self.leader_epoch, now_ms=now_ms, verification_guard=guard)
        self._after_append(log, leader, info)
        return info

    def append_marker(self, marker: EndTransactionMarker, producer_id: int, producer_epoch: int) -> AppendInfo:
        """Append the end of a transaction. Readers of committed data hear of it whatever its size: it may make much
        visible that they counted when it was written.
        """
        batch = build_end_transaction_batch(marker, producer_id=producer_id, producer_epoch=producer_epoch)
        info = self.append_internal(batch, now_ms=marker.timestamp)
        self.notify(0)
        return info

    def start_verification(self, producer_id: int, sequence: int, epoch: int, now_ms: int) -> VerificationGuard:
        """Begin to verify that a produce belongs to a transaction (KIP-890); NO_VERIFICATION: one is open here."""
        return self.leader_log().start_verification(producer_id, sequence, epoch, now_ms)

    def _after_append(self, log: Log, leader: LeaderState, info: AppendInfo) -> None:
        self._unread_bytes += info.size
        # What is to be on disk before it is acknowledged is not to be read before either: see `flush`.
        if not info.flush_required:
            self._advance(log, leader, log.log_end_offset)

    def _advance(self, log: Log, leader: LeaderState, end_offset: int) -> None:
        before = log.high_watermark
        high_watermark = leader.appended(end_offset)
        if high_watermark > before:
            self._set_high_watermark(log, high_watermark)
            appended_bytes, self._unread_bytes = self._unread_bytes, 0
            if self._sessions:
                self.notify(appended_bytes)

    def _set_high_watermark(self, log: Log, high_watermark: int) -> None:
        log.update_high_watermark(high_watermark)
        if self._offset_waiters:
            waiting = []
            for waiter in self._offset_waiters:
                if waiter.offset <= high_watermark:
                    waiter.event.set()
                else:
                    waiting.append(waiter)
            self._offset_waiters = waiting

    @property
    def high_watermark(self) -> int:
        return self.online_log().high_watermark

    async def flush(self, offset: int) -> None:
        """Until everything below `offset` is on disk; one fsync in a thread serves all who wait. Raises LogDirError."""
        while (log := self.online_log()).recovery_point < offset:
            if log.log_end_offset < offset:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # it was cut off meanwhile
            if self._flushing is not None:
                await self._flushing.wait()
                continue
            self._flushing = trio.Event()
            try:
                await run_flush(log.prepare_flush())
            finally:
                self._flushing.set()
                self._flushing = None
        if self.leader is not None and log.high_watermark < offset:
            self._advance(log, self.leader, offset)

    # --- waiting

    async def wait_high_watermark(self, offset: int) -> None:
        """Until everything below `offset` is committed. Raises KafkaError when leadership is lost first."""
        if self.leader_log().high_watermark >= offset:
            return
        waiter = OffsetWaiter(offset)
        self._offset_waiters.append(waiter)
        try:
            await waiter.event.wait()
        finally:
            if not waiter.event.is_set():
                self._offset_waiters.remove(waiter)
        if waiter.error is not None:
            raise waiter.error

    def fail_waiters(self, error: KafkaError) -> None:
        waiters, self._offset_waiters = self._offset_waiters, []
        for waiter in waiters:
            waiter.error = error
            waiter.event.set()

    def subscribe(self, session: FetchSession, key: PartitionKey) -> None:
        self._sessions[session] = key

    def unsubscribe(self, session: FetchSession) -> None:
        self._sessions.pop(session, None)

    def notify(self, appended_bytes: int) -> None:
        """Tell the fetch sessions that this partition has news."""
        for session, key in list(self._sessions.items()):
            session.mark_dirty(key, appended_bytes)

    # --- moving the log start

    def tell_log_start(self) -> None:
        """Retention ran: if it moved the log start, that is news to the fetch sessions."""
        if self.log is not None and self.log.log_start_offset != self._told_log_start:
            self._told_log_start = self.log.log_start_offset
            self.notify(0)

    def delete_records(self, offset: int) -> int:
        """DeleteRecords: move the log start to `offset` (-1: the high watermark); returns the new log start."""
        log = self.leader_log()
        if "delete" not in log.config.cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        target = log.high_watermark if offset == -1 else offset
        if target < 0 or target > log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.increment_log_start_offset(target)
        self.notify(0)
        return log.log_start_offset
