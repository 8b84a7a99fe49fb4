"""Following one leader: Kafka's `ReplicaFetcherThread`, as a task with one connection.

It truncates what has to be truncated, then fetches, over and over, and appends what comes. While there is no more to do
than that, answers are taken without the task (`_answered`), which wakes up for all that takes time. Between reading a
partition's state and appending to its log there is no checkpoint, and what an answer says is taken only for partitions
that still stand where they stood when it was asked for. Rules of where to fetch and cut are `core.follower`'s.

A fetch looks at every partition, as Kafka's do. While all of them are being fetched and nothing happens to them but
that they grow, the next one looks only at those that the answer named (`_is_settled`): a fetcher may follow thousands.

A partition that fails waits for `replica.fetch.backoff.ms`, or less where its leader is only about to hear of its
leadership (`FetchState.refused`); one that cannot go on (a fenced epoch, a log that
contradicts itself) is given up until the controller speaks again. What is to be flushed is flushed before the next
fetch tells the leader that it is here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.steps import Steps, Unfinished, run_steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.peers.connection import PEER_FAILURES, Request
from kpybroker.broker.replication.leader_endpoint import LeaderEndpoint
from kpybroker.core.replication.follower import FetchState, out_of_range, truncation
from kpybroker.core.replication.follower_session import Position
from kpybroker.core.replication.leader_epochs import UNDEFINED_EPOCH, EpochEndOffset
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.names import TopicPartition
from kpybroker.storage.log.append import UnexpectedAppendOffsetError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replication_quota import ReplicationQuota
    from kpybroker.storage.log.log import Log

log = logging.getLogger("kafka.server.ReplicaFetcherThread")

PartitionData = FetchResponse.PartitionData

BYTES_A_UNIT = 256
"""Appended for one unit of a `YieldBudget`: a slice is some 256 KB."""
PARTITION_BYTES = 1024
"""What a partition in an answer counts for beside its records."""

LOOK_EVERY_S = 0.5
"""At all partitions, for what nobody tells the fetcher: log starts that retention here has moved, logs that failed. An
idle follower's fetches come as often."""

_QUIET_ERRORS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
"""A leader that has not heard of its leadership yet, or not of its end: usual after every election."""


