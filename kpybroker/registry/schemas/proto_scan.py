"""A .proto file without comments and strings, in one pass: what has to be known before protoc may see it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_NEXT: Final = re.compile("""["'/]""")
_ENDS: Final = {quote: re.compile(rf"[{quote}\\\n]") for quote in ("'", '"')}


def bare(text: str) -> str:
    """Each string is an empty one, each comment a space. A string ends with its line, a comment with the file."""
    return "".join(_pieces(text))


def has_syntax(bare_text: str) -> bool:
    """Whether the first statement says which syntax the file has."""
    start = bare_text.lstrip("\ufeff \t\r\n\f\v")
    word = next((word for word in ("syntax", "edition") if start.startswith(word)), None)
    return word is not None and start.removeprefix(word).lstrip().startswith("=")


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while (found := _NEXT.search(text, at)) is not None:
        start = found.start()
        yield text[at:start]
        if text.startswith("//", start):
            end = text.find("\n", start)
            at = len(text) if end < 0 else end
            yield " "
        elif text.startswith("/*", start):
            end = text.find("*/", start + 2)
            at = len(text) if end < 0 else end + 2
            yield " "
        elif text[start] == "/":
            at = start + 1
            yield "/"
        else:
            at = _end_of_string(text, start)
            yield '""'
    yield text[at:]


def _end_of_string(text: str, start: int) -> int:
    pattern = _ENDS[text[start]]
    at = start + 1
    while (found := pattern.search(text, at)) is not None:
        if found[0] != "\\":
            return found.end()
        at = found.end() + 1
    return len(text)
