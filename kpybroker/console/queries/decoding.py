"""Bytes of a message as text for a page. `with_schemas` adds the decoder with a schema registry.

A decoder returns None for bytes that are not of its kind; `auto` takes the first of AUTOMATIC that does not. Whatever
bytes arrive, the text has no control character and none that changes the direction of text: they are shown as symbols.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, hide
from kpybroker.client.records.record import key_bytes
from kpybroker.client.schemas.reading import Schemas, number_of, value_of

JSON_BYTES_MAX: Final = 1 << 20
"""Larger values are not parsed: they are shown as text, and no JSONPath matches them."""
HEX_COLUMNS: Final = 16
ONE_LINE_MAX: Final = 1000
"""JSON of which so many characters are shown at most is on one line: lists stay short."""

CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


class Text(NamedTuple):
    """What is shown of bytes: `size` is theirs, `is_cut` says that there is more."""

    kind: str
    text: str
    size: int
    is_cut: bool = False
    note: str = ""
    """Why it is not what was asked for."""


NULL: Final = Text("null", "null", 0)

Decoder = Callable[[bytes, int], Text | None]
"""From bytes and the number of characters to show at most."""


def visible(text: str) -> str:
    """Without control characters: those of ASCII as their pictures, the others by their number."""
    return CONTROL.sub(_symbol, text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"


def parsed(data: bytes | None) -> Any:
    """The JSON value. Raises ValueError for bytes that are none, or that are too many."""
    if data is None or len(data) > JSON_BYTES_MAX:
        raise ValueError("not parsed")
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def written(value: Any, length: int) -> str:
    """A value as JSON, indented where there is room. What JSON has no type for is a text, bytes are hex."""
    indent = None if length <= ONE_LINE_MAX else 2
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)


def as_json(data: bytes, length: int) -> Text | None:
    """JSON; only objects and lists, since a number is as well a text. None where Python's values would lose some of it:
    two fields of one name, digits of a number.
    """
    if data.lstrip()[:1] not in (b"{", b"[") or len(data) > JSON_BYTES_MAX:
        return None
    try:
        text = written(json.loads(data, object_pairs_hook=_fields, parse_float=_number), length)
    except (ValueError, RecursionError):
        return None
    return _cut("json", text, data, length)


def exact_json(data: bytes, otherwise: Any) -> Any:
    """An object or list that is JSON, and that Python's values have exactly, else `otherwise`."""
    if data.lstrip()[:1] not in (b"{", b"[") or len(data) > JSON_BYTES_MAX:
        return otherwise
    try:
        return json.loads(data, object_pairs_hook=_fields, parse_float=_number, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return otherwise


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("two fields have one name")
    return found


def _number(text: str) -> float:
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise ValueError("it has more digits than a float")
    return value


def as_text(data: bytes, length: int) -> Text | None:
    """UTF-8."""
    head = data[: length * 4 + 4]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if len(head) == len(data) or error.start < len(head) - 4:
            return None
        text = head[: error.start].decode()
    return _cut("text", text, data, length)


def as_lossy_text(data: bytes, length: int) -> Text:
    """UTF-8 with U+FFFD for what is none."""
    return _cut("text", data[: length * 4].decode(errors="replace"), data, length)


def as_hex(data: bytes, length: int) -> Text:
    """Lines of 16 bytes with their offset and their ASCII characters."""
    shown = data[: max(HEX_COLUMNS, length // 5)]
    lines = [_hex_line(shown, start) for start in range(0, len(shown), HEX_COLUMNS)]
    return Text("hex", "\n".join(lines), len(data), len(shown) < len(data))


def _hex_line(data: bytes, start: int) -> str:
    row = data[start : start + HEX_COLUMNS]
    letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
    return f"{start:08x}  {row.hex(' '):<47}  {letters}"


def _cut(kind: str, text: str, data: bytes, length: int) -> Text:
    shown = visible(text[:length])
    return Text(kind, shown, len(data), len(text) > length or (kind == "text" and len(data) > length * 4))


def header_key(key: str, length: int) -> str:
    """A header's key; bytes that are no UTF-8 as `\\xHH`."""
    return visible(key_bytes(key).decode(errors="backslashreplace")[:length])


AUTOMATIC: Final[tuple[Decoder, ...]] = (as_json, as_text, as_hex)


def automatic(data: bytes, length: int) -> Text | None:
    """As the first decoder that understands it."""
    return next((found for decoder in AUTOMATIC if (found := decoder(data, length)) is not None), None)


DECODERS: Final[dict[str, Decoder]] = {"auto": automatic, "json": as_json, "text": as_lossy_text, "hex": as_hex}


def decoded(data: bytes | None, length: int, decoder: str = "auto", decoders: Mapping[str, Decoder] = DECODERS) -> Text:
    """Bytes as the named decoder shows them, and in hex where it cannot."""
    if data is None:
        return NULL
    return decoders[decoder](bytes(data), length) or as_hex(bytes(data), length)


def with_schemas(schemas: Schemas) -> dict[str, Decoder]:
    """The decoders with `schema`, for one page; `auto` tries it for bytes that begin with the id of one."""

    def by_schema(data: bytes, length: int) -> Text:
        try:
            found = value_of(schemas, data)
            text = written(found.value, length)
        except CommandError as error:
            return as_hex(data, length)._replace(note=hide(error.cause))
        except (ValueError, TypeError, RecursionError) as error:
            return as_hex(data, length)._replace(note=f"the value cannot be written: {error}")
        return _cut(found.kind, text, data, length)

    def any_kind(data: bytes, length: int) -> Text | None:
        return automatic(data, length) if number_of(data) is None else by_schema(data, length)

    return {**DECODERS, "auto": any_kind, "schema": by_schema}


def _plain(value: Any) -> str:
    """What JSON has no type for: bytes as hex; decimals, times and ids as text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def parsed_by(schemas: Schemas | None, problems: list[str] | None = None) -> Callable[[bytes | None], Any]:
    """`parsed`, for values with a schema too. The function raises ValueError; the first schema that cannot be had or
    used is among the problems.
    """

    def parse(data: bytes | None) -> Any:
        if schemas is None or number_of(data) is None:
            return parsed(data)
        try:
            return json.loads(json.dumps(value_of(schemas, bytes(data or b"")).value, default=_plain))
        except (CommandError, TypeError, RecursionError) as error:
            if problems is not None and not problems:
                problems.append(hide(str(error)))
            raise ValueError(str(error)) from None

    return parse