class Fetcher:
    """`follow`, `leave` and `set_topic_id` are for `broker.fetchers`: at any time, between two steps of this task."""

    def __init__(self, broker: Broker, leader_id: int, number: int, quota: ReplicationQuota) -> None:
        self._broker = broker
        self._name = f"[ReplicaFetcher replicaId={broker.node_id}, leaderId={leader_id}, fetcherId={number}]"
        self._quota = quota
        self._news = trio.Event()
        self._endpoint = LeaderEndpoint(broker, leader_id, number)
        self._scope = trio.CancelScope()
        self._asked: dict[TopicPartition, FetchState] = {}
        self._asked_names: dict[bytes, str] = {}  # of topics, by id
        self._grown: list[TopicPartition] = []  # by the last answer
        self._is_settled = False
        self._looks_again_at = 0.0
        self._unfinished: Unfinished[None] | None = None
        self.has_ended = False
        self.partitions: dict[TopicPartition, FetchState] = {}

    def follow(self, state: FetchState) -> None:
        """One more partition, or one in a new state."""
        self.partitions[TopicPartition(state.topic, state.index)] = state
        self._is_settled = False
        self._news.set()

    def leave(self, key: TopicPartition) -> None:
        if self.partitions.pop(key, None) is not None:
            self._is_settled = False

    def set_topic_id(self, key: TopicPartition, topic_id: bytes) -> None:
        if (state := self.partitions.get(key)) is not None:
            state.topic_id = topic_id
            self._is_settled = False

    def end(self) -> None:
        self.has_ended = True
        self._scope.cancel()

    async def run(self) -> None:
        log.info("%s Starting", self._name)
        try:
            with trio.CancelScope() as self._scope:
                while not self.has_ended:
                    await self._step()
        finally:
            self._endpoint.close()
            log.info("%s Stopped", self._name)

    async def _step(self) -> None:
        try:
            await self._truncate()
            sent = await self._fetch()
        except PEER_FAILURES as error:
            log.info("%s Error in response for fetch request: %r", self._name, error)
            self._endpoint.session.lost()
            self._delay(self.partitions.values())
            sent = False
        if not sent:
            await self._wait()

    async def _wait(self) -> None:
        """Until something may be fetched again, or there are more partitions."""
        now = trio.current_time()
        waits = [state.delayed_until for state in self.partitions.values() if state.delayed_until > now]
        with trio.move_on_at(min([now + self._backoff_s, *waits])):
            await self._news.wait()
        self._news = trio.Event()

    def _ready(self) -> list[FetchState]:
        now = trio.current_time()
        return [state for state in self.partitions.values() if state.delayed_until <= now]

    @property
    def _backoff_s(self) -> float:
        return self._broker.config.get_int("replica.fetch.backoff.ms") / 1000

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
        """Kafka's markPartitionFailed: until the next LeaderAndIsr."""
        log.warning("%s Partition %s-%d marked as failed", self._name, state.topic, state.index)
        key = TopicPartition(state.topic, state.index)
        if self.partitions.get(key) is state:
            self.leave(key)

    def _is_current(self, state: FetchState) -> bool:
        return self.partitions.get(TopicPartition(state.topic, state.index)) is state

    def _partition(self, state: FetchState) -> Partition:
        return self._broker.replicas.hosted(state.topic, state.index)

    # --- truncating

    async def _truncate(self) -> None:
        """Partitions that have to learn first where their log parts from the leader's (maybeTruncate)."""
        truncating = [state for state in self._ready() if state.is_truncating]
        if not truncating:
            return
        asked: dict[TopicPartition, tuple[FetchState, int]] = {}
        for state in truncating:
            epoch = self._partition(state).online_log().latest_epoch
            if epoch == UNDEFINED_EPOCH or not self._endpoint.knows_epochs:
                await self._cut(state, lambda state=state: (state.fetch_offset, True))  # type: ignore[misc]
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
            # The next fetch finds out the rest, where fetches do.
            return cut.offset, cut.is_complete or self._endpoint.truncates_on_fetch

        await self._cut(state, where)

    async def _cut(self, state: FetchState, where: Callable[[], tuple[int, bool]]) -> None:
        """Truncate a partition's log, if it is still ours to truncate, and go on from there.

        The controller waits meanwhile: between announcing where a log will end and cutting it there, nobody may make
        this broker its leader.
        """
        with trio.CancelScope(shield=True):
            async with self._broker.replicas.state_change_lock:
                if not self._is_current(state):
                    return
                try:
                    offset, is_complete = where()
                    await self._broker.replicas.truncate(self._partition(state), offset)
                except LogDirError as error:
                    self._broker.log_dir_failed(error)
                    return
                if self._is_current(state):  # its directory may have failed meanwhile
                    latest = self._partition(state).online_log().latest_epoch
                    state.truncated(offset, latest, is_complete=is_complete)

    # --- fetching

    async def _fetch(self) -> bool:
        """Ask and take what is answered, again and again, until something else has to be done first.

        False where there is nothing to ask for.
        """
        request = self._ask()
        if request is None:
            return False
        await self._endpoint.fetch(request, self._answered)
        if self._unfinished is not None:
            unfinished, self._unfinished = self._unfinished, None
            await unfinished
        return True

    def _ask(self) -> Request | None:
        """The next fetch, to be sent now; None where there is nothing to ask for."""
        asked: dict[TopicPartition, FetchState] = {}
        positions: dict[tuple[str, int], Position] = {}
        for state in self._ready():
            key = TopicPartition(state.topic, state.index)
            if state.is_truncating or self._is_throttled(state):
                continue
            partition = self._broker.replicas.partition(*key)
            if partition is None or partition.log is None:
                self._give_up(state)
                continue
            asked[key] = state
            positions[key] = self._position(state, partition.log)
        self._asked = asked
        self._asked_names = {state.topic_id: state.topic for state in asked.values()}
        self._is_settled = len(asked) == len(self.partitions)
        self._looks_again_at = trio.current_time() + LOOK_EVERY_S
        return self._endpoint.fetch_request(positions)

    def _ask_again(self) -> Request | None:
        """The next fetch after an answer by which logs have grown."""
        session = self._endpoint.session
        if not self._is_settled or not session.is_open or trio.current_time() >= self._looks_again_at:
            return None if any(state.is_truncating for state in self._ready()) else self._ask()
        changed: dict[tuple[str, int], Position] = {}
        for key in self._grown:
            partition = self._broker.replicas.partition(*key)
            if partition is None or partition.log is None:
                return self._ask()
            changed[key] = self._position(self._asked[key], partition.log)
        return self._endpoint.fetch_request_for_changes(changed)

    def _position(self, state: FetchState, own_log: Log) -> Position:
        return Position(
            state.topic_id,
            state.fetch_offset,
            own_log.log_start_offset,
            self._broker.config.get_int("replica.fetch.max.bytes"),
            state.leader_epoch,
            state.last_fetched_epoch if self._endpoint.truncates_on_fetch else UNDEFINED_EPOCH,
        )

    def _answered(self, response: FetchResponse) -> Request | None:
        """Take an answer; the next fetch, unless that has to wait for something."""
        if not self._endpoint.session.answered(response.error_code, response.session_id):
            log.info("%s Fetch was refused with %s", self._name, ErrorCode(response.error_code).name)
            if response.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ):
                self._delay(self._asked.values())
            return None
        self._unfinished = run_steps(self._take(response))
        return None if self._unfinished is not None else self._ask_again()

    def _is_throttled(self, state: FetchState) -> bool:
        return (
            not state.is_in_sync
            and self._quota.is_throttled(state.topic, state.index)
            and self._quota.is_exceeded(self._broker.clock.time_ms())
        )

    def _take(self, response: FetchResponse) -> Steps[None]:
        """Every partition in an answer, then what is to be flushed."""
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
                stands = self._is_current(state) and not state.is_truncating
                if not stands or state.fetch_offset != positions[key].fetch_offset:
                    # High watermark and log start are told once a session: another one tells them again.
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
                self._broker.log_dir_failed(error)
            except KafkaError as error:
                log.warning("%s %s-%d: %s", self._name, partition.topic, partition.index, error)

    def _append(self, state: FetchState, data: PartitionData, flushes: list[tuple[Partition, int]]) -> None:
        """Append what came for one partition (processPartitionData)."""
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
            self._broker.log_dir_failed(error)
            return
        except (KafkaError, UnexpectedAppendOffsetError) as error:
            log.error("%s Cannot append to %s-%d: %s", self._name, state.topic, state.index, error)
            if isinstance(error, KafkaError) and error.code in _MAY_PASS:
                self._delay((state,))
            else:
                self._give_up(state)
            return
        next_offset = info.last_offset + 1 if info.size else state.fetch_offset
        state.fetched(next_offset, data.high_watermark, own_log.latest_epoch if info.size else UNDEFINED_EPOCH)
        if info.size and self._quota.is_throttled(state.topic, state.index):
            self._is_settled = False
            self._quota.record(info.size, self._broker.clock.time_ms())
        if info.rolled:
            self._broker.flush_soon(partition)
        if info.flush_required:
            flushes.append((partition, next_offset))

    async def _take_error(self, state: FetchState, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._find_range(state)
            return
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            older = "%s Epoch %d of partition %s-%d is older than its leader's: waiting for the next LeaderAndIsr"
            log.info(older, self._name, state.leader_epoch, state.topic, state.index)
            self._give_up(state)
            return
        level = logging.INFO if code in _QUIET_ERRORS else logging.ERROR
        name = ErrorCode(code).name
        log.log(level, "%s Error for partition %s-%d: %s", self._name, state.topic, state.index, name)
        self._delay_after(code, state)

    async def _find_range(self, state: FetchState) -> None:
        """The leader's log begins after or ends before where we are (fetchOffsetAndTruncate)."""
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
            async with self._broker.replicas.state_change_lock:
                if not self._is_current(state):
                    return
                partition = self._partition(state)
                own_log = partition.online_log()
                step = out_of_range(own_log.log_end_offset, start, end)
                log.warning(
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
                        await self._broker.replicas.truncate(partition, step.truncate_to)
                    elif step.restart_at is not None:
                        self._broker.replicas.restart_log(partition, step.restart_at)
                except LogDirError as error:
                    self._broker.log_dir_failed(error)
                    return
                if self._is_current(state):
                    state.truncated(step.fetch_offset, own_log.latest_epoch, is_complete=True)
                    state.lag = step.lag


_MAY_PASS = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.KAFKA_STORAGE_ERROR)
"""A transient state of the leader's file, or a full disk of ours: the next fetch may bring it right."""
