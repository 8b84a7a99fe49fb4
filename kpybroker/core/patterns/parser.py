"""The language of RE2/J 1.8: its syntax, what it refuses, and its texts for that.

One pass over the pattern, in the order of RE2/J's Parser, since the first error is the one that a client receives.
What makes no difference to whether a whole name matches is read and dropped: names of groups, captures, laziness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag

from kpybroker.core.patterns import classes
from kpybroker.core.patterns.nodes import ENDLESS, Gap, Node, Subject, assertion

INVALID_CHAR_RANGE = "invalid character class range"
INVALID_ESCAPE = "invalid escape sequence"
INVALID_NAMED_CAPTURE = "invalid named capture"
INVALID_PERL_OP = "invalid or unsupported Perl syntax"
INVALID_REPEAT_OP = "invalid nested repetition operator"
INVALID_REPEAT_SIZE = "invalid repeat count"
MISSING_BRACKET = "missing closing ]"
MISSING_PAREN = "missing closing )"
MISSING_REPEAT_ARGUMENT = "missing argument to repetition operator"
TRAILING_BACKSLASH = "trailing backslash at end of expression"
DUPLICATE_NAMED_CAPTURE = "duplicate capture group name"
INTERNAL_ERROR = "regexp/syntax: internal error"
"""RE2/J's text for a parenthesis that nothing has opened."""

REPEAT_MAX = 1000
_RUNE_MAX = 0x10FFFF
_DIGITS_MAX = 8
_OCTAL, _HEX = "01234567", "0123456789abcdefABCDEF"
_C_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_GAPS = {"A": Gap.BEGIN_TEXT, "z": Gap.END_TEXT, "b": Gap.WORD_BOUNDARY, "B": Gap.NO_WORD_BOUNDARY}
_REPEATS = {"*": (0, ENDLESS), "+": (1, ENDLESS), "?": (0, 1)}


class PatternSyntaxError(Exception):
    """A pattern that RE2/J refuses; the text is its description."""


class Flag(IntFlag):
    """What `(?flags)` changes. U, for laziness, changes nothing here."""

    FOLD_CASE = 1
    DOT_NL = 2
    MULTI_LINE = 4


_FLAGS = {"i": Flag.FOLD_CASE, "s": Flag.DOT_NL, "m": Flag.MULTI_LINE, "U": Flag(0)}


@dataclass(slots=True)
class _Group:
    """An open parenthesis, or the whole pattern."""

    flags_before: Flag
    branches: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)

    def closed(self, subject: Subject) -> Node:
        """What stands between the parentheses."""
        last = subject.concat(self.parts)
        return subject.alternate([*self.branches, last]) if self.branches else last


def parse(pattern: str, subject: Subject) -> Node:
    """The tree of a pattern, as far as it matches a text of this kind. Raises PatternSyntaxError."""
    return _Parser(pattern, subject).parse()


