"""One partition of an internal topic that this broker leads, and the machine that lives in it.

The shell of `core/machine.py`: asks the machine, appends what it wants written, lets it replay what is in the
log, and tells it when the high watermark has passed. Everything but the waiting runs between two checkpoints,
so a machine never sees half a request. A failed append fails that request alone, as in Kafka; lost leadership
ends the shard (`close`), and then every ticket still out is answered.

Not here: loading and the timers' task (`coordinator_partitions.py`), any knowledge of groups or transactions.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import trio

from kpybroker.core.machine import LogLine, Now, Outcome, Ticket, Write
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.builder import BatchFields, build_batch

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition

AnyOutcome = Outcome[Any, Any]
Done = Callable[[Any, ErrorCode], None]


class Machine(Protocol):
    """A log-backed machine, as `GroupMachine` and `TransactionMachine` are. Its ids are of groups or transactions."""

    @property
    def deadline(self) -> float | None: ...
    def handle(self, request: Any, ticket: Ticket, now: Now) -> AnyOutcome: ...
    def expire(self, now: Now) -> AnyOutcome: ...
    def settle(self, done: Done, error: ErrorCode, now: Now) -> AnyOutcome: ...
    def replay(self, record: Any, offset: int, producer_id: int = -1) -> None: ...
    def ids(self) -> list[str]: ...
    def activate(self, ids: Iterable[str], now: Now) -> AnyOutcome: ...
    def unload(self, now: Now) -> AnyOutcome: ...


M = TypeVar("M", bound=Machine)


class Answer:
    """A ticket: the place where one request's result will be."""

    __slots__ = ("_event", "result")

    def __init__(self) -> None:
        self.result: object = None
        self._event: trio.Event | None = None

    def give(self, result: object) -> None:
        assert self.result is None, "a ticket was answered twice"
        self.result = result
        if self._event is not None:
            self._event.set()

    async def wait(self) -> object:
        if self.result is None:
            self._event = trio.Event()
            await self._event.wait()
        return self.result


class Held:
    """A write or read that waits, until `deadline`, for the high watermark to reach `offset`.

    With `flush`, then for the disk as well: `flush.messages` of the topic asks for it.
    """

    __slots__ = ("deadline", "done", "flush", "offset")

    def __init__(self, offset: int, deadline: float, done: Done, flush: bool) -> None:
        self.offset = offset
        self.deadline = deadline
        self.done = done
        self.flush = flush


