"""What a pattern is made of: trees of five kinds of nodes, simplified while they are made.

A tree says which names of at most NAME_LENGTH_MAX characters match, and no more. So what only longer names could match
is `NEVER`, and a repetition that such a name cannot exhaust has no end. That keeps programs small: a few characters of
pattern can ask for a million repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from kpybroker.core.patterns.classes import ASCII, CharSet
from kpybroker.core.topic_names import MAX_NAME_LENGTH

NAME_LENGTH_MAX: Final = MAX_NAME_LENGTH
ENDLESS: Final = -1
"""As the maximum of a repetition."""


class Gap(IntFlag):
    """What is true of a place between two characters of a name, or at one of its ends."""

    ANY = 0
    BEGIN_TEXT = 1
    END_TEXT = 2
    BEGIN_LINE = 4
    END_LINE = 8
    WORD_BOUNDARY = 16
    NO_WORD_BOUNDARY = 32


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a pattern. `size` is how many instructions it needs at most, `depth` how deep its tree is.

    `is_empty_anywhere`: it matches the empty text at every place, so it asserts nothing.
    """

    length_min: int
    size: int
    depth: int
    is_empty_anywhere: bool


@dataclass(frozen=True, slots=True)
class Chars(Node):
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Assertion(Node):
    """No character, where `gap` is true."""

    gap: Gap


@dataclass(frozen=True, slots=True)
class Concat(Node):
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternate(Node):
    """Any one of them; of none, nothing matches."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """From `least` to `most` times."""

    part: Node
    least: int
    most: int


NEVER: Final = Alternate(NAME_LENGTH_MAX + 1, 1, 1, False, ())


def assertion(gap: Gap) -> Node:
    """The empty text, where `gap` is true."""
    return Assertion(0, 1, 1, gap is Gap.ANY, gap)


EMPTY: Final = assertion(Gap.ANY)


def chars(allowed: CharSet) -> Node:
    """One character that a name can have."""
    return Chars(1, 1, 1, False, allowed & ASCII) if allowed & ASCII else NEVER


def concat(parts: Iterable[Node]) -> Node:
    """`parts`, without those that make no difference."""
    kept = [part for part in parts if part is not EMPTY]
    if len(kept) <= 1:
        return kept[0] if kept else EMPTY
    length = sum(part.length_min for part in kept)
    if length > NAME_LENGTH_MAX:
        return NEVER
    is_empty = all(part.is_empty_anywhere for part in kept)
    return Concat(length, sum(part.size for part in kept), _deeper(kept), is_empty, tuple(kept))


def alternate(parts: Iterable[Node]) -> Node:
    """Any of `parts`; those that are single characters become one set."""
    single: CharSet = 0
    kept: list[Node] = []
    for part in parts:
        if isinstance(part, Chars):
            single |= part.chars
        elif part is not NEVER:
            kept.append(part)
    if single:
        kept.append(chars(single))
    if len(kept) <= 1:
        return kept[0] if kept else NEVER
    length = min(part.length_min for part in kept)
    is_empty = any(part.is_empty_anywhere for part in kept)
    return Alternate(length, 1 + sum(part.size for part in kept), _deeper(kept), is_empty, tuple(kept))


def repeat(part: Node, least: int, most: int) -> Node:
    """`part` from `least` to `most` times."""
    if most == 0 or (part is NEVER and least == 0):
        return EMPTY
    if part is NEVER or isinstance(part, Assertion):
        return part if least else EMPTY
    if isinstance(part, Repeat) and part.least == 0:
        most = ENDLESS if ENDLESS in (most, part.most) else most * part.most
        return repeat(part.part, 0, most)
    if isinstance(part, Repeat) and part.least == 1 and part.most == ENDLESS:
        return repeat(part.part, least, ENDLESS)
    if part.is_empty_anywhere:
        least = 0
    # An empty one is of use once between any two characters, where it asserts something.
    left = NAME_LENGTH_MAX - least * part.length_min if part.length_min else 2 * NAME_LENGTH_MAX + 1
    if left < 0:
        return NEVER
    if (most - least) * max(part.length_min, 1) > left:
        most = ENDLESS
    if (least, most) == (1, 1):
        return part
    copies = max(least, 1) if most == ENDLESS else most
    is_empty = least == 0 or part.is_empty_anywhere
    return Repeat(least * part.length_min, copies * (part.size + 1), part.depth + 1, is_empty, part, least, most)


def _deeper(parts: Iterable[Node]) -> int:
    return 1 + max(part.depth for part in parts)
