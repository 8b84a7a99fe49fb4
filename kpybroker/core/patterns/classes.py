"""Sets of characters as bits of an integer, over the few characters that can decide about a topic name.

Names are ASCII, so a character class is 128 bits. Two more stand for the only other characters that ASCII ones equal
when case is ignored: the Kelvin sign (k) and the long s (s). All other characters match no name, and are left out.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Final

CharSet = int

_ASCII_SIZE: Final = 128
_KELVIN, _LONG_S = "\u212a", "\u017f"
_ALPHABET: Final = (*map(chr, range(_ASCII_SIZE)), _KELVIN, _LONG_S)
ASCII: Final[CharSet] = (1 << _ASCII_SIZE) - 1
ANY: Final[CharSet] = (1 << len(_ALPHABET)) - 1
NEW_LINE: Final[CharSet] = 1 << ord("\n")


def char(code: int) -> CharSet:
    """One character; empty if it can be in no name."""
    return char_range(code, code)


def char_range(first: int, last: int) -> CharSet:
    """Code points from `first` to `last`, both included."""
    ascii_part = ((1 << min(last + 1, _ASCII_SIZE)) - 1) & ~((1 << min(first, _ASCII_SIZE)) - 1)
    others = (_KELVIN, _LONG_S)
    return ascii_part | sum(
        1 << (_ASCII_SIZE + index) for index, other in enumerate(others) if first <= ord(other) <= last
    )


def negated(chars: CharSet) -> CharSet:
    """All other characters."""
    return ANY & ~chars


def chars_of(text: str) -> CharSet:
    """The characters of a text."""
    return sum(char(ord(each)) for each in set(text))


_UPPER: Final = char_range(ord("A"), ord("Z"))
_LOWER: Final = char_range(ord("a"), ord("z"))
_DIGITS: Final = char_range(ord("0"), ord("9"))
_CASE_DISTANCE: Final = ord("a") - ord("A")
_EQUAL: Final = (chars_of(f"kK{_KELVIN}"), chars_of(f"sS{_LONG_S}"))


def folded(chars: CharSet) -> CharSet:
    """With all that equal one of these when case is ignored."""
    chars |= (chars & _UPPER) << _CASE_DISTANCE | (chars & _LOWER) >> _CASE_DISTANCE
    for equal in _EQUAL:
        if chars & equal:
            chars |= equal
    return chars


WORD: Final = _UPPER | _LOWER | _DIGITS | chars_of("_")
PERL_CLASSES: Final = {"d": _DIGITS, "s": chars_of("\t\n\f\r "), "w": WORD}
"""By the letter after the backslash; a capital letter negates."""

_GRAPH: Final = char_range(ord("!"), ord("~"))
POSIX_CLASSES: Final = {
    "alnum": _UPPER | _LOWER | _DIGITS,
    "alpha": _UPPER | _LOWER,
    "ascii": ASCII,
    "blank": chars_of("\t "),
    "cntrl": char_range(0, 31) | char(127),
    "digit": _DIGITS,
    "graph": _GRAPH,
    "lower": _LOWER,
    "print": _GRAPH | chars_of(" "),
    "punct": _GRAPH & ~(_UPPER | _LOWER | _DIGITS),
    "space": chars_of("\t\n\v\f\r "),
    "upper": _UPPER,
    "word": WORD,
    "xdigit": _DIGITS | chars_of("abcdefABCDEF"),
}

_CATEGORIES: Final = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""
_OTHER_SCRIPTS: Final = """
Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian
Cham Cherokee Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic
Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi
Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Lepcha Limbu Linear_B Lisu
Lycian Lydian Malayalam Mandaic Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian
Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala
Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh
Ugaritic Unknown Vai Yi
"""
"""What RE2/J 1.8 has besides Latin and Common. None has a character that counts here."""


@cache
def _tables() -> dict[str, CharSet]:
    """All names that RE2/J knows."""
    categories = [unicodedata.category(each) for each in _ALPHABET]
    tables = dict.fromkeys(_OTHER_SCRIPTS.split(), 0)
    for name in _CATEGORIES.split():
        tables[name] = sum(1 << index for index, each in enumerate(categories) if each.startswith(name))
    latin = _UPPER | _LOWER | char(ord(_KELVIN)) | char(ord(_LONG_S))
    return tables | {"Any": ANY, "Latin": latin, "Common": negated(latin)}


def unicode_class(name: str) -> CharSet | None:
    r"""What is between the braces of \p{}; None if there is no such category or script."""
    return _tables().get(name)
