"""One partition of an internal topic that this broker leads, and the state machine that lives in it.

The I/O driver of `core/machine.py`: it gives the machine requests, appends what the machine writes, lets it replay what
is in the log, and reports when the high watermark has passed. Everything but the waiting runs between two checkpoints,
so a machine never sees half a request. A failed append fails that request alone, as in Kafka. Lost leadership ends the
shard (`close`), and then every request that still waits gets its reply.

Not here: loading and the task for timers (`partitions`), any knowledge of groups or transactions.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, Generic

import trio

from kpybroker.broker.coordinators.kind import AnyOutcome, CoordinatorKind, Done, M
from kpybroker.broker.loop.steps import Steps, Wait, run_to_end
from kpybroker.core.machine import LogLine, Now, Write
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.append import COORDINATOR, ProducedBatches
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.builder import BatchFields, build_batch

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition


class PendingReply:
    """The ticket of one request: where the machine's result arrives."""

    __slots__ = ("_wait", "result")

    def __init__(self) -> None:
        self.result: object = None
        self._wait: Wait | None = None

    def give(self, result: object) -> None:
        """Set the result, once, and end `wait`."""
        assert self.result is None, "a request got two replies"
        self.result = result
        if self._wait is not None:
            self._wait.end()

    def wait(self, *, serves_rest: bool = False) -> Steps[Any]:
        """The result, which may be there already. `serves_rest` as of `Wait`."""
        if self.result is None:
            self._wait = Wait(inf, serves_rest=serves_rest)
            yield self._wait
        return self.result


class PendingCommit:
    """A write or read that waits, until `deadline` on trio's clock, for the high watermark to reach `offset`.

    With `flush` it waits for the disk as well: the topic has `flush.messages`.
    """

    __slots__ = ("deadline", "done", "flush", "offset")

    def __init__(self, offset: int, deadline: float, done: Done, flush: bool) -> None:
        self.offset = offset
        self.deadline = deadline
        self.done = done
        self.flush = flush


