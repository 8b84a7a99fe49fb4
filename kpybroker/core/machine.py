"""What the log-backed state machines (group, transaction) have in common: the values that go in and out.

A state machine is given a request, a ticket and the time, and returns an `Outcome`: replies to send now, batches to
append, reads that must wait, lines to log. The shell, which does the I/O for one partition and its state machine,

1. appends each `Write` as one batch and, if the append succeeds, calls `replay` for each of its records;
2. calls `settle(write.done, error, now)` when the high watermark has passed the batch, or the append or the wait
   failed;
3. does the same for each `Read`, which appends nothing.

So a record changes durable state when it is in the log, and no client sees the change before it is committed. A failed
append changes nothing durable. Anything else a state machine needs done is an effect, whose result arrives as an event.
A state machine has no clock, randomness or I/O: time and ids are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, Self, TypeVar

from kpybroker.core.log.verification import NO_VERIFICATION, VerificationGuard
from kpybroker.wire.errors import ErrorCode

# Identifies a waiting request to the shell; a state machine only stores it and returns it with the reply.
Ticket = object

R = TypeVar("R")  # the state machine's records
S = TypeVar("S")  # the state machine's step: what one call into it carries


class Now(NamedTuple):
    """The time on two clocks: `wall_ms` goes into records, `monotonic` (seconds) drives timers."""

    wall_ms: int
    monotonic: float


class LogLevel(IntEnum):
    """Levels of `logging`, which `core` may not import."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


@dataclass(frozen=True, slots=True)
class LogLine:
    """An effect: a line for the broker's log."""

    level: LogLevel
    text: str


@dataclass(frozen=True, slots=True)
class Write(Generic[R, S]):
    """Records that become one batch; with a producer id it is transactional, and verified by the guard (KIP-890)."""

    records: tuple[R, ...]
    done: Callable[[S, ErrorCode], None]
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    verification_guard: VerificationGuard = NO_VERIFICATION


@dataclass(frozen=True, slots=True)
class Read(Generic[S]):
    """A reply that must wait until the high watermark has reached `offset`."""

    offset: int
    done: Callable[[S, ErrorCode], None]


@dataclass(slots=True)
class Outcome(Generic[R, S]):
    """What to do, in this order: effects (log lines, and those of one machine), replies, writes, reads."""

    effects: list[object] = field(default_factory=list)
    replies: list[tuple[Ticket, object]] = field(default_factory=list)
    writes: list[Write[R, S]] = field(default_factory=list)
    reads: list[Read[S]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.effects or self.replies or self.writes or self.reads)


class Step(Generic[R]):
    """One call into a state machine: when it happens, and the outcome it fills. Each machine adds what it needs."""

    __slots__ = ("now", "outcome")

    def __init__(self, now: Now) -> None:
        self.now = now
        self.outcome: Outcome[R, Self] = Outcome()

    def reply(self, ticket: Ticket, result: object) -> None:
        """Reply to the request that came with `ticket`; each ticket gets one reply."""
        self.outcome.replies.append((ticket, result))

    def write(
        self,
        records: Iterable[R],
        done: Callable[[Self, ErrorCode], None],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        verification_guard: VerificationGuard = NO_VERIFICATION,
    ) -> None:
        """Append the records as one batch; `done` is called by `settle` when it is committed or has failed."""
        self.outcome.writes.append(
            Write(tuple(records), done, producer_id, producer_epoch, base_sequence, verification_guard)
        )

    def read(self, offset: int, done: Callable[[Self, ErrorCode], None]) -> None:
        """Call `done` when the high watermark has reached `offset`, or the wait for it has failed."""
        self.outcome.reads.append(Read(offset, done))

    def info(self, text: str) -> None:
        """Log a line at INFO."""
        self.outcome.effects.append(LogLine(LogLevel.INFO, text))

    def warn(self, text: str) -> None:
        """Log a line at WARNING."""
        self.outcome.effects.append(LogLine(LogLevel.WARNING, text))
