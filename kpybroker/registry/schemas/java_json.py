"""JSON as Jackson reads and writes it: with comments, and with numbers and control characters in Java's spelling.

Confluent's registry stores what Jackson writes, so a text compares equal to one of its texts only in this spelling.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')
ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
START: Final = re.compile(r'["/]')
STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
PLAIN_MIN: Final = -3
"""The exponents from which and up to which Java writes a double without one."""
PLAIN_MAX: Final = 7


def loads(text: str, *, is_lax: bool = False) -> Any:
    """A value. Raises ValueError; RecursionError for what is nested too deep.

    `is_lax` also reads `Infinity`, which earlier versions of the registry stored for numbers that are too great.
    """
    constant = float if is_lax else _no_number
    try:
        return json.loads(text, parse_constant=constant)
    except ValueError:
        if "/" not in text:
            raise
    return json.loads(_without_comments(text), parse_constant=constant)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _without_comments(text: str) -> str:
    """In time that is linear in the text: each search begins where the one before ended."""
    kept: list[str] = []
    at = 0
    is_last_comment = False
    while (found := START.search(text, at)) is not None:
        start = found.start()
        kept.append(text[at:start])
        if found.group() == '"':
            string = STRING.match(text, start)
            if string is None:
                raise ValueError("a string does not end")
            kept.append(string.group())
            at = string.end()
            is_last_comment = False
        elif text.startswith("//", start):
            end = text.find("\n", start)
            at = len(text) if end < 0 else end
            is_last_comment = True
        elif text.startswith("/*", start):
            end = text.find("*/", start + 2)
            if end < 0:
                raise ValueError("a comment does not end")
            kept.append(" ")
            at = end + 2
            is_last_comment = True
        else:
            raise ValueError("a slash outside of a string and a comment")
    if is_last_comment and not text[at:].strip():
        raise ValueError("something follows the value")
    return "".join([*kept, text[at:]])


def nesting(value: Any) -> int:
    """How deep arrays and objects are in each other."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        if isinstance(one, dict | list):
            deepest = max(deepest, depth)
            waiting += ((part, depth + 1) for part in (one.values() if isinstance(one, dict) else one))
    return deepest


def dumps(value: Any) -> str:
    """Without white space."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case int():
            return str(value)
        case float():
            return double(value)
        case Decimal():
            return decimal(value)
        case Mapping():
            return "{" + ",".join(f"{quoted(key)}:{dumps(one)}" for key, one in value.items()) + "}"
        case _:
            return "[" + ",".join(map(dumps, value)) + "]"


def quoted(text: str) -> str:
    """A string."""
    return '"' + ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return ESCAPES.get(character) or f"\\u{ord(character):04X}"


def double(value: float) -> str:
    """As ``Double.toString``; NaN and infinity are strings, so the text stays JSON."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    sign, parts, exponent = Decimal(repr(value)).as_tuple()
    if len(parts) == 1:  # Java writes two digits, and takes the two that are nearest
        sign, parts, exponent = Decimal(f"{value:.1e}").as_tuple()
    assert isinstance(exponent, int), "the number is finite"
    digits = "".join(map(str, parts))
    point = len(digits) + exponent
    digits = digits.rstrip("0")
    minus = "-" if sign else ""
    if not digits:
        return f"{minus}0.0"
    if not PLAIN_MIN < point <= PLAIN_MAX:
        return f"{minus}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    return f"{minus}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def decimal(value: Decimal) -> str:
    """As ``BigDecimal.toString``, which knows no negative zero."""
    return str(value if value else value.copy_abs())


def order(text: str) -> bytes:
    """The key that sorts texts as Java does: by their units of UTF-16."""
    return text.encode("utf-16-be", "surrogatepass")


def with_order(value: Any) -> Any:
    """With the keys of all objects sorted: their order means nothing."""
    if isinstance(value, Mapping):
        return {key: with_order(value[key]) for key in sorted(value, key=order)}
    return [with_order(one) for one in value] if isinstance(value, list) else value
