"""One call into the transaction machine: when it happens, and the outcome it fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kpybroker.core.machine import LogLevel, LogLine, Now, Outcome, Read, Ticket, Write
from kpybroker.core.transaction.records import TransactionRecord
from kpybroker.core.transaction.values import WriteMarkers
from kpybroker.wire.errors import ErrorCode


class TransactionStep:
    __slots__ = ("now", "outcome")

    def __init__(self, now: Now) -> None:
        self.now = now
        self.outcome: TransactionOutcome = Outcome()

    def reply(self, ticket: Ticket, result: object) -> None:
        self.outcome.replies.append((ticket, result))

    def write(self, records: Iterable[TransactionRecord], done: Callable[[TransactionStep, ErrorCode], None]) -> None:
        self.outcome.writes.append(Write(tuple(records), done))

    def read(self, offset: int, done: Callable[[TransactionStep, ErrorCode], None]) -> None:
        self.outcome.reads.append(Read(offset, done))

    def order(self, markers: WriteMarkers) -> None:
        self.outcome.effects.append(markers)

    def info(self, text: str) -> None:
        self.outcome.effects.append(LogLine(LogLevel.INFO, text))

    def warn(self, text: str) -> None:
        self.outcome.effects.append(LogLine(LogLevel.WARNING, text))


TransactionOutcome = Outcome[TransactionRecord, TransactionStep]
