"""What a pattern is made of: trees of five kinds of nodes, simplified while they are made.

A tree says which texts of a `Subject` match, and no more. So what only longer texts could match is `NEVER`, and a
repetition that such a text cannot exhaust has no end. For names of topics, which are short, that keeps programs small:
a few characters of pattern can ask for a million repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from kpybroker.core.patterns.classes import CharSet, union
from kpybroker.core.topic_names import MAX_NAME_LENGTH

ENDLESS: Final = -1
"""As the maximum of a repetition."""
_TOO_LONG: Final = 1 << 30


class Gap(IntFlag):
    """What is true of a place between two characters of a text, or at one of its ends."""

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


NEVER: Final = Alternate(_TOO_LONG, 1, 1, False, ())


def assertion(gap: Gap) -> Node:
    """The empty text, where `gap` is true."""
    return Assertion(0, 1, 1, gap is Gap.ANY, gap)


EMPTY: Final = assertion(Gap.ANY)


@dataclass(frozen=True, slots=True)
class Subject:
    """What patterns are matched with: texts of at most `length_max` characters, of ASCII ones alone or of any."""

    length_max: int
    is_ascii: bool

    def chars(self, allowed: CharSet) -> Node:
        """One character that a text can have."""
        kept = CharSet(allowed.bits) if self.is_ascii else allowed
        return Chars(1, 1, 1, False, kept) if kept else NEVER

    def concat(self, parts: Iterable[Node]) -> Node:
        """`parts`, without those that make no difference."""
        kept = [part for part in parts if part is not EMPTY]
        if len(kept) <= 1:
            return kept[0] if kept else EMPTY
        length = sum(part.length_min for part in kept)
        if length > self.length_max:
            return NEVER
        is_empty = all(part.is_empty_anywhere for part in kept)
        return Concat(length, sum(part.size for part in kept), _deeper(kept), is_empty, tuple(kept))

    def alternate(self, parts: Iterable[Node]) -> Node:
        """Any of `parts`; those that are single characters become one set."""
        single: list[CharSet] = []
        kept: list[Node] = []
        for part in parts:
            if isinstance(part, Chars):
                single.append(part.chars)
            elif part is not NEVER:
                kept.append(part)
        if single:
            kept.append(self.chars(union(single)))
        if len(kept) <= 1:
            return kept[0] if kept else NEVER
        length = min(part.length_min for part in kept)
        is_empty = any(part.is_empty_anywhere for part in kept)
        return Alternate(length, 1 + sum(part.size for part in kept), _deeper(kept), is_empty, tuple(kept))

    def repeat(self, part: Node, least: int, most: int) -> Node:
        """`part` from `least` to `most` times."""
        if most == 0 or (part is NEVER and least == 0):
            return EMPTY
        if part is NEVER or isinstance(part, Assertion):
            return part if least else EMPTY
        if isinstance(part, Repeat) and part.least == 0:
            most = ENDLESS if ENDLESS in (most, part.most) else most * part.most
            return self.repeat(part.part, 0, most)
        if isinstance(part, Repeat) and part.least == 1 and part.most == ENDLESS:
            return self.repeat(part.part, least, ENDLESS)
        if part.is_empty_anywhere:
            least = 0
        # An empty one is of use once between any two characters, where it asserts something.
        left = self.length_max - least * part.length_min if part.length_min else 2 * self.length_max + 1
        if left < 0:
            return NEVER
        if (most - least) * max(part.length_min, 1) > left:
            most = ENDLESS
        if (least, most) == (1, 1):
            return part
        copies = max(least, 1) if most == ENDLESS else most
        is_empty = least == 0 or part.is_empty_anywhere
        size = copies * (part.size + 1)
        return Repeat(least * part.length_min, size, part.depth + 1, is_empty, part, least, most)


TOPIC_NAMES: Final = Subject(MAX_NAME_LENGTH, is_ascii=True)
ANY_TEXT: Final = Subject(2**15 - 1, is_ascii=False)
"""As long as a string of the protocol can be."""


def _deeper(parts: Iterable[Node]) -> int:
    return 1 + max(part.depth for part in parts)
