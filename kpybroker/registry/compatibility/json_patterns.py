"""Whether the name of a property matches a pattern, in time that is linear in the name.

Python's `re` never receives a stranger's pattern: a short one can take it forever. The language is RE2/J's
(`core.patterns`), which lacks references and looking around; of the latter the usual one, at the start, is read here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kpybroker.core.patterns.topics import Pattern, compile_pattern
from kpybroker.wire.errors import KafkaError

NAME_MAX: Final = 256
PATTERN_MAX: Final = 1000
COMPILED_MAX: Final = 256
SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")
AHEAD: Final = {"^(?!": False, "^(?=": True}
"""What a pattern with a look ahead starts with, and whether it is to match."""
ANYTHING: Final = "(?s:.*)"


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern is found in a name. One that is too long, or in another language, counts as not found."""
    if len(name) > NAME_MAX or len(pattern) > PATTERN_MAX:
        return False
    if not name.isascii():
        return _literal(pattern, name)
    ahead = next((start for start in AHEAD if pattern.startswith(start)), None)
    if ahead is not None:
        end = _end_of_group(pattern, len(ahead))
        if end is None or not matches("^" + pattern[end + 1 :], name):
            return False
        inner = _compiled(f"^(?:{pattern[len(ahead) : end]}){ANYTHING}")
        return inner is not None and inner.matches(name) == AHEAD[ahead]
    if _compiled(pattern) is None:  # with a bracket too many it would be valid inside of others
        return False
    compiled = _compiled(f"{ANYTHING}(?:{pattern}){ANYTHING}")
    return compiled is not None and compiled.matches(name)


@lru_cache(COMPILED_MAX)
def _compiled(pattern: str) -> Pattern | None:
    try:
        return compile_pattern(pattern)
    except KafkaError:
        return None


def _literal(pattern: str, name: str) -> bool:
    """For names with other characters than ASCII, which the automaton does not read: plain texts, anchored or not."""
    text = pattern.removeprefix("^").removesuffix("$")
    if SPECIAL.intersection(text):
        return False
    if pattern.startswith("^"):
        return name == text if pattern.endswith("$") else name.startswith(text)
    return name.endswith(text) if pattern.endswith("$") else text in name


def _end_of_group(pattern: str, at: int) -> int | None:
    """Where the group closes that is open at a place; None where it does not."""
    depth, in_class = 1, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                return at
        at += 1
    return None
