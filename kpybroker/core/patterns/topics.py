"""Patterns, for those who use them: compile one, ask it for a text, or for the names of all topics."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Final

from kpybroker.core.patterns.nodes import TOPIC_NAMES, Subject
from kpybroker.core.patterns.parser import PatternSyntaxError, parse
from kpybroker.core.patterns.program import Program, ProgramTooLarge
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.yield_budget import WorkBudget

PATTERN_LENGTH_MAX: Final = 8192
"""Characters. Kafka has no limit of its own."""

_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Pattern:
    """A valid pattern; `text` is as the client sent it. For one task at a time, since it keeps what it has computed."""

    text: str
    _program: Program

    def matches(self, name: str) -> bool:
        """Whether the whole of a text matches. `matching` is the same with others between."""
        slices = self.matching(name, WorkBudget())
        try:
            while True:
                next(slices)
        except StopIteration as end:
            return bool(end.value)

    def matching(self, name: str, budget: WorkBudget) -> Generator[None, None, bool]:
        """`matches` in slices: yields once the budget is spent."""
        return self._program.matches(name, budget)


def compile_pattern(text: str, named: str = "SubscribedTopicRegex", subject: Subject = TOPIC_NAMES) -> Pattern:
    """The pattern for texts of this kind, or KafkaError INVALID_REGULAR_EXPRESSION with Kafka's text, in which the
    pattern is `named`.
    """
    try:
        return Pattern(text, _program(text, subject))
    except (PatternSyntaxError, ProgramTooLarge) as error:
        shown = text if len(text) <= PATTERN_LENGTH_MAX else f"{text[:_SHOWN_MAX]}..."
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"{named} `{shown}` is not a valid regular expression: {error}."
        ) from None


def pattern_problem(text: str) -> str | None:
    """What is wrong with a pattern, in RE2/J's words; None for a valid one."""
    try:
        _program(text, TOPIC_NAMES)
    except (PatternSyntaxError, ProgramTooLarge) as error:
        return str(error)
    return None


def resolve(patterns: Iterable[Pattern], names: Iterable[str]) -> Generator[None, None, dict[str, frozenset[str]]]:
    """The names that each pattern matches, by its text. Yields between slices; until the end no argument may change."""
    budget = WorkBudget()
    resolved: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        matching: set[str] = set()
        for name in names:
            if (yield from pattern.matching(name, budget)):
                matching.add(name)
            if budget.is_spent(1 + len(name) // 10):
                yield
        resolved[pattern.text] = frozenset(matching)
    return resolved


def _program(text: str, subject: Subject) -> Program:
    if len(text) > PATTERN_LENGTH_MAX:
        raise ProgramTooLarge(f"it has more than {PATTERN_LENGTH_MAX} characters")
    return Program(parse(text, subject))