class Shard(Generic[M]):
    """`leader_epoch` is the epoch that this broker was elected in.

    `deadline_changed` is called with the machine's next deadline after every step.
    """

    def __init__(
        self,
        host: Host,
        kind: CoordinatorKind[M],
        partition: Partition,
        leader_epoch: int,
        deadline_changed: Callable[[float | None], None],
    ) -> None:
        self._host = host
        self._kind = kind
        self.partition = partition
        self.machine = kind.new_machine(leader_epoch)
        self.leader_epoch = leader_epoch
        self._deadline_changed = deadline_changed
        self._uncommitted: list[PendingCommit] = []
        self._is_settling = False
        self.is_closed = False

    def now(self) -> Now:
        """The time, as machines take it."""
        return Now(self._host.clock.time_ms(), self._host.clock.monotonic())

    def begin(self, request: object) -> PendingReply:
        """Where the machine's result for one request arrives, once all that it depends on is committed."""
        reply = PendingReply()
        self.run(self.machine.handle(request, reply, self.now()))
        return reply

    async def ask(self, request: object) -> Any:
        """The machine's result for one request."""
        return await run_to_end(self.begin(request).wait())

    def expire(self) -> None:
        """Run the machine's timers that are due."""
        self.run(self.machine.expire(self.now()))

    def close(self) -> None:
        """Leadership is lost. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        self.run(self.machine.unload(self.now()))
        self._settle_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- what the machine wants done

    def run(self, outcome: AnyOutcome) -> None:
        """Log, reply and append; settle what need not wait, and run what that results in, until nothing is left."""
        outcomes = deque([outcome])
        while outcomes:
            outcome = outcomes.popleft()
            for effect in outcome.effects:
                self._do(effect)
            for ticket, result in outcome.replies:
                assert isinstance(ticket, PendingReply)
                ticket.give(result)
            for write in outcome.writes:
                outcomes.extend(self._write(write))
            for read in outcome.reads:
                outcomes.extend(self._hold(read.offset, read.done))
        self._deadline_changed(self.machine.deadline)

    def _do(self, effect: object) -> None:
        if isinstance(effect, LogLine):
            self._kind.logger.log(effect.level, "%s", effect.text)
        else:
            assert self._kind.perform is not None, effect
            self._kind.perform(self.machine, effect, self.run)

    def _write(self, write: Write[Any, Any]) -> Iterable[AnyOutcome]:
        """Append one batch; on success its records become the machine's state."""
        now = self.now()
        if self.is_closed:
            return [self.machine.settle(write.done, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)]
        try:
            batch = self._batch(write, now.wall_ms)
            info = self.partition.append(
                ProducedBatches(batch, now.wall_ms, origin=COORDINATOR, guard=write.verification_guard)
            )
        except (ValueError, struct.error):
            # A member id contains the client id, which may be too long for the record's format.
            self._kind.logger.exception("A record of %s cannot be written", self.partition.topic)
            return [self.machine.settle(write.done, ErrorCode.UNKNOWN_SERVER_ERROR, now)]
        except KafkaError as error:
            return [self.machine.settle(write.done, error.code, now)]
        except LogDirError as error:
            self._host.log_dir_failed(error)
            return [self.machine.settle(write.done, ErrorCode.KAFKA_STORAGE_ERROR, now)]
        for index, record in enumerate(write.records):
            self.machine.replay(record, info.first_offset + index, write.producer_id)
        return self._hold(info.last_offset + 1, write.done, flush=info.flush_required)

    def _batch(self, write: Write[Any, Any], timestamp_ms: int) -> bytearray:
        return build_batch(
            [(*self._kind.encode(record), timestamp_ms) for record in write.records],
            BatchFields(
                codec=self._kind.codec,
                producer_id=write.producer_id,
                producer_epoch=write.producer_epoch,
                base_sequence=write.base_sequence,
                is_transactional=write.producer_id >= 0,
            ),
        )

    def _hold(self, offset: int, done: Done, *, flush: bool = False) -> Iterable[AnyOutcome]:
        """Settle now if `offset` is committed already, as with a single replica; else later."""
        try:
            if self.partition.high_watermark >= offset and not flush:
                return [self.machine.settle(done, ErrorCode.NONE, self.now())]
        except KafkaError as error:
            return [self.machine.settle(done, error.code, self.now())]
        deadline = trio.current_time() + self._kind.commit_timeout_s
        self._uncommitted.append(PendingCommit(offset, deadline, done, flush))
        if not self._is_settling:
            self._is_settling = True
            self._host.spawn(f"settle {self.partition.topic}-{self.partition.index}", self._settle_uncommitted)
        return ()

    # --- waiting for the high watermark

    async def _settle_uncommitted(self) -> None:
        """Runs while anything is uncommitted: at most one entry for each request in progress."""
        self._is_settling = True
        try:
            while self._uncommitted:
                await self._settle_some()
        finally:
            self._is_settling = False

    async def _settle_some(self) -> None:
        offset = min(pending.offset for pending in self._uncommitted)
        deadline = min(pending.deadline for pending in self._uncommitted)
        try:
            # What must be flushed stays above the high watermark until it is.
            flushed = max((pending.offset for pending in self._uncommitted if pending.flush), default=0)
            if flushed:
                await self.partition.flush(flushed)
            with trio.move_on_at(deadline):
                await self.partition.wait_high_watermark(offset)
            reached = self.partition.high_watermark
        except KafkaError as error:
            self._settle_all(error.code)
            return
        except LogDirError as error:
            self._settle_all(ErrorCode.KAFKA_STORAGE_ERROR)
            self._host.log_dir_failed(error)
            return
        self._settle_where(
            lambda pending: pending.offset <= (min(flushed, reached) if pending.flush else reached), ErrorCode.NONE
        )
        now = trio.current_time()
        self._settle_where(lambda pending: pending.deadline <= now, ErrorCode.REQUEST_TIMED_OUT)

    def _settle_all(self, error: ErrorCode) -> None:
        self._settle_where(lambda _: True, error)

    def _settle_where(self, is_over: Callable[[PendingCommit], bool], error: ErrorCode) -> None:
        taken = [pending for pending in self._uncommitted if is_over(pending)]
        self._uncommitted = [pending for pending in self._uncommitted if not is_over(pending)]
        for pending in taken:
            self.run(self.machine.settle(pending.done, error, self.now()))
