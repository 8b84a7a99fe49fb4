r"""Text and bytes of strangers as a person may see them: without the characters that a terminal obeys.

Those are control characters, the ones that change the direction of text, and the separators of lines and paragraphs.
They are written as `\xHH` and `\uXXXX`, and so are bytes that are no UTF-8.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = "\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
CONTROL: Final = re.compile(f"[\x00-\x08\x0a-\x1f\x7f-\x9f{_MARKS}]")
"""All but the tabulator."""
_WITHIN_LINES: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_MARKS}]")


def is_text(text: str) -> bool:
    """Whether it can be sent: half of a surrogate pair cannot, nor what Python makes of bytes that are no UTF-8.

    librdkafka does not check it: confluent-kafka raises for some of such texts, and ends the process for others.
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    """On one line."""
    return text if text.isascii() and text.isprintable() else CONTROL.sub(_escape, text)


def visible_bytes(data: bytes) -> str:
    """The text of bytes, on one line."""
    return visible(data.decode(errors="surrogateescape"))


def visible_lines(data: bytes) -> bytes:
    """The text of bytes that keep their line ends, for a terminal."""
    return _WITHIN_LINES.sub(_escape, data.decode(errors="surrogateescape")).encode()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte, as `surrogateescape` has it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible_json(text: str) -> str:
    """JSON whose strings have such characters escaped: outside of strings JSON has no character but line ends."""
    return text if text.isascii() else _WITHIN_LINES.sub(_escape_json, text)


def _escape_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
