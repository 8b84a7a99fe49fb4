r"""Sets of characters: bits for those of ASCII, and for all others what can be asked about one code point at a time.

Names of topics are ASCII, so for them a set is 128 bits. Transactional ids may have any characters, and a class as
`\pL` has a hundred thousand of them: they are never listed. Which characters have a category says Python's Unicode, of
which script they are says `scripts`, and which are equal when case is ignored says `folding`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol

from kpybroker.core.patterns.folding import orbit
from kpybroker.core.patterns.scripts import is_script, ranges_of

_ASCII_SIZE: Final = 128
_ASCII_BITS: Final = (1 << _ASCII_SIZE) - 1
_CODE_MAX: Final = 0x10FFFF


class Part(Protocol):
    """Some of the code points that are not ASCII."""

    def has(self, code: int) -> bool:
        """Whether this code point, which is not ASCII, is one of them."""
        ...


@dataclass(frozen=True, slots=True)
class CharSet:
    """Characters: `bits` are those of ASCII; another is in the set if it is in one of `others`."""

    bits: int = 0
    others: tuple[Part, ...] = ()

    def __bool__(self) -> bool:
        """False for a set that is known to be empty."""
        return bool(self.bits or self.others)

    def has(self, code: int) -> bool:
        """Whether a code point is in the set."""
        if code < _ASCII_SIZE:
            return bool(self.bits >> code & 1)
        return any(part.has(code) for part in self.others)


@dataclass(frozen=True, slots=True)
class _Range:
    first: int
    last: int

    def has(self, code: int) -> bool:
        return self.first <= code <= self.last


@dataclass(frozen=True, slots=True)
class _Category:
    """All whose category begins so. Code points without a character have none, as in RE2."""

    name: str

    def has(self, code: int) -> bool:
        category = unicodedata.category(chr(code))
        return category.startswith(self.name) and category != "Cn"


@dataclass(frozen=True, slots=True)
class _Script:
    name: str

    def has(self, code: int) -> bool:
        return any(code in some for some in ranges_of(self.name))


@dataclass(frozen=True, slots=True)
class _Not:
    parts: tuple[Part, ...]

    def has(self, code: int) -> bool:
        return not any(part.has(code) for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Folded:
    chars: CharSet

    def has(self, code: int) -> bool:
        return any(self.chars.has(equal) for equal in orbit(code))


NO_CHARS: Final = CharSet()
ASCII: Final = CharSet(_ASCII_BITS)
ANY: Final = CharSet(_ASCII_BITS, (_Range(_ASCII_SIZE, _CODE_MAX),))


def char(code: int) -> CharSet:
    """One character."""
    return char_range(code, code)


def char_range(first: int, last: int) -> CharSet:
    """Code points from `first` to `last`, both included."""
    bits = ((1 << min(last + 1, _ASCII_SIZE)) - 1) & ~((1 << min(first, _ASCII_SIZE)) - 1)
    return CharSet(bits, (_Range(max(first, _ASCII_SIZE), last),) if last >= _ASCII_SIZE else ())


def union(sets: Iterable[CharSet]) -> CharSet:
    """The characters of all of them."""
    bits = 0
    others: list[Part] = []
    for one in sets:
        bits |= one.bits
        others += one.others
    return CharSet(bits, tuple(others))


def negated(chars: CharSet) -> CharSet:
    """All other characters."""
    return CharSet(_ASCII_BITS & ~chars.bits, (_Not(chars.others),) if chars.others else ANY.others)


def chars_of(text: str) -> CharSet:
    """The characters of a text."""
    return union(char(ord(each)) for each in set(text))


_UPPER: Final = char_range(ord("A"), ord("Z"))
_LOWER: Final = char_range(ord("a"), ord("z"))
_DIGITS: Final = char_range(ord("0"), ord("9"))
_LETTERS: Final = union((_UPPER, _LOWER))
_CASE_DISTANCE: Final = ord("a") - ord("A")
_EQUAL_TO_ASCII: Final = {code: orbit(code) for code in (0x212A, 0x17F)}
"""The only other characters that equal ASCII ones when case is ignored: the Kelvin sign (k) and the long s (s)."""


def folded(chars: CharSet) -> CharSet:
    """With all that equal one of these when case is ignored."""
    bits = chars.bits
    bits |= (bits & _UPPER.bits) << _CASE_DISTANCE | (bits & _LOWER.bits) >> _CASE_DISTANCE
    for code, equal in _EQUAL_TO_ASCII.items():
        if chars.has(code):
            bits |= union(char(each) for each in equal).bits
    has_others = chars.others or any(chars.has(each) for equal in _EQUAL_TO_ASCII.values() for each in equal)
    return CharSet(bits, (_Folded(chars),) if has_others else ())


WORD: Final = union((_LETTERS, _DIGITS, chars_of("_")))
NEW_LINE: Final = chars_of("\n")
PERL_CLASSES: Final = {"d": _DIGITS, "s": chars_of("\t\n\f\r "), "w": WORD}
"""By the letter after the backslash; a capital letter negates."""

_GRAPH: Final = char_range(ord("!"), ord("~"))
POSIX_CLASSES: Final = {
    "alnum": union((_LETTERS, _DIGITS)),
    "alpha": _LETTERS,
    "ascii": ASCII,
    "blank": chars_of("\t "),
    "cntrl": union((char_range(0, 31), char(127))),
    "digit": _DIGITS,
    "graph": _GRAPH,
    "lower": _LOWER,
    "print": union((_GRAPH, chars_of(" "))),
    "punct": CharSet(_GRAPH.bits & ~(_LETTERS.bits | _DIGITS.bits)),
    "space": chars_of("\t\n\v\f\r "),
    "upper": _UPPER,
    "word": WORD,
    "xdigit": union((_DIGITS, chars_of("abcdefABCDEF"))),
}

_CATEGORIES: Final = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""


@cache
def unicode_class(name: str) -> CharSet | None:
    r"""What is between the braces of \p{}; None if there is no such category or script in RE2/J 1.8."""
    if name == "Any":
        return ANY
    if name in _CATEGORIES.split():
        codes = range(_ASCII_SIZE)
        bits = sum(1 << code for code in codes if unicodedata.category(chr(code)).startswith(name))
        return CharSet(bits, (_Category(name),))
    if is_script(name):
        bits = sum(1 << code for some in ranges_of(name) for code in some if code < _ASCII_SIZE)
        return CharSet(bits, (_Script(name),))
    return None