class _Parser:
    def __init__(self, pattern: str, subject: Subject) -> None:
        self._pattern = pattern
        self._subject = subject
        self._at = 0
        self._flags = Flag(0)
        self._groups = [_Group(Flag(0))]
        self._names: set[str] = set()

    def parse(self) -> Node:
        after_repeat = False
        while self._at < len(self._pattern):
            after_repeat = self._next(after_repeat)
        if len(self._groups) > 1:
            raise PatternSyntaxError(MISSING_PAREN)
        return self._groups[0].closed(self._subject)

    def _next(self, after_repeat: bool) -> bool:
        """Read one element. True for a repetition, which no other may follow."""
        each = self._pattern[self._at]
        if each in _REPEATS:
            self._at += 1
            self._repeat(*_REPEATS[each], after_repeat)
            return True
        if each == "{":
            self._brace(after_repeat)
            return True
        if each == "(":
            self._open()
        elif each == ")":
            self._close()
        elif each == "|":
            self._at += 1
            group = self._groups[-1]
            group.branches.append(self._subject.concat(group.parts))
            group.parts = []
        elif each == "[":
            self._push(self._subject.chars(self._class()))
        elif each == "\\":
            self._escaped()
        else:
            self._at += 1
            self._push(self._plain(each))
        return False

    def _push(self, node: Node) -> None:
        self._groups[-1].parts.append(node)

    def _plain(self, each: str) -> Node:
        multi_line = Flag.MULTI_LINE in self._flags
        if each == "^":
            return assertion(Gap.BEGIN_LINE if multi_line else Gap.BEGIN_TEXT)
        if each == "$":
            return assertion(Gap.END_LINE if multi_line else Gap.END_TEXT)
        if each == ".":
            return self._subject.chars(classes.ANY if Flag.DOT_NL in self._flags else classes.negated(classes.NEW_LINE))
        return self._literal(each)

    def _literal(self, each: str) -> Node:
        return self._subject.chars(self._folded(classes.char(ord(each))))

    def _folded(self, some: classes.CharSet) -> classes.CharSet:
        return classes.folded(some) if Flag.FOLD_CASE in self._flags else some

    # --- repetitions

    def _repeat(self, least: int, most: int, after_repeat: bool) -> None:
        if self._is_next("?"):
            self._at += 1
        if after_repeat:
            raise PatternSyntaxError(INVALID_REPEAT_OP)
        parts = self._groups[-1].parts
        if not parts:
            raise PatternSyntaxError(MISSING_REPEAT_ARGUMENT)
        parts[-1] = self._subject.repeat(parts[-1], least, most)

    def _brace(self, after_repeat: bool) -> None:
        """A repetition, or the character itself; RE2/J lets no repetition follow that either."""
        counts = self._counts()
        if counts is not None:
            self._repeat(*counts, after_repeat)
        else:
            self._at += 1
            self._push(self._literal("{"))

    def _counts(self) -> tuple[int, int] | None:
        """Of `{2}`, `{2,}` or `{2,3}`; None if it is not of this form, and so is literal."""
        inner, brace, _ = self._pattern[self._at + 1 :].partition("}")
        low, comma, high = inner.partition(",")
        texts = [low, high] if comma and high else [low]
        if not brace or not all(map(_is_count, texts)):
            return None
        self._at += len(inner) + 2
        if any(len(text) > _DIGITS_MAX for text in texts):
            raise PatternSyntaxError(INVALID_REPEAT_SIZE)
        least = int(low)
        most = least if not comma else int(high) if high else ENDLESS
        if max(least, most) > REPEAT_MAX or 0 <= most < least:
            raise PatternSyntaxError(INVALID_REPEAT_SIZE)
        return least, most

    # --- groups

    def _open(self) -> None:
        before = self._flags
        if not self._is_next("(?"):
            self._at += 1
        elif self._is_next("(?P<") or self._is_next("(?<"):
            self._named()
        elif not self._perl_flags():
            return
        self._groups.append(_Group(before))

    def _named(self) -> None:
        start = self._pattern.index("<", self._at) + 1
        name, end, _ = self._pattern[start:].partition(">")
        if not end or not name or not all(each.isascii() and (each.isalnum() or each == "_") for each in name):
            raise PatternSyntaxError(INVALID_NAMED_CAPTURE)
        self._at = start + len(name) + 1
        if name in self._names:
            raise PatternSyntaxError(DUPLICATE_NAMED_CAPTURE)
        self._names.add(name)

    def _perl_flags(self) -> bool:
        """Read `(?flags)` or `(?flags:`. True for the latter, which opens a group."""
        self._at += 2
        flags, is_on, saw_flag = self._flags, True, False
        while self._at < len(self._pattern):
            each = self._pattern[self._at]
            self._at += 1
            if each in _FLAGS:
                flags = flags | _FLAGS[each] if is_on else flags & ~_FLAGS[each]
                saw_flag = True
            elif each == "-" and is_on:
                is_on, saw_flag = False, False
            elif each in ":)" and (is_on or saw_flag):
                self._flags = flags
                return each == ":"
            else:
                break
        raise PatternSyntaxError(INVALID_PERL_OP)

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise PatternSyntaxError(INTERNAL_ERROR)
        self._at += 1
        group = self._groups.pop()
        self._flags = group.flags_before
        self._push(group.closed(self._subject))

    # --- escapes

    def _escaped(self) -> None:
        kind = self._pattern[self._at + 1 : self._at + 2]
        if kind in _GAPS and kind:
            self._at += 2
            self._push(assertion(_GAPS[kind]))
        elif kind == "C":
            raise PatternSyntaxError(INVALID_ESCAPE)
        elif kind == "Q":
            text, _, _ = self._pattern[self._at + 2 :].partition("\\E")
            self._at = min(self._at + 2 + len(text) + 2, len(self._pattern))
            for each in text:
                self._push(self._literal(each))
        elif (some := self._named_class()) is not None:
            self._push(self._subject.chars(some))
        else:
            self._push(self._literal(chr(self._escape())))

    def _named_class(self) -> classes.CharSet | None:
        r"""Of `\d`, `\PN` or `\p{Greek}`; None if it is something else."""
        kind = self._pattern[self._at + 1 : self._at + 2]
        if kind and kind.lower() in classes.PERL_CLASSES:
            self._at += 2
            some = self._folded(classes.PERL_CLASSES[kind.lower()])
        elif kind and kind in "pP":
            return self._unicode_class(kind == "P")
        else:
            return None
        return classes.negated(some) if kind.isupper() else some

    def _unicode_class(self, is_negated: bool) -> classes.CharSet:
        self._at += 2
        name = self._pattern[self._at : self._at + 1]
        self._at += 1
        if name == "{":
            name, end, _ = self._pattern[self._at :].partition("}")
            if not end:
                raise PatternSyntaxError(INVALID_CHAR_RANGE)
            self._at += len(name) + 1
        if name.startswith("^"):
            name, is_negated = name[1:], not is_negated
        some = classes.unicode_class(name)
        if some is None:
            raise PatternSyntaxError(INVALID_CHAR_RANGE)
        some = self._folded(some)
        return classes.negated(some) if is_negated else some

    def _escape(self) -> int:
        """The code point of an escaped character."""
        self._at += 1
        if self._at >= len(self._pattern):
            raise PatternSyntaxError(TRAILING_BACKSLASH)
        kind = self._pattern[self._at]
        self._at += 1
        if kind == "x":
            return self._hexadecimal()
        if kind in _OCTAL and (kind == "0" or self._pattern[self._at : self._at + 1] in tuple(_OCTAL)):
            digits = kind + self._while_in(_OCTAL, 2)
            return int(digits, 8)
        if kind in _C_ESCAPES:
            return ord(_C_ESCAPES[kind])
        if kind.isascii() and kind.isalnum():
            raise PatternSyntaxError(INVALID_ESCAPE)
        return ord(kind)

    def _hexadecimal(self) -> int:
        if self._is_next("{"):
            digits, brace, _ = self._pattern[self._at + 1 :].partition("}")
            self._at += len(digits) + 2
            is_valid = bool(brace and digits) and all(each in _HEX for each in digits) and int(digits, 16) <= _RUNE_MAX
        else:
            digits = self._while_in(_HEX, 2)
            is_valid = len(digits) == 2
        if not is_valid:
            raise PatternSyntaxError(INVALID_ESCAPE)
        return int(digits, 16)

    # --- classes

    def _class(self) -> classes.CharSet:
        """Read `[...]`."""
        self._at += 1
        is_negated = self._is_next("^")
        self._at += is_negated
        elements = [self._class_element()]
        while not self._is_next("]"):
            elements.append(self._class_element())
        self._at += 1
        some = classes.union(elements)
        return classes.negated(some) if is_negated else some

    def _class_element(self) -> classes.CharSet:
        if self._is_next("[:") and (end := self._pattern.find(":]", self._at + 1)) >= 0:
            name = self._pattern[self._at + 2 : end]
            self._at = end + 2
            some = classes.POSIX_CLASSES.get(name.removeprefix("^"))
            if some is None:
                raise PatternSyntaxError(INVALID_CHAR_RANGE)
            return classes.negated(self._folded(some)) if name.startswith("^") else self._folded(some)
        if self._is_next("\\") and (named := self._named_class()) is not None:
            return named
        low = high = self._class_char()
        if self._is_next("-") and not self._is_next("-]"):
            self._at += 1
            high = self._class_char()
            if high < low:
                raise PatternSyntaxError(INVALID_CHAR_RANGE)
        return self._folded(classes.char_range(low, high))

    def _class_char(self) -> int:
        if self._at >= len(self._pattern):
            raise PatternSyntaxError(MISSING_BRACKET)
        if self._is_next("\\"):
            return self._escape()
        self._at += 1
        return ord(self._pattern[self._at - 1])

    # --- reading

    def _is_next(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _while_in(self, allowed: str, count_max: int) -> str:
        start = self._at
        while self._at < min(start + count_max, len(self._pattern)) and self._pattern[self._at] in allowed:
            self._at += 1
        return self._pattern[start : self._at]


def _is_count(text: str) -> bool:
    """Digits without a leading zero."""
    return text.isascii() and text.isdigit() and (text[0] != "0" or text == "0")
