"""One partition hosted here: its log, its part in replication, and the requests that wait for it.

All methods run on the loop, without a checkpoint between reading state and appending. Rules as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

import trio

from kpybroker.broker.loop.offset_waiters import OffsetWaiters
from kpybroker.broker.loop.steps import Steps, run_to_end
from kpybroker.broker.loop.yielding import in_thread, run_flush
from kpybroker.broker.replication.traffic import TopicTraffic
from kpybroker.core.leader_and_isr import NO_LEADER
from kpybroker.core.replication.replica import IsrChange, LeaderState
from kpybroker.core.topic_partition import shared
from kpybroker.storage.log.append import CLIENT, COORDINATOR, ProducedBatches, find_duplicate
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.control import EndTransactionMarker, build_end_transaction_batch
from kpybroker.wire.records.slow_validation import is_slow_to_validate
from kpybroker.wire.records.validate import AppendContext, validate_and_assign

if TYPE_CHECKING:
    from kpybroker.broker.loop.slow_work import ClientsWork
    from kpybroker.core.replication.fetch_session import FetchKey, FetchSession, Subscriber
    from kpybroker.storage.log.append import AppendInfo
    from kpybroker.storage.log.log import Log
    from kpybroker.wire.records.validate import ValidatedRecords

isr_log = logging.getLogger("kafka.cluster.Partition")

ALL_IN_SYNC = -1
"""acks=all."""
LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Errors for which a response names the partition's current leader (KIP-951)."""


NO_SESSIONS: Final[Mapping[Subscriber, FetchKey]] = MappingProxyType({})
"""Of most partitions; a dict of its own costs 64 bytes."""


class PartitionHost(Protocol):
    """What a partition asks of the broker it lives in (`replicas.Replicas`)."""

    @property
    def lag_time_max_ms(self) -> int:
        """How long a replica may be behind and stay in the ISR."""

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds."""

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered."""

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        """Ask the controller. If it agrees, `Partition.isr_committed` is called, else `Partition.advance_again`."""


