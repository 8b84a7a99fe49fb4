"""Following one leader: Kafka's `ReplicaFetcherThread`, as a task with one connection.

The task truncates what must be truncated, then fetches and appends, over and over. As long as there is nothing else to
do, responses are taken without waking the task (`_on_response`); it wakes up for everything that takes time. There is
no checkpoint between reading a partition's state and appending to its log. A response counts only for partitions whose
position is still the one that was asked for. The rules of where to fetch and truncate are in
`core.replication.follower`.

A fetch looks at every partition, as in Kafka. But a fetcher may follow thousands. While all of them are being fetched
and only grow, the next fetch looks only at those that the last response named (`_is_settled`).

A partition that fails waits for `replica.fetch.backoff.ms`, or less if its leader does not know yet that it leads
(`FetchState.refused`). One that cannot go on (a fenced epoch, a log that contradicts itself) is given up until the next
LeaderAndIsr. What must be flushed is flushed before the next fetch, which makes the leader count it as replicated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from kpybroker.broker.loop.steps import Pending, Steps, run_steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.peers.connection import PEER_FAILURES, Request
from kpybroker.core.replication.follower import FetchState, out_of_range, truncation
from kpybroker.core.replication.follower_session import Position
from kpybroker.core.replication.leader_epochs import UNDEFINED_EPOCH, EpochEndOffset
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.append import UnexpectedAppendOffsetError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.leader_endpoint import LeaderEndpoint
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replication_quota import ReplicationQuota
    from kpybroker.broker.replication.traffic import Traffic
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

PartitionData = FetchResponse.PartitionData

BYTES_A_UNIT = 256
"""Appended for one unit of a `YieldBudget`: a slice is some 256 KB."""
PARTITION_BYTES = 1024
"""What a partition in a response counts for in addition to its records."""

LOOK_EVERY_S = 0.5
"""How often to look at all partitions, for changes that the fetcher is not notified of: log starts that retention has
moved here, logs that failed. An idle follower fetches as often."""

_QUIET_ERRORS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
"""The other broker does not know yet that it leads, or that it no longer does: usual after every election."""

_TRANSIENT_ERRORS = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.KAFKA_STORAGE_ERROR)
"""The leader's file in a transient state, or a full disk here: the next fetch may succeed."""


class FollowedReplicas(Protocol):
    """What a fetcher asks of the broker's partitions (`replicas.Replicas`)."""

    state_change_lock: trio.Lock
    flush_soon: Callable[[Partition], None]
    traffic: Traffic

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition, or None if it is not hosted here."""

    def hosted(self, topic: str, index: int) -> Partition:
        """The partition. Raises KafkaError."""

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Truncate its log; the caller holds `state_change_lock`. Raises LogDirError."""

    def restart_log(self, partition: Partition, offset: int) -> None:
        """Discard its records and start again at `offset`. Raises LogDirError."""


