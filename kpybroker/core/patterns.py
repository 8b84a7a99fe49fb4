"""Patterns of topic names, in RE2's language: what members of consumer groups subscribe with (KIP-848).

Kafka uses RE2/J, this module RE2 itself: matching takes time linear in the name, whatever the pattern. Python's `re`
never receives a client's pattern.

Rules. RE2 is loaded at the first pattern. Building a program from a pattern is not linear, and RE2 keeps Python's
global lock meanwhile, so patterns are limited in length and programs in memory: PATTERN_LENGTH_MAX and
PROGRAM_BYTES_MAX keep the worst pattern below 50 ms. Matching releases the lock, so `resolve` may run in a thread as
well as between other work on the loop. A `Pattern` may be used by several threads.

Names are ASCII, as topic names are. See docs/decisions/patterns.md for the figures, and for where RE2 and RE2/J differ.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.yield_budget import WorkBudget

PATTERN_LENGTH_MAX = 4096
"""Characters. Kafka has no limit of its own."""

PROGRAM_BYTES_MAX = 96 * 1024
"""RE2's `max_mem`, for the program and the states that it has met: about 8 000 characters or 4 000 repetitions."""

_SHOWN_MAX = 100
_STEPS_PER_UNIT = 1000
"""Of matching: characters of the name times instructions of the program. Most take far less."""

_DESCRIPTIONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "invalid character class": "invalid character class range",
}
"""RE2's words, and RE2/J's for the same error where they differ."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A valid pattern; `text` is as the client sent it."""

    text: str
    _program: Any

    def matches(self, name: str) -> bool:
        """Whether the whole of a topic name matches."""
        return self._program.fullmatch(name.encode()) is not None

    def cost(self, name: str) -> int:
        """Of `matches`, at most, in the units of `WorkBudget`."""
        return 2 + len(name) * int(self._program.programsize) // _STEPS_PER_UNIT


def compile_pattern(text: str) -> Pattern:
    """The pattern, or KafkaError INVALID_REGULAR_EXPRESSION with Kafka's text."""
    if len(text) > PATTERN_LENGTH_MAX:
        raise _invalid(f"{text[:_SHOWN_MAX]}...", f"it has more than {PATTERN_LENGTH_MAX} characters")
    import re2

    options = re2.Options()
    options.max_mem = PROGRAM_BYTES_MAX
    options.log_errors = False
    options.never_capture = True
    if text.isascii() and r"\x{" not in text:
        options.encoding = re2.Options.Encoding.LATIN1  # a class such as \pL is then a tenth as large
    try:
        return Pattern(text, re2.compile(text.encode(), options))
    except re2.error as error:
        raise _invalid(text, _described(error.args[0].decode(errors="replace"))) from None


def resolve(patterns: Iterable[Pattern], names: Iterable[str]) -> Generator[None, None, dict[str, frozenset[str]]]:
    """The names that each pattern matches, by its text. Yields between slices; `names` must not change meanwhile."""
    budget = WorkBudget()
    resolved: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        matching = set()
        for name in names:
            if pattern.matches(name):
                matching.add(name)
            if budget.is_spent(pattern.cost(name)):
                yield
        resolved[pattern.text] = frozenset(matching)
    return resolved


def _described(error: str) -> str:
    """RE2 adds the part of the pattern that it does not accept; Kafka's text has the whole pattern already."""
    kind, _, _ = error.partition(": ")
    return _DESCRIPTIONS.get(kind, kind)


def _invalid(shown: str, description: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{shown}` is not a valid regular expression: {description}.",
    )