class Partition:
    """`leader` is set while this broker leads; `log` is None while its directory is offline."""

    __slots__ = (
        "_flushing",
        "_follower_sessions",
        "_host",
        "_log_start_waiters",
        "_notified_log_start",
        "_sessions",
        "_unread_bytes",
        "broker_id",
        "controller_epoch",
        "index",
        "is_offline",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "offset_waiters",
        "replicas",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self, topic: str, index: int, topic_id: bytes, broker_id: int, log: Log | None, host: PartitionHost
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.log = log
        self.is_offline = False
        self.leader: LeaderState | None = None
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.controller_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self._host = host
        self.offset_waiters = OffsetWaiters()
        self._log_start_waiters: tuple[trio.Event, ...] = ()
        self._sessions: Mapping[Subscriber, FetchKey] = NO_SESSIONS
        self._follower_sessions: Mapping[Subscriber, FetchKey] = NO_SESSIONS
        self._flushing: trio.Event | None = None
        self._notified_log_start = -1
        self._unread_bytes = 0
        self.traffic = TopicTraffic()  # the topic's, once `Replicas` has the partition

    # --- leadership

    @property
    def isr(self) -> frozenset[int]:
        """The committed ISR as this leader knows it; empty on a follower, as in Kafka."""
        return frozenset() if self.leader is None else self.leader.isr

    def lead(self, leader_epoch: int, partition_epoch: int, isr: list[int], replicas: list[int]) -> None:
        """Lead in a new epoch, which starts at the log's end (Partition.makeLeader)."""
        log = self.online_log()
        log.assign_epoch(leader_epoch, log.log_end_offset)
        if self.leader is None:
            self.leader = LeaderState(self.broker_id, log.log_end_offset, log.high_watermark)
        self.leader.log_end_offset = log.log_end_offset
        self.leader.take_epoch(leader_epoch, partition_epoch, replicas, isr, self._host.now_ms())
        self._take(self.broker_id, leader_epoch, replicas)
        self._advance(log, self.leader, log.log_end_offset)
        self.notify(0)

    def follow(self, leader_id: int, leader_epoch: int, replicas: list[int]) -> None:
        """Follow another broker, or none (Partition.makeFollower)."""
        self._take(leader_id, leader_epoch, replicas)
        self._resign()

    def take_offline(self) -> None:
        """The log's directory failed, or the replica is about to be deleted."""
        self.log = None
        self._resign()

    def _take(self, leader_id: int, leader_epoch: int, replicas: list[int]) -> None:
        assert leader_epoch > self.leader_epoch, f"{self.topic}-{self.index}: {leader_epoch} after {self.leader_epoch}"
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replicas = shared(tuple(replicas))

    def _resign(self) -> None:
        self.leader = None
        self.fail_waiters(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.notify(0)

    def online_log(self) -> Log:
        """The log. Raises KAFKA_STORAGE_ERROR while its directory is offline."""
        if self.log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.index} is in an offline log directory")
        return self.log

    def leader_log(self) -> Log:
        """The log, when this broker leads; raises NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR."""
        log = self.log
        if log is None or self.leader is None:
            self.online_log()
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return log

    def readable_log(self, current_leader_epoch: int, *, only_leader: bool) -> Log:
        """The log, for a client with this leader epoch (Partition.getLocalLog). Raises KafkaError."""
        log = self.online_log()
        self.check_leader_epoch(current_leader_epoch)
        if only_leader and self.leader is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return log

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Compare with the epoch the client knows (KIP-320); -1 asks for no check.

        Raises FENCED_LEADER_EPOCH if the client's is older, UNKNOWN_LEADER_EPOCH if it is newer.
        """
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # --- writing

    def is_slow_to_validate(self, records: memoryview) -> bool:
        """Whether validating `records` would hold the loop: then call `validate_in_thread` before `append`."""
        return is_slow_to_validate(records, self.leader_log().rules)

    async def validate_in_thread(
        self, records: memoryview, request_version: int, now_ms: int, work: ClientsWork, *, strictly: bool = False
    ) -> ValidatedRecords:
        """`records`, validated as if the log were empty; `append` moves them behind what was appended since.

        `strictly`: read every record, whatever the topic's rules need.
        """
        log = self.leader_log()
        rules = log.rules.strict() if strictly else log.rules
        call = AppendContext(0, now_ms, self.leader_epoch, partition=log.partition)
        return await in_thread(partial(validate_and_assign, records, rules, call, request_version), work)

    def append(self, produced: ProducedBatches, required_acks: int = ALL_IN_SYNC) -> AppendInfo:
        """Append batches as leader. Raises KafkaError, LogDirError.

        Stamps offsets and leader epoch into the records, where they are writable. With acks=all, and for coordinators,
        `min.insync.replicas` must be met.
        """
        self.traffic.produce_requests += 1
        log = self.leader_log()
        leader = self.leader
        assert leader is not None
        if required_acks == ALL_IN_SYNC:
            try:
                self._check_min_isr(log, leader, len(leader.isr), ErrorCode.NOT_ENOUGH_REPLICAS)
            except KafkaError:
                # A client that is refused sends again what may be here already: docs/decisions/duplicates.md
                known = find_duplicate(log, produced.records) if produced.origin is CLIENT else None
                if known is None:
                    raise
                return known
        info = log.append_as_leader(produced, self.leader_epoch)
        self._after_append(log, leader, info, len(produced.records))
        return info

    def append_marker(
        self, marker: EndTransactionMarker, producer_id: int, producer_epoch: int, transaction_version: int = 0
    ) -> AppendInfo:
        """Append the end of a transaction, which is of a version. Waiting readers are notified whatever its size: it
        may make much more visible, which they counted when it was written.
        """
        batch = build_end_transaction_batch(marker, producer_id=producer_id, producer_epoch=producer_epoch)
        info = self.append(
            ProducedBatches(batch, marker.timestamp, origin=COORDINATOR, transaction_version=transaction_version)
        )
        self.notify(0)
        return info

    def _check_min_isr(self, log: Log, leader: LeaderState, in_sync: int, error: ErrorCode) -> None:
        min_isr = log.config.min_insync_replicas
        if in_sync < min_isr and in_sync < leader.effective_min_isr(min_isr):
            raise KafkaError(
                error,
                f"The size of the current ISR {sorted(leader.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {min_isr} for partition {self.topic}-{self.index}",
            )

    def _after_append(self, log: Log, leader: LeaderState, info: AppendInfo, received_bytes: int) -> None:
        self._unread_bytes += info.size
        if info.last_offset >= 0:  # there was a batch
            self.traffic.bytes_in += received_bytes  # as in Kafka also what was there already, and before conversion
            self.traffic.messages_in += info.last_offset - info.first_offset + 1
        if self._follower_sessions:
            for session, key in self._follower_sessions.items():
                session.mark_dirty(key, info.size)
        # What must be on disk before it is acknowledged must not be read before either: see `flush`.
        if not info.flush_required:
            self._advance(log, leader, log.log_end_offset)

    def _advance(self, log: Log, leader: LeaderState, end_offset: int) -> None:
        high_watermark = leader.appended(end_offset)
        if leader.followers:
            self._advance_with_followers(log, leader)
        elif high_watermark > log.high_watermark:
            self._commit_to(log, high_watermark)

    def _advance_with_followers(self, log: Log, leader: LeaderState) -> None:
        host = self._host
        min_isr = log.config.min_insync_replicas
        high_watermark = leader.advance(min_isr, host.now_ms(), host.lag_time_max_ms, host.is_alive)
        if high_watermark > log.high_watermark:
            self._commit_to(log, high_watermark)

    def _commit_to(self, log: Log, high_watermark: int) -> None:
        assert log.high_watermark < high_watermark <= log.log_end_offset, f"{log}: {high_watermark} was committed"
        log.update_high_watermark(high_watermark)
        if self.offset_waiters.waiting:
            self.offset_waiters.wake(high_watermark)
        appended_bytes, self._unread_bytes = self._unread_bytes, 0
        if self._sessions:
            self._notify_consumers(appended_bytes)
        if self._follower_sessions:
            for session, key in self._follower_sessions.items():
                session.mark_without_waking(key)

    @property
    def lags_behind_epoch_start(self) -> bool:
        """Whether this is a new leader whose high watermark has not reached the start of its epoch yet."""
        leader = self.leader
        return leader is not None and leader.high_watermark < leader.epoch_start_offset

    @property
    def high_watermark(self) -> int:
        """Records below it are committed. Raises KAFKA_STORAGE_ERROR."""
        return self.online_log().high_watermark

    async def flush(self, offset: int) -> None:
        """Until everything below `offset` is on disk; one fsync in a thread serves all callers.

        Raises LogDirError, KafkaError.
        """
        while (log := self.online_log()).recovery_point < offset:
            if log.log_end_offset < offset:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # it was truncated in the meantime
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
            self._advance(log, self.leader, max(offset, self.leader.log_end_offset))

    # --- waiting

    def until_committed(self, offset: int, deadline: float) -> Steps[bool]:
        """Whether everything below `offset` is committed by `deadline`. Raises KafkaError if leadership is lost."""
        if self.leader_log().high_watermark >= offset:
            return True
        if not (yield from self.offset_waiters.until(offset, deadline)):
            return False
        if self.leader is not None:  # the ISR may have shrunk: committed, but on fewer replicas than asked for
            in_sync = len(self.leader.maximal_isr)
            self._check_min_isr(self.online_log(), self.leader, in_sync, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    async def wait_high_watermark(self, offset: int) -> None:
        """`until_committed` without a deadline, in a task."""
        await run_to_end(self.until_committed(offset, inf))

    def fail_waiters(self, error: KafkaError) -> None:
        """Raise `error` in all requests that wait for an offset to be committed."""
        self._wake_log_start_waiters()
        self.offset_waiters.fail(error)

    def subscribe(self, session: Subscriber, key: FetchKey) -> None:
        """Mark the session's `key` dirty whenever this partition has something new for it."""
        sessions = self._follower_sessions if session.is_follower else self._sessions
        if isinstance(sessions, dict):
            sessions[session] = key
        elif session.is_follower:
            self._follower_sessions = {session: key}
        else:
            self._sessions = {session: key}

    def unsubscribe(self, session: Subscriber) -> None:
        """Stop notifying the session."""
        sessions = self._follower_sessions if session.is_follower else self._sessions
        if isinstance(sessions, dict):
            sessions.pop(session, None)

    def notify(self, appended_bytes: int) -> None:
        """Mark this partition dirty in all fetch sessions; 0 bytes: they look at once."""
        self._notify_consumers(appended_bytes)
        for session, key in list(self._follower_sessions.items()):
            session.mark_dirty(key, appended_bytes)

    def _notify_consumers(self, appended_bytes: int) -> None:
        for session, key in list(self._sessions.items()):
            session.mark_dirty(key, appended_bytes)

    # --- followers of this leader

    def follower_fetched(
        self, replica_id: int, offset: int, log_start_offset: int, contact: FetchSession, now_ms: int
    ) -> None:
        """A replica fetches from `offset`, so it has everything below (Partition.updateFollowerFetchState)."""
        log, leader = self.leader_log(), self.leader
        assert leader is not None
        if leader.followers[replica_id].log_start_offset != log_start_offset:
            self._wake_log_start_waiters()
        moved = leader.fetched(replica_id, offset, log_start_offset, now_ms, contact)
        if leader.may_join(replica_id) and self._host.is_alive(replica_id):
            self._host.change_isr(self, leader.propose(leader.isr | {replica_id}))
        if moved:
            self._advance_with_followers(log, leader)

    def maybe_shrink_isr(self) -> None:
        """Ask the controller to remove replicas from the ISR that have been behind for too long."""
        self.advance_again()
        leader = self.leader
        if leader is None or not leader.followers or self.log is None:
            return
        out_of_sync = leader.out_of_sync(self._host.now_ms(), self._host.lag_time_max_ms)
        if out_of_sync:
            isr_log.info(
                "[Partition %s-%d broker=%d] Shrinking ISR from %s to %s. Leader: (highWatermark: %d, endOffset: %d). "
                "Out of sync replicas: %s.",
                self.topic,
                self.index,
                self.broker_id,
                _listed(leader.isr),
                _listed(leader.isr - out_of_sync),
                leader.high_watermark,
                leader.log_end_offset,
                " ".join(f"(brokerId: {r}, endOffset: {leader.end_offset_text(r)})" for r in out_of_sync),
            )
            self._host.change_isr(self, leader.propose(leader.isr - out_of_sync))

    def isr_committed(self) -> None:
        """The controller agreed to a change, for which the high watermark may have waited."""
        leader = self.leader
        assert leader is not None
        isr_log.info(
            "[Partition %s-%d broker=%d] ISR updated to %s and version updated to %d",
            self.topic,
            self.index,
            self.broker_id,
            _listed(leader.isr),
            leader.partition_epoch,
        )
        for session, key in self._follower_sessions.items():
            session.mark_without_waking(key)  # a replica that left the ISR is checked, even if nothing is appended
        self.advance_again()

    def advance_again(self) -> None:
        """Advance the high watermark if it waited for a replica that does not count any more.

        The controller has refused that replica, it is gone, or it has been behind for too long. Followers that have
        everything do not send it again, so nothing else would trigger this.
        """
        leader = self.leader
        if leader is None or not leader.followers or self.log is None:
            return
        self._advance_with_followers(self.log, leader)

    # --- following another broker

    def append_as_follower(self, records: memoryview, high_watermark: int, log_start_offset: int) -> AppendInfo:
        """Append what the leader sent for the log's end, and take its high watermark and log start.

        Raises KafkaError, UnexpectedAppendOffsetError, LogDirError.
        """
        log, now_ms = self.online_log(), self._host.now_ms()
        assert self.leader is None, f"{log}: the response of another leader, while this broker leads"
        info = log.append_copied(records, now_ms=now_ms)
        before = log.high_watermark
        log.update_high_watermark(high_watermark)
        log.increment_log_start_offset(log_start_offset)
        if self._sessions and log.high_watermark != before:
            self._notify_consumers(info.size)
        return info

    # --- moving the log start

    def notify_log_start(self) -> None:
        """Notify the fetch sessions if retention has moved the log start since the last call."""
        if self.log is not None and self.log.log_start_offset != self._notified_log_start:
            self._notified_log_start = self.log.log_start_offset
            self.notify(0)

    def delete_records(self, offset: int) -> int:
        """DeleteRecords: move the log start to `offset` (-1: the high watermark). Returns the new log start.

        Raises POLICY_VIOLATION, OFFSET_OUT_OF_RANGE, or as `leader_log`.
        """
        log = self.leader_log()
        if "delete" not in log.config.cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        target = log.high_watermark if offset == -1 else offset
        if target < 0 or target > log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.increment_log_start_offset(target)
        self.notify(0)
        return target

    @property
    def low_watermark(self) -> int:
        """The smallest log start over the live replicas. Raises NOT_LEADER_OR_FOLLOWER."""
        log, leader = self.leader_log(), self.leader
        assert leader is not None
        return leader.low_watermark(log.log_start_offset, self._host.is_alive)

    async def wait_low_watermark(self, offset: int) -> int:
        """Until every live replica has deleted what is below `offset`. Returns the low watermark."""
        while (low_watermark := self.low_watermark) < offset:
            woken = trio.Event()
            self._log_start_waiters += (woken,)
            await woken.wait()
        return low_watermark

    def _wake_log_start_waiters(self) -> None:
        waiters, self._log_start_waiters = self._log_start_waiters, ()
        for woken in waiters:
            woken.set()


def _listed(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(broker_ids)))