class FollowerFetcher:
    """`follow`, `leave`, `set_topic_id` and `end` may be called at any time, between two steps of the task."""

    def __init__(
        self, host: Host, replicas: FollowedReplicas, endpoint: LeaderEndpoint, quota: ReplicationQuota
    ) -> None:
        self._host = host
        self._replicas = replicas
        self._endpoint = endpoint
        self._quota = quota
        self._name = (
            f"[ReplicaFetcher replicaId={host.node_id}, leaderId={endpoint.leader_id}, fetcherId={endpoint.number}]"
        )
        self._has_work = trio.Event()
        self._scope = trio.CancelScope()
        self._asked: dict[TopicPartition, FetchState] = {}
        self._asked_names: dict[bytes, str] = {}  # of topics, by id
        self._grown: list[TopicPartition] = []  # by the last response
        self._is_settled = False
        self._next_look_at = 0.0
        self._unfinished: Pending[None] | None = None
        self.has_ended = False
        self.partitions: dict[TopicPartition, FetchState] = {}

    def follow(self, state: FetchState) -> None:
        """Fetch one more partition, or one that is in a new state."""
        self.partitions[TopicPartition(state.topic, state.index)] = state
        self._is_settled = False
        self._has_work.set()

    def leave(self, key: TopicPartition) -> None:
        """Stop fetching a partition, if it is fetched here."""
        if self.partitions.pop(key, None) is not None:
            self._is_settled = False

    def set_topic_id(self, key: TopicPartition, topic_id: bytes) -> None:
        """The topic has got its id: ask for it by id from the next fetch on."""
        if (state := self.partitions.get(key)) is not None:
            state.topic_id = topic_id
            self._is_settled = False

    def end(self) -> None:
        """Make `run` return."""
        self.has_ended = True
        self._scope.cancel()

    async def run(self) -> None:
        """Follow until `end`, then close the connection."""
        logger.info("%s Starting", self._name)
        try:
            with trio.CancelScope() as self._scope:
                while not self.has_ended:
                    await self._step()
        finally:
            self._endpoint.close()
            logger.info("%s Stopped", self._name)

    async def _step(self) -> None:
        try:
            await self._truncate()
            sent = await self._fetch()
        except PEER_FAILURES as error:
            text = "%s Error in response for fetch request correlation_id=%d: %r"
            logger.info(text, self._name, self._endpoint.correlation_id, error)
            self._endpoint.session.lost()
            self._delay(self.partitions.values())
            sent = False
        if not sent:
            await self._wait()

    async def _wait(self) -> None:
        """Until the delay of some partition is over, or there are more partitions."""
        now = trio.current_time()
        waits = [state.delayed_until for state in self.partitions.values() if state.delayed_until > now]
        with trio.move_on_at(min([now + self._backoff_s, *waits])):
            await self._has_work.wait()
        self._has_work = trio.Event()

    def _ready(self) -> list[FetchState]:
        now = trio.current_time()
        return [state for state in self.partitions.values() if state.delayed_until <= now]

    @property
    def _backoff_s(self) -> float:
        return self._host.config.get_int("replica.fetch.backoff.ms") / 1000

    def _delay(self, states: Iterable[FetchState]) -> None:
        self._is_settled = False
        until = trio.current_time() + self._backoff_s
        for state in states:
            state.delayed_until = until

    def _delay_after(self, code: int, state: FetchState) -> None:
        if code in _QUIET_ERRORS:
            state.refused(trio.current_time(), self._backoff_s)
        else:
            self._delay((state,))

    def _give_up(self, state: FetchState) -> None:
        """Do not fetch it until the next LeaderAndIsr (Kafka's markPartitionFailed)."""
        logger.warning("%s Partition %s-%d marked as failed", self._name, state.topic, state.index)
        key = TopicPartition(state.topic, state.index)
        if self.partitions.get(key) is state:
            self.leave(key)

    def _is_current(self, state: FetchState) -> bool:
        return self.partitions.get(TopicPartition(state.topic, state.index)) is state

    def _partition(self, state: FetchState) -> Partition:
        return self._replicas.hosted(state.topic, state.index)

    # --- truncating

    async def _truncate(self) -> None:
        """Truncate where a log diverges from the leader's, after asking for the leader's epochs (maybeTruncate)."""
        truncating = [state for state in self._ready() if state.is_truncating]
        if not truncating:
            return
        asked: dict[TopicPartition, tuple[FetchState, int]] = {}
        for state in truncating:
            epoch = self._partition(state).online_log().latest_epoch
            if epoch == UNDEFINED_EPOCH or not self._endpoint.knows_epochs:
                await self._truncate_log(state, lambda state=state: (state.fetch_offset, True))  # type: ignore[misc]
            else:
                asked[TopicPartition(state.topic, state.index)] = (state, epoch)
        if not asked:
            return
        wanted = {key: (state.leader_epoch, epoch) for key, (state, epoch) in asked.items()}
        for key, end in (await self._endpoint.epoch_ends(wanted)).items():
            state, _ = asked[key]
            if not self._is_current(state):
                continue
            if end.error_code == ErrorCode.FENCED_LEADER_EPOCH:
                self._give_up(state)
            elif end.error_code:
                self._delay_after(end.error_code, state)
            else:
                await self._truncate_to_epoch_end(state, EpochEndOffset(end.leader_epoch, end.end_offset))

    async def _truncate_to_epoch_end(self, state: FetchState, leader: EpochEndOffset) -> None:
        def where() -> tuple[int, bool]:
            own_log = self._partition(state).online_log()
            own = own_log.end_offset_for_epoch(leader.epoch)
            cut = truncation(leader, own, state.fetch_offset, own_log.log_end_offset)
            # If fetches report divergence, the next one finds the rest.
            return cut.offset, cut.is_complete or self._endpoint.truncates_on_fetch

        await self._truncate_log(state, where)

    async def _truncate_log(self, state: FetchState, where: Callable[[], tuple[int, bool]]) -> None:
        """Truncate a partition's log, if the partition is still in this state, and continue from there.

        The controller's requests wait: this broker must not become the leader between the decision where the log will
        end and the truncation.
        """
        with trio.CancelScope(shield=True):
            async with self._replicas.state_change_lock:
                if not self._is_current(state):
                    return
                try:
                    offset, is_complete = where()
                    await self._replicas.truncate(self._partition(state), offset)
                except LogDirError as error:
                    self._host.log_dir_failed(error)
                    return
                if self._is_current(state):  # its directory may have failed in the meantime
                    latest = self._partition(state).online_log().latest_epoch
                    state.truncated(offset, latest, is_complete=is_complete)

    # --- fetching

    async def _fetch(self) -> bool:
        """Fetch and append, over and over, until something else must be done first. False: nothing to ask for."""
        request = self._ask()
        if request is None:
            return False
        await self._endpoint.fetch(request, self._on_response)
        if self._unfinished is not None:
            unfinished, self._unfinished = self._unfinished, None
            await unfinished
        return True

    def _ask(self) -> Request | None:
        """The next fetch, to be sent now; None if there is nothing to ask for."""
        asked: dict[TopicPartition, FetchState] = {}
        positions: dict[tuple[str, int], Position] = {}
        for state in self._ready():
            if state.is_truncating:
                continue
            key = TopicPartition(state.topic, state.index)
            partition = self._replicas.partition(*key)
            if partition is None or partition.log is None:
                self._give_up(state)
                continue
            if self._is_throttled(state, partition):
                continue
            asked[key] = state
            positions[key] = self._position(state, partition.log)
        self._asked = asked
        self._asked_names = {state.topic_id: state.topic for state in asked.values()}
        self._is_settled = len(asked) == len(self.partitions)
        self._next_look_at = trio.current_time() + LOOK_EVERY_S
        return self._endpoint.fetch_request(positions)

    def _ask_again(self) -> Request | None:
        """The next fetch after a response that made logs grow."""
        session = self._endpoint.session
        if not self._is_settled or not session.is_open or trio.current_time() >= self._next_look_at:
            return None if any(state.is_truncating for state in self._ready()) else self._ask()
        changed: dict[tuple[str, int], Position] = {}
        for key in self._grown:
            partition = self._replicas.partition(*key)
            if partition is None or partition.log is None:
                return self._ask()
            changed[key] = self._position(self._asked[key], partition.log)
        return self._endpoint.fetch_request_for_changes(changed)

    def _position(self, state: FetchState, own_log: Log) -> Position:
        return Position(
            state.topic_id,
            state.fetch_offset,
            own_log.log_start_offset,
            self._host.config.get_int("replica.fetch.max.bytes"),
            state.leader_epoch,
            state.last_fetched_epoch if self._endpoint.truncates_on_fetch else UNDEFINED_EPOCH,
        )

    def _on_response(self, response: FetchResponse) -> Request | None:
        """Take a response. Returns the next fetch, unless something must be done before it."""
        if not self._endpoint.session.take_response(response.error_code, response.session_id):
            text = "%s Fetch correlation_id=%d was refused with %s"
            logger.info(text, self._name, self._endpoint.correlation_id, ErrorCode(response.error_code).name)
            if response.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ):
                self._delay(self._asked.values())
            return None
        self._unfinished = run_steps(self._take(response))
        return None if self._unfinished is not None else self._ask_again()

    def _is_throttled(self, state: FetchState, partition: Partition) -> bool:
        return (
            not state.is_in_sync
            and self._quota.is_throttled(partition)
            and self._quota.is_exceeded(self._host.clock.time_ms())
        )

    def _take(self, response: FetchResponse) -> Steps[None]:
        """Every partition in a response, then the flushes they ask for."""
        asked, positions = self._asked, self._endpoint.session.partitions
        self._grown = []
        flushes: list[tuple[Partition, int]] = []
        budget = YieldBudget()
        for topic in response.responses:
            name = topic.topic or self._asked_names.get(topic.topic_id, "")
            for data in topic.partitions:
                key = TopicPartition(name, data.partition_index)
                state = asked.get(key)
                if state is None:
                    continue
                is_unchanged = self._is_current(state) and not state.is_truncating
                if not is_unchanged or state.fetch_offset != positions[key].fetch_offset:
                    # The leader sends high watermark and log start once a session: a new session sends them again.
                    self._endpoint.session.lost()
                elif data.error_code:
                    yield partial(self._take_error, state, data.error_code)
                elif data.diverging_epoch is not None and data.diverging_epoch.epoch != UNDEFINED_EPOCH:
                    diverging = EpochEndOffset(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
                    yield partial(self._truncate_to_epoch_end, state, diverging)
                else:
                    self._append(state, data, flushes)
                    self._grown.append(key)
                yield from budget.steps((PARTITION_BYTES + len(data.records or b"")) // BYTES_A_UNIT)
        if flushes:
            yield partial(self._flush, flushes)

    async def _flush(self, flushes: list[tuple[Partition, int]]) -> None:
        for partition, end in flushes:
            try:
                await partition.flush(end)
            except LogDirError as error:
                self._host.log_dir_failed(error)
            except KafkaError as error:
                logger.warning("%s %s-%d: %s", self._name, partition.topic, partition.index, error)

    def _append(self, state: FetchState, data: PartitionData, flushes: list[tuple[Partition, int]]) -> None:
        """Append what the leader sent for one partition (processPartitionData)."""
        try:
            partition = self._partition(state)
            own_log = partition.online_log()
            if own_log.log_end_offset != state.fetch_offset:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Offset mismatch: fetched offset = {state.fetch_offset}, log end = {own_log.log_end_offset}",
                )
            records = memoryview(data.records or b"")
            info = partition.append_as_follower(records, data.high_watermark, data.log_start_offset)
        except LogDirError as error:
            self._give_up(state)
            self._host.log_dir_failed(error)
            return
        except (KafkaError, UnexpectedAppendOffsetError) as error:
            text = "%s Cannot append to %s-%d what fetch correlation_id=%d returned: %s"
            logger.error(text, self._name, state.topic, state.index, self._endpoint.correlation_id, error)
            if isinstance(error, KafkaError) and error.code in _TRANSIENT_ERRORS:
                self._delay((state,))
            else:
                self._give_up(state)
            return
        self._replicas.traffic.replication_bytes_in += info.size
        next_offset = info.last_offset + 1 if info.size else state.fetch_offset
        if info.size and logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "%s Follower has replica log end offset %d after appending %d bytes of messages for partition %s-%d, "
                "high watermark %d, fetch correlation_id=%d",
                *(self._name, next_offset, info.size, state.topic, state.index),
                *(data.high_watermark, self._endpoint.correlation_id),
            )
        state.fetched(next_offset, data.high_watermark, own_log.latest_epoch if info.size else UNDEFINED_EPOCH)
        if info.size and self._quota.is_throttled(partition):
            self._is_settled = False
            self._quota.record(info.size, self._host.clock.time_ms())
        if info.rolled:
            self._replicas.flush_soon(partition)
        if info.flush_required:
            flushes.append((partition, next_offset))

    async def _take_error(self, state: FetchState, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._find_range(state)
            return
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            older = "%s Epoch %d of partition %s-%d is older than its leader's: waiting for the next LeaderAndIsr"
            logger.info(older, self._name, state.leader_epoch, state.topic, state.index)
            self._give_up(state)
            return
        level = logging.INFO if code in _QUIET_ERRORS else logging.ERROR
        name, correlation_id = ErrorCode(code).name, self._endpoint.correlation_id
        text = "%s Error for partition %s-%d in fetch correlation_id=%d: %s"
        logger.log(level, text, self._name, state.topic, state.index, correlation_id, name)
        self._delay_after(code, state)

    async def _find_range(self, state: FetchState) -> None:
        """The leader's log starts after or ends before the fetch offset (fetchOffsetAndTruncate)."""
        try:
            end = await self._endpoint.latest_offset(state)
            start = await self._endpoint.earliest_offset(state)
        except KafkaError as error:
            if error.code == ErrorCode.FENCED_LEADER_EPOCH:
                self._give_up(state)
            else:
                self._delay((state,))
            return
        with trio.CancelScope(shield=True):
            async with self._replicas.state_change_lock:
                if not self._is_current(state):
                    return
                partition = self._partition(state)
                own_log = partition.online_log()
                step = out_of_range(own_log.log_end_offset, start, end)
                logger.warning(
                    "%s Reset fetch offset for partition %s-%d from %d to %d: the leader has %d to %d",
                    self._name,
                    state.topic,
                    state.index,
                    state.fetch_offset,
                    step.fetch_offset,
                    start,
                    end,
                )
                try:
                    if step.truncate_to is not None:
                        await self._replicas.truncate(partition, step.truncate_to)
                    elif step.restart_at is not None:
                        self._replicas.restart_log(partition, step.restart_at)
                except LogDirError as error:
                    self._host.log_dir_failed(error)
                    return
                if self._is_current(state):
                    state.truncated(step.fetch_offset, own_log.latest_epoch, is_complete=True)
                    state.lag = step.lag
