"""`Syntax`: words, texts, numbers and comments of a .proto file, in one pass over it.

Each search begins where the one before ended, so the time is linear in the text, whatever is in it.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.model import DEPTH_MAX

SPACES: Final = re.compile(r"[ \t\r\n]*")
BLANKS: Final = re.compile(r"[ \t]*")
WORD: Final = re.compile(r"[A-Za-z0-9_.\-]+")
QUOTES: Final = ('"', "'")
IN_TEXT: Final = {quote: re.compile(rf"[^\\{quote}]*") for quote in QUOTES}
ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
HEX: Final = re.compile(r"[0-9a-fA-F]{1,2}")
OCTAL: Final = re.compile(r"[0-7]{1,3}")
NUMBER: Final = re.compile(r"-?[0-9]+")
HEX_NUMBER: Final = re.compile(r"-?[0-9a-fA-F]+")
DIGITS_MAX: Final = 20
INT: Final = range(-(2**31), 2**31)


class Syntax:
    """What is read next is at `at`. Every method raises RegistryError 42201 for what it does not find."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def refuse(self, why: str) -> NoReturn:
        """Raises RegistryError 42201 with the place."""
        before = self._text[: self.at]
        line = before.count("\n") + 1
        raise invalid_schema(f"{why[:200]} in line {line}, column {len(before) - before.rfind(chr(10))}")

    def skip(self) -> None:
        """White space and comments."""
        while True:
            found = SPACES.match(self._text, self.at)
            assert found is not None, "the pattern matches the empty text"
            self.at = found.end()
            if not self._text.startswith("/", self.at):
                return
            self._comment()

    def _comment(self) -> None:
        if self._text.startswith("//", self.at):
            end = self._text.find("\n", self.at)
            self.at = len(self._text) if end < 0 else end + 1
        elif self._text.startswith("/*", self.at):
            end = self._text.find("*/", self.at + 2)
            if end < 0:
                self.refuse("a comment does not end")
            self.at = end + 2
        else:
            self.refuse("a slash that begins no comment")

    def is_at_end(self) -> bool:
        """Whether nothing follows but white space and comments."""
        self.skip()
        return self.at == len(self._text)

    def end_statement(self) -> None:
        """A semicolon. Behind it a comment of one line may follow; behind a /* */ nothing but the end of the line."""
        self.require(";")
        blanks = BLANKS.match(self._text, self.at)
        assert blanks is not None, "the pattern matches the empty text"
        self.at = blanks.end()
        if self.at == len(self._text):
            self.refuse("unexpected end")
        if self._text[self.at] != "/":
            return
        is_block = self._text.startswith("/*", self.at)
        self._comment()
        if is_block:
            blanks = BLANKS.match(self._text, self.at)
            assert blanks is not None, "the pattern matches the empty text"
            self.at = blanks.end()
            if self.at < len(self._text) and self._text[self.at] != "\n":
                self.refuse("something follows a comment that is behind a declaration")

    def peek(self) -> str:
        """The next character."""
        self.skip()
        if self.at == len(self._text):
            self.refuse("unexpected end")
        return self._text[self.at]

    def take(self) -> str:
        """The next character, which is read."""
        found = self.peek()
        self.at += 1
        return found

    def takes(self, character: str) -> bool:
        """Whether the next character is this one; if it is, it is read."""
        if self.peek() != character:
            return False
        self.at += 1
        return True

    def require(self, character: str) -> None:
        """This character."""
        found = self.take()
        if found != character:
            self.at -= 1
            self.refuse(f"expected {character!r}, not {found!r}")

    def word(self, *, may_start_with_digit: bool = True) -> str:
        """Letters, digits, underscores, dots and minus signs."""
        self.skip()
        found = WORD.match(self._text, self.at)
        if found is None:
            self.refuse("expected a word")
        if not may_start_with_digit and found.group()[0].isdigit():
            self.refuse("the name of a field or a constant starts with a digit")
        self.at = found.end()
        return found.group()

    def name(self, *, may_start_with_digit: bool = True, keeps_brackets: bool = False) -> str:
        """A word, which may be in parentheses or brackets."""
        opening = self.peek()
        closing = {"(": ")", "[": "]"}.get(opening)
        if closing is None:
            return self.word(may_start_with_digit=may_start_with_digit)
        self.at += 1
        word = self.word(may_start_with_digit=may_start_with_digit)
        self.require(closing)
        return f"{opening}{word}{closing}" if keeps_brackets else word

    def type(self, word: str | None = None) -> str:
        """A scalar, a name, or a map; `word` is its first one if it was read already."""
        depth, opened = 0, []
        while True:
            word = self.word() if word is None else word
            if word != "map":
                break
            self.require("<")
            opened.append(self.type_of_key())
            self.require(",")
            depth, word = depth + 1, None
            if depth > DEPTH_MAX:
                self.refuse(f"maps are nested deeper than {DEPTH_MAX} levels")
        for _ in range(depth):
            self.require(">")
        return "".join(f"map<{key}, " for key in opened) + word + ">" * depth

    def type_of_key(self) -> str:
        """Of a map: a scalar, so no map."""
        word = self.word()
        if word == "map":
            self.refuse("the key of a map is a map")
        return word

    def integer(self) -> int:
        """A number of 32 bits, also in hexadecimal."""
        word = self.word()
        is_hex = word[:2] in ("0x", "0X")
        digits = word[2:] if is_hex else word
        pattern = HEX_NUMBER if is_hex else NUMBER
        if len(digits) <= DIGITS_MAX and pattern.fullmatch(digits):
            found = int(digits, 16 if is_hex else 10)
            if found in INT:
                return found
        self.refuse(f"expected a whole number, not {word}")

    def string(self) -> str:
        """A text in quotes, or a word."""
        return self.quoted() if self.peek() in QUOTES else self.word()

    def quoted(self) -> str:
        """A text in quotes; several that follow each other are one."""
        parts: list[str] = []
        while self.peek() in QUOTES:
            quote = self.take()
            while True:
                chunk = IN_TEXT[quote].match(self._text, self.at)
                assert chunk is not None, "the pattern matches the empty text"
                parts.append(chunk.group())
                self.at = chunk.end() + 1
                if self.at > len(self._text):
                    self.at -= 1
                    self.refuse("a text does not end")
                if self._text[self.at - 1] == quote:
                    break
                parts.append(self._escape())
        return "".join(parts)

    def _escape(self) -> str:
        character = self._text[self.at : self.at + 1]
        if not character:
            self.refuse("a text does not end")
        if character in "01234567":
            return self._numeric(OCTAL, 8)
        self.at += 1
        if character in "xX":
            return self._numeric(HEX, 16)
        return ESCAPES.get(character, character)

    def _numeric(self, pattern: re.Pattern[str], base: int) -> str:
        found = pattern.match(self._text, self.at)
        if found is None:
            self.refuse("a digit is missing behind \\x")
        self.at = found.end()
        return chr(int(found.group(), base))