class Shard(Generic[M]):
    """`leader_epoch` is the epoch this broker was elected in; `timers_changed` is called when the machine's
    next deadline may have come nearer. `commit_timeout_s` bounds the wait for the high watermark. `perform` does
    what a machine's effects beside log lines ask for; results come back by `run`.
    """

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        machine: M,
        *,
        leader_epoch: int,
        encode: Callable[[Any], tuple[bytes, bytes | None]],
        codec: Codec,
        commit_timeout_s: float,
        logger: logging.Logger,
        timers_changed: Callable[[], None],
        perform: Callable[[Shard[M], Any], None] | None = None,
    ) -> None:
        self._broker = broker
        self.partition = partition
        self.machine = machine
        self.leader_epoch = leader_epoch
        self._encode = encode
        self._codec = codec
        self._commit_timeout_s = commit_timeout_s
        self._logger = logger
        self._timers_changed = timers_changed
        self._perform = perform
        self._held: list[Held] = []
        self._is_settling = False
        self.is_closed = False

    def now(self) -> Now:
        return Now(self._broker.clock.time_ms(), self._broker.clock.monotonic())

    async def ask(self, request: object) -> Any:
        """The machine's result for one request, once all that it rests on is committed."""
        answer = Answer()
        self.run(self.machine.handle(request, answer, self.now()))
        return await answer.wait()

    def expire(self) -> None:
        self.run(self.machine.expire(self.now()))

    def close(self) -> None:
        """Leadership is lost. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        self.run(self.machine.unload(self.now()))
        self._settle(self._take_held(lambda held: True), ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # -- doing what the machine says -------------------------------------------------------------------------

    def run(self, outcome: AnyOutcome) -> None:
        """Log, reply, append, and settle at once what needs no waiting, until nothing more comes of it."""
        outcomes = deque([outcome])
        while outcomes:
            outcome = outcomes.popleft()
            for effect in outcome.effects:
                self._do(effect)
            for ticket, result in outcome.replies:
                assert isinstance(ticket, Answer)
                ticket.give(result)
            for write in outcome.writes:
                outcomes.extend(self._write(write))
            for read in outcome.reads:
                outcomes.extend(self._hold(read.offset, read.done))
        self._timers_changed()

    def _do(self, effect: object) -> None:
        if isinstance(effect, LogLine):
            self._logger.log(effect.level, "%s", effect.text)
        else:
            assert self._perform is not None, effect
            self._perform(self, effect)

    def _write(self, write: Write[Any, Any]) -> Iterable[AnyOutcome]:
        """Append one batch; on success its records become the machine's state."""
        now = self.now()
        if self.is_closed:
            return [self.machine.settle(write.done, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)]
        try:
            info = self.partition.append_internal(
                self._batch(write, now.wall_ms), now_ms=now.wall_ms, guard=write.verification_guard
            )
        except (ValueError, struct.error):
            # A member id, made of the client's own, that the record's format has no room for.
            self._logger.exception("A record of %s cannot be written", self.partition.topic)
            return [self.machine.settle(write.done, ErrorCode.UNKNOWN_SERVER_ERROR, now)]
        except KafkaError as error:
            return [self.machine.settle(write.done, error.code, now)]
        except LogDirError as error:
            self._broker.log_dir_failed(error)
            return [self.machine.settle(write.done, ErrorCode.KAFKA_STORAGE_ERROR, now)]
        for index, record in enumerate(write.records):
            self.machine.replay(record, info.first_offset + index, write.producer_id)
        return self._hold(info.last_offset + 1, write.done, flush=info.flush_required)

    def _batch(self, write: Write[Any, Any], timestamp_ms: int) -> bytearray:
        return build_batch(
            [(*self._encode(record), timestamp_ms) for record in write.records],
            BatchFields(
                codec=self._codec,
                producer_id=write.producer_id,
                producer_epoch=write.producer_epoch,
                base_sequence=write.base_sequence,
                is_transactional=write.producer_id >= 0,
            ),
        )

    def _hold(self, offset: int, done: Done, *, flush: bool = False) -> Iterable[AnyOutcome]:
        """Settle now if `offset` is committed already, as it is where there is one replica; else later."""
        try:
            if self.partition.high_watermark >= offset and not flush:
                return [self.machine.settle(done, ErrorCode.NONE, self.now())]
        except KafkaError as error:
            return [self.machine.settle(done, error.code, self.now())]
        self._held.append(Held(offset, self.now().monotonic + self._commit_timeout_s, done, flush))
        if not self._is_settling:
            self._is_settling = True
            self._broker.spawn(f"settle {self.partition.topic}-{self.partition.index}", self._settle_held)
        return ()

    # -- waiting for the high watermark ----------------------------------------------------------------------

    async def _settle_held(self) -> None:
        """Runs while anything is held. Bounded by it: one entry for each request in progress."""
        self._is_settling = True
        try:
            while self._held:
                await self._settle_some()
        finally:
            self._is_settling = False

    async def _settle_some(self) -> None:
        offset = min(held.offset for held in self._held)
        wait_s = min(held.deadline for held in self._held) - self.now().monotonic
        try:
            # What is to be flushed is not below the high watermark before it is.
            flushed = max((held.offset for held in self._held if held.flush), default=0)
            if flushed:
                await self.partition.flush(flushed)
            with trio.move_on_after(max(wait_s, 0)):
                await self.partition.wait_high_watermark(offset)
            reached = self.partition.high_watermark
        except KafkaError as error:
            self._settle(self._take_held(lambda held: True), error.code)
            return
        except LogDirError as error:
            self._settle(self._take_held(lambda held: True), ErrorCode.KAFKA_STORAGE_ERROR)
            self._broker.log_dir_failed(error)
            return
        self._settle(
            self._take_held(lambda held: held.offset <= (min(flushed, reached) if held.flush else reached)),
            ErrorCode.NONE,
        )
        now = self.now().monotonic
        self._settle(self._take_held(lambda held: held.deadline <= now), ErrorCode.REQUEST_TIMED_OUT)

    def _take_held(self, wanted: Callable[[Held], bool]) -> list[Held]:
        taken = [held for held in self._held if wanted(held)]
        self._held = [held for held in self._held if not wanted(held)]
        return taken

    def _settle(self, taken: list[Held], error: ErrorCode) -> None:
        for held in taken:
            self.run(self.machine.settle(held.done, error, self.now()))
