"""One call into the group machine: when it happens, what it may consult, and the outcome it fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kpybroker.core.group.records import Record
from kpybroker.core.group.state import Group
from kpybroker.core.group.timers import Timers
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.log.producer_state import NO_VERIFICATION, VerificationGuard
from kpybroker.core.machine import LogLevel, LogLine, Now, Outcome, Read, Ticket, Write
from kpybroker.wire.errors import ErrorCode


class GroupStep:
    __slots__ = ("config", "forgotten", "now", "outcome", "timers")

    def __init__(self, now: Now, config: GroupConfig, timers: Timers) -> None:
        self.now = now
        self.config = config
        self.timers = timers
        self.outcome: GroupOutcome = Outcome()
        self.forgotten: list[Group] = []

    def reply(self, ticket: Ticket, result: object) -> None:
        self.outcome.replies.append((ticket, result))

    def write(
        self,
        records: Iterable[Record],
        done: Callable[[GroupStep, ErrorCode], None],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        verification_guard: VerificationGuard = NO_VERIFICATION,
    ) -> None:
        self.outcome.writes.append(
            Write(tuple(records), done, producer_id, producer_epoch, base_sequence, verification_guard)
        )

    def read(self, offset: int, done: Callable[[GroupStep, ErrorCode], None]) -> None:
        self.outcome.reads.append(Read(offset, done))

    def forget(self, group: Group) -> None:
        """The group has come to nothing without ever leaving a record."""
        self.forgotten.append(group)

    def info(self, text: str) -> None:
        self.outcome.effects.append(LogLine(LogLevel.INFO, text))

    def warn(self, text: str) -> None:
        self.outcome.effects.append(LogLine(LogLevel.WARNING, text))

    def after(self, delay_ms: float) -> float:
        """The deadline that lies `delay_ms` from now."""
        return self.now.monotonic + delay_ms / 1000


GroupOutcome = Outcome[Record, GroupStep]
