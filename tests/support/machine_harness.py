"""A harness for a log-backed state machine: a clock to advance, a log that can fail, and one command a line of text.

It does in memory what a coordinator's shard does: it appends and replays what is written, and settles it at once, or
when `release` moves the high watermark that `hold` stopped. `fail CODE` makes the next append fail. The harness of each
state machine defines its requests and their text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

from kpybroker.core.machine import LogLine, Now
from kpybroker.wire.errors import ErrorCode

EPOCH_MS = 1_000_000

Done = Callable[[Any, ErrorCode], None]


class MachineHarness(ABC):
    """`log` is what the state machine has written; `output` that of the present block of a scenario."""

    machine: Any

    def __init__(self) -> None:
        self.time_ms = 0
        self.log: list[Any] = []
        self.asked: set[str] = set()
        self.replies: dict[str, object] = {}
        self.output: list[str] = []
        self.fail_next: ErrorCode | None = None
        self._holds = False
        self._held: list[Done] = []

    @property
    def now(self) -> Now:
        return Now(EPOCH_MS + self.time_ms, self.time_ms / 1000)

    # --- what a harness defines for its state machine

    @abstractmethod
    def append(self, record: Any, write: Any) -> None:
        """Append one record of a write to the log, and replay it."""

    @abstractmethod
    def render(self, result: Any) -> str:
        """A reply as text."""

    @abstractmethod
    def request(self, command: str, name: str, arguments: list[str]) -> object:
        """A request from a line of text."""

    def carry_out(self, effect: object) -> None:
        """Perform an effect of an outcome; log lines are dropped."""
        assert isinstance(effect, LogLine)

    @abstractmethod
    def check(self) -> None:
        """Assert that the log agrees with the state machine."""

    # --- the shell's part

    def ask(self, ticket: str, request: Any) -> None:
        assert ticket not in self.asked, f"the ticket {ticket} is used twice"
        self.asked.add(ticket)
        self.run(self.machine.handle(request, ticket, self.now))

    def run(self, outcome: Any) -> None:
        outcomes = deque([outcome])
        while outcomes:
            outcome = outcomes.popleft()
            for effect in outcome.effects:
                self.carry_out(effect)
            for ticket, result in outcome.replies:
                assert ticket in self.asked, f"{ticket} was never handed in"
                assert ticket not in self.replies, f"{ticket} gets two replies"
                self.replies[ticket] = result
                self.output.append(f"{ticket} <- {self.render(result)}")
            for write in outcome.writes:
                if self.fail_next is not None:
                    error, self.fail_next = self.fail_next, None
                    outcomes.append(self.machine.settle(write.done, error, self.now))
                    continue
                for record in write.records:
                    self.append(record, write)
                outcomes.extend(self._hold_or_settle(write.done))
            for read in outcome.reads:
                assert read.offset <= len(self.log)
                outcomes.extend(self._hold_or_settle(read.done))

    def _hold_or_settle(self, done: Done) -> list[Any]:
        if self._holds:
            self._held.append(done)
            return []
        return [self.machine.settle(done, ErrorCode.NONE, self.now)]

    def settle_held(self, error: ErrorCode = ErrorCode.NONE) -> None:
        held, self._held = self._held, []
        for done in held:
            self.run(self.machine.settle(done, error, self.now))

    def resign(self) -> None:
        """The coordinator stops; waits for the high watermark fail."""
        self.run(self.machine.unload(self.now))
        self.do_release(ErrorCode.NOT_LEADER_OR_FOLLOWER.name)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, firing every timer at its own time."""
        end = self.time_ms + milliseconds
        while (deadline := self.machine.deadline) is not None and round(deadline * 1000) <= end:
            self.time_ms = max(self.time_ms, round(deadline * 1000))
            before = len(self.output)
            self.run(self.machine.expire(Now(EPOCH_MS + self.time_ms, max(self.now.monotonic, deadline))))
            if len(self.output) > before:
                self.output.insert(before, f"at {self.time_ms}")
        self.time_ms = end

    # --- commands

    def perform(self, line: str) -> None:
        """One command; a request is `ticket: command id arguments`, anything else `command arguments`."""
        ticket, colon, rest = line.partition(": ")
        if colon and " " not in ticket:
            command, name, *arguments = rest.split()
            self.ask(ticket, self.request(command, name, arguments))
        else:
            command, *arguments = line.split()
            getattr(self, f"do_{command.replace('-', '_')}")(*arguments)
        self.check()

    def do_after(self, milliseconds: str) -> None:
        self.advance(int(milliseconds))

    def do_fail(self, error: str) -> None:
        self.fail_next = ErrorCode[error]

    def do_hold(self) -> None:
        self._holds = True

    def do_release(self, error: str = "NONE") -> None:
        self._holds = False
        self.settle_held(ErrorCode[error])
