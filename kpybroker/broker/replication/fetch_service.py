"""Serving fetches: which partitions to visit, what to read of each, and how long to wait for more.

The parts of Kafka's ``ReplicaManager.fetchMessages``, ``DelayedFetch`` and ``FetchManager`` that need the broker;
sessions themselves are in `core.replication.fetch_session`. Records are sent as slices of segment files and are not
parsed, except for clients so old that they need an older format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.steps import Steps, Wait
from kpybroker.broker.loop.yielding import YieldBudget, in_thread
from kpybroker.broker.replication.fetch_visit import (
    FOLLOWER_FETCHING_SINCE,
    UNSEEN,
    FetchParams,
    PartitionData,
    Visit,
    release,
)
from kpybroker.broker.replication.partition import LEADER_MOVED
from kpybroker.broker.replication.replication_quota import LEADER, ReplicationQuota
from kpybroker.core.replication.fetch_session import CachedPartition, FetchKey, FetchSession, FetchSessionCache
from kpybroker.core.replication.replica_selector import ReplicaView, replica_selector
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchResponse
from kpybroker.wire.records.append_rules import UNCOMPRESSED_BYTES_MAX
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.convert import down_convert, needs_down_conversion

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.storage.disk.slice import FileSlice
    from kpybroker.storage.log.log import Log

READ_COMMITTED = 1
MAGIC_1_FROM = 2
RECORD_BATCHES_FROM = 4
OLD_FORMAT_READ_MAX = 1024 * 1024
"""Bytes of one partition that are read and converted for an old client at once; more if one batch is larger."""


class FetchService:
    """The fetch sessions of this broker, and reading for consumers and followers."""

    def __init__(self, host: Host, metadata: MetadataCache, replicas: Replicas) -> None:
        self._host = host
        self._metadata = metadata
        self._replicas = replicas
        config = host.config
        self.sessions = FetchSessionCache(
            config.get_int("max.incremental.fetch.session.cache.slots"), self._unsubscribe_all, host.budget
        )
        self.bytes_max = config.get_int("fetch.max.bytes")
        """Of one response to a consumer."""
        self._selector = replica_selector(config.get_str("replica.selector.class"))
        self._quota = ReplicationQuota(config, LEADER)
        self.follower_end: Callable[[str, int, int], int] | None = None
        """A test puts here how far a follower gets: (topic, partition, broker id) -> an offset, NO_LIMIT or UNSEEN."""
        self.waiting = 0
        """Fetches that wait for records now."""
        self.follower_requests: Counter[int] = Counter()
        """By version: fetches of followers, for the metrics."""

    def new_session_ids(self) -> Iterator[int]:
        """Random ids, without end: the cache takes the first that is free."""
        while True:
            yield self._host.random.randrange(1, 0x7FFFFFFF)

    def fetch(self, session: FetchSession, params: FetchParams) -> Steps[list[Visit]]:
        """Visit the dirty partitions until there are `min_bytes` or `max_wait_ms` is over. Returns all visits.

        The caller sends them, releases their slices, and then keeps the session or calls `release_session`. The session
        is notified of changes in everything it has visited, from the visit on, so that it misses none.
        """
        deadline: float | None = None  # from the first visits on, as in Kafka
        visits: dict[FetchKey, Visit] = {}
        try:
            while True:
                marks = session.marks
                yield from self._visit_dirty(session, params, visits)
                missing = _bytes_missing(session, params.min_bytes, visits.values())
                if missing <= 0 or params.max_wait_ms <= 0:
                    return list(visits.values())
                now = trio.current_time()
                if deadline is None:
                    deadline = now + params.max_wait_ms / 1000
                elif deadline <= now:
                    return list(visits.values())
                if session.marks == marks:
                    self.waiting += 1
                    try:
                        yield from _wait_for_changes(session, missing, deadline)
                    finally:
                        self.waiting -= 1
        except BaseException:
            release(visits.values())
            self.release_session(session)
            raise

    def _visit_dirty(self, session: FetchSession, params: FetchParams, visits: dict[FetchKey, Visit]) -> Steps[None]:
        left = params.max_bytes
        has_records = False
        budget = YieldBudget(params.client.connection.may_leave)
        for key in session.take_dirty():
            if left <= 0 and session.session_id != 0 and not params.is_follower:
                break  # the rest stays dirty and is next; but a follower's positions are always taken at once
            cached = session.partitions.get(key)
            if cached is None:
                continue  # another request of the session has forgotten it
            session.visiting(key)
            before = visits.get(key)
            if before is not None:
                release((before,))
            visit = visits[key] = Visit(
                cached,
                min(max(left, 0), cached.max_bytes),
                min_one=not has_records and not params.has_hard_limits,
                is_first=before is None,
            )
            self._visit(session, visit, params)
            if visit.slice is not None and params.version < RECORD_BATCHES_FROM:
                yield partial(self._convert, visit, params)
            if visit.size or visit.is_special or visit.is_cut_short or visit.is_out_of_sync:
                session.stays_dirty(key)
            left -= visit.size
            has_records = has_records or visit.size > 0
            if budget.is_spent():
                yield budget.next_slice

    def _visit(self, session: FetchSession, visit: Visit, params: FetchParams) -> None:
        """Read, or refuse."""
        cached = visit.cached
        partition = self._resolve(session, cached)
        try:
            partition = self._check_access(cached, partition, params)
            visit.is_unread = False
            visit.traffic = partition.traffic
            visit.traffic.fetch_requests += 1
            if params.version >= 13 and partition.topic_id != cached.key[0]:
                raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
            log = partition.readable_log(cached.current_leader_epoch, only_leader=params.only_leader)
            if params.is_follower:
                self._read_for_follower(visit, partition, session, params)
            elif not self._refers_to_nearer(visit, partition, params):
                self._read(visit, log, params)
        except KafkaError as error:
            self._refuse(visit, error, params)
        except LogDirError as error:
            self._host.log_dir_failed(error)
            self._refuse(visit, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), params)

    def _resolve(self, session: FetchSession, cached: CachedPartition) -> Partition | None:
        """The partition, which notifies the session from now on; None if it is not here.

        The name stays in the session: an id that has no name any more then belongs to a topic that was deleted.
        """
        known = self._topic_name(cached.key)
        name = cached.resolved_name = known or cached.resolved_name
        partition = self._replicas.partition(name, cached.key[2])
        if known and partition is not None:
            partition.subscribe(session, cached.key)
        return partition

    def _check_access(self, cached: CachedPartition, partition: Partition | None, params: FetchParams) -> Partition:
        """Raises KafkaError if the client may not read the partition, or if it is not here."""
        name = cached.resolved_name
        if not name and params.version >= 13:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not params.readable(name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if partition is None:
            raise self._replicas.not_hosted(name, cached.key[2])
        return partition

    def _read_for_follower(
        self, visit: Visit, partition: Partition, session: FetchSession, params: FetchParams
    ) -> None:
        """The fetch offset shows what the follower has. It counts once a request, and not if its log diverges."""
        cached, log = visit.cached, partition.leader_log()
        if params.replica_id not in partition.replicas or params.replica_id == self._host.node_id:
            # With an epoch: its assignment has not arrived here yet. Without one, there is no telling.
            is_late = cached.current_leader_epoch >= 0
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if is_late else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        visit.is_out_of_sync = params.replica_id not in partition.isr
        if self._is_throttled(partition, params.replica_id):
            visit.limit, visit.min_one = 0, False
        if self.follower_end is not None:
            visit.end = self.follower_end(partition.topic, partition.index, params.replica_id)
        if visit.end == UNSEEN:
            visit.describe(log)
            return
        self._read(visit, log, params)
        data = visit.data
        if data.diverging_epoch is not None:
            return
        if visit.is_first:
            now_ms = self._host.clock.time_ms()
            start = cached.log_start_offset
            partition.follower_fetched(params.replica_id, cached.fetch_offset, start, session, now_ms)
            data.high_watermark = log.high_watermark  # this very fetch may have moved it
            data.last_stable_offset = log.last_stable_offset

    def _is_throttled(self, partition: Partition, replica_id: int) -> bool:
        return (
            replica_id not in partition.isr
            and self._quota.is_throttled(partition)
            and self._quota.is_exceeded(self._host.clock.time_ms())
        )

    def _refers_to_nearer(self, visit: Visit, partition: Partition, params: FetchParams) -> bool:
        """Send a consumer to the replica that is nearest to it (KIP-392), unless that is this leader."""
        if self._selector is None or partition.leader is None or params.version < FOLLOWER_FETCHING_SINCE:
            return False
        preferred = self._preferred_replica(partition, params, visit.cached.fetch_offset)
        if preferred is None:
            return False
        visit.describe(partition.leader_log())
        visit.data.preferred_read_replica = preferred
        visit.is_special = True
        return True

    def _preferred_replica(self, partition: Partition, params: FetchParams, fetch_offset: int) -> int | None:
        leader, now_ms = partition.leader, self._host.clock.time_ms()
        assert leader is not None
        assert self._selector is not None
        replicas = []
        for replica, follower in leader.followers.items():
            has_it = follower.log_start_offset <= fetch_offset <= follower.log_end_offset
            node = self._metadata.endpoint_for(params.client, replica)
            if replica in leader.isr and has_it and node is not None:
                lag_ms = now_ms - follower.caught_up_ms
                replicas.append(ReplicaView(replica, node.rack, follower.log_end_offset, lag_ms))
        rack = self._host.config.get_str("broker.rack") or None
        replicas.append(ReplicaView(partition.broker_id, rack, leader.log_end_offset, 0))
        selected = self._selector(params.rack_id, replicas, partition.broker_id)
        return None if selected == partition.broker_id else selected

    def _read(self, visit: Visit, log: Log, params: FetchParams) -> None:
        cached, data = visit.cached, visit.data
        if cached.max_bytes < 0 or params.max_bytes < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # an invalid argument, for which there is no code
        if (diverging := diverging_epoch(cached, log)) is not None:
            visit.describe(log)
            data.diverging_epoch = diverging
            visit.is_special = True
            return
        if params.is_follower:
            bound = min(log.log_end_offset, visit.end)
        elif params.isolation_level == READ_COMMITTED:
            bound = log.last_stable_offset
        else:
            bound = log.high_watermark
        limit = visit.limit
        if params.version < RECORD_BATCHES_FROM:
            limit = min(limit, max(OLD_FORMAT_READ_MAX, log.config.max_message_bytes))
        found = log.read(cached.fetch_offset, limit, max_offset=bound, min_one_message=visit.min_one)
        if found.first_entry_incomplete and found.slice is not None:
            # No client can use a part of a batch: those without the whole-batch rule get converted, whole ones.
            found.slice.release()
            found = found._replace(slice=None)
        visit.slice = found.slice
        visit.is_on_older_segment = found.slice is not None and found.is_on_older_segment
        visit.describe(log)
        if params.isolation_level == READ_COMMITTED and not params.is_follower:
            data.aborted_transactions = [
                FetchResponse.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in log.aborted_transactions(cached.fetch_offset, found)
            ]
        if found.slice is not None:
            self._fill_records(visit, log, found.slice, params.version)
        visit.is_cut_short = not visit.size and cached.fetch_offset < bound

    @staticmethod
    def _fill_records(visit: Visit, log: Log, records: FileSlice, version: int) -> None:
        if version < 10 and log.config.compression_type == "zstd":
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        visit.data.records = records
        visit.size = records.size

    async def _convert(self, visit: Visit, params: FetchParams) -> None:
        """Convert what was read to an old client's message format; in a thread, because every record is rebuilt."""
        assert visit.slice is not None
        magic = 1 if params.version >= MAGIC_1_FROM else 0
        _, name, index = visit.cached.key
        stored = visit.slice.read()
        try:
            if needs_down_conversion(stored, magic):
                log = self._replicas.hosted(name, index).online_log()
                if not log.config.message_downconversion_enable:
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                bound = max(UNCOMPRESSED_BYTES_MAX, log.config.max_message_bytes)
                convert = partial(down_convert, stored, magic, visit.cached.fetch_offset, max_bytes=bound)
                if visit.traffic is not None:
                    records = sum(max(header.records_count, 1) for _, header in iter_batches(stored))
                    visit.traffic.rare_counts().fetch_conversions += records
                connection = params.client.connection
                with connection.may_leave():
                    stored = await in_thread(convert, self._host.slow_work.of(connection.turns_of))
        except KafkaError as error:
            self._refuse(visit, error, params)
            return
        visit.data.records = stored
        visit.size = len(stored)

    def _refuse(self, visit: Visit, error: KafkaError, params: FetchParams) -> None:
        if visit.slice is not None:
            visit.slice.release()
            visit.slice = None
        if visit.traffic is not None:
            visit.traffic.fetch_failed(error.code)
        index = visit.cached.key[2]
        converts = error.code in (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNSUPPORTED_VERSION)
        data = visit.data = PartitionData(
            partition_index=index,
            error_code=error.code,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=[] if visit.is_unread or converts else None,
            records=None if converts else b"",
        )
        visit.size = 0
        visit.is_special = True
        partition = self._replicas.partition(visit.cached.resolved_name, index)
        if params.version >= 16 and error.code in LEADER_MOVED and partition is not None:
            data.current_leader = FetchResponse.LeaderIdAndEpoch(
                leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
            )

    def count_sent(self, visits: Iterable[Visit], params: FetchParams) -> None:
        """Count the bytes of a response that is sent."""
        for visit in visits:
            if visit.size and visit.traffic is not None:
                if params.is_follower:
                    self._replicas.traffic.replication_bytes_out += visit.size
                else:
                    visit.traffic.bytes_out += visit.size

    def record_throttled(self, visits: Iterable[Visit]) -> None:
        """Count what is sent to a follower of throttled partitions, whether or not the follower is in sync."""
        size = 0
        for visit in visits:
            partition = self._partition(visit.cached.key) if visit.size else None
            if partition is not None and self._quota.is_throttled(partition):
                size += visit.size
        if size:
            self._quota.record(size, self._host.clock.time_ms())

    def put_back(self, session: FetchSession, visits: Iterable[Visit]) -> None:
        """The client gets nothing of this, because it has to wait: its next fetch visits the same again."""
        visits = list(visits)
        release(visits)
        for visit in visits:
            if visit.cached.key in session.partitions:
                session.stays_dirty(visit.cached.key)
        self.release_session(session)

    def release_session(self, session: FetchSession) -> None:
        """The response is ready: a session that is not kept is not notified any more."""
        if session.session_id == 0:
            self._unsubscribe_all(session)

    def _topic_name(self, key: FetchKey) -> str | None:
        """LeaderAndIsr may reach a leader before the topic's metadata: its followers need not wait for those."""
        topic_id, name, _ = key
        return name or self._metadata.topic_name(topic_id) or self._replicas.topic_names.get(topic_id)

    def _partition(self, key: FetchKey) -> Partition | None:
        name = self._topic_name(key)
        return self._replicas.partition(name, key[2]) if name else None

    def unsubscribe(self, session: FetchSession, key: FetchKey) -> None:
        """The session does not want this partition any more."""
        partition = self._partition(key)
        if partition is not None:
            partition.unsubscribe(session)

    def _unsubscribe_all(self, session: FetchSession) -> None:
        for key in session.partitions:
            self.unsubscribe(session, key)


def diverging_epoch(cached: CachedPartition, log: Log) -> FetchResponse.EpochEndOffset | None:
    """Where the reader's last epoch ends in this log, if the reader has more of it (KIP-595's truncation on fetch).

    Raises OFFSET_OUT_OF_RANGE if the epoch is unknown here.
    """
    if cached.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(cached.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= cached.last_fetched_epoch and end_offset >= cached.fetch_offset:
        return None
    return FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)


def _bytes_missing(session: FetchSession, min_bytes: int, visits: Iterable[Visit]) -> int:
    """How many bytes the response still waits for; 0 or less if it is due."""
    missing = min_bytes
    unread = 0
    for visit in visits:
        missing -= visit.size
        if visit.is_unread:
            unread += 1
        elif visit.is_special or visit.is_on_older_segment:
            return 0
    return 0 if unread >= len(session.partitions) else missing


def _wait_for_changes(session: FetchSession, bytes_missing: int, deadline: float) -> Steps[None]:
    wait = Wait(deadline)
    missing = bytes_missing

    def on_dirty(appended_bytes: int) -> None:
        nonlocal missing
        missing -= appended_bytes
        if appended_bytes == 0 or missing <= 0:
            wait.end()

    session.on_dirty = on_dirty
    try:
        yield wait
    finally:
        session.on_dirty = None
