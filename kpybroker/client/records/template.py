r"""printf formats of records, as kcat and rpk have them: `%t %p %o %k %v\n`.

| verb | is replaced by |
|---|---|
| %t, %p, %o, %e | topic, partition, offset, leader epoch |
| %k, %K | key, and its length in bytes; -1 for null |
| %v or %s, %V or %S | value, and its length |
| %R | the value's length as four bytes, big-endian |
| %h, %H | headers as name=value with commas, and their number |
| %T, %d | timestamp in milliseconds since 1970 |
| %D | how often a share group has delivered it; -1 without one |
| %i | how many records were written before this one |
| %% | a percent sign |

In braces after a verb: `%k{hex}`, `%v{base64}`, `%v{json}`; `%d{iso}`, `%d{s}`, `%d{strftime[%F %T]}`;
`%h{%k=%v;}` for each header. Escapes: \n, \t, \r, \\, \xHH. `compile_template` makes a function of a format.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from kpybroker.client.records.json_lines import from_bytes
from kpybroker.client.records.record import Record, key_bytes
from kpybroker.client.show.cells import NO_TIMESTAMP, moment

Part = Callable[[Record, int], bytes]
"""From a record and its number, the bytes to write."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"}


class BadTemplate(ValueError):
    """A format that cannot be used; the text says why."""


Show = Callable[[bytes], bytes]
"""What is written for a key, a value or a header that no modifier encodes."""


def compile_template(template: str, null: bytes = b"", show: Show | None = None) -> Part:
    """The function that writes a record in this format, with `null` for a null key or value. Raises BadTemplate."""
    parts = _parts(template, null, show)
    if len(parts) == 1:
        return parts[0]

    def write(record: Record, number: int) -> bytes:
        return b"".join([part(record, number) for part in parts])

    return write


def unescape(text: str) -> bytes:
    """The text's bytes with its escapes replaced; `\\xHH` is one byte, whatever it means. Raises BadTemplate."""
    out = bytearray()
    position = 0
    while position < len(text):
        if text[position] != "\\":
            out += text[position].encode(errors="surrogateescape")
            position += 1
            continue
        letter = text[position + 1 : position + 2]
        if letter == "x" and re.fullmatch("[0-9a-fA-F]{2}", text[position + 2 : position + 4]):
            out.append(int(text[position + 2 : position + 4], 16))
            position += 4
        elif letter in ESCAPES and letter:
            out += ESCAPES[letter].encode()
            position += 2
        else:
            raise BadTemplate(f"\\{letter} is no escape; these are: \\n \\t \\r \\0 \\\\ \\xHH")
    return bytes(out)


def _parts(template: str, null: bytes, show: Show | None) -> list[Part]:
    parts: list[Part] = []
    position = 0
    while position < len(template):
        at = template.find("%", position)
        literal = template[position : at if at >= 0 else len(template)]
        if literal:
            parts.append(_constant(unescape(literal)))
        if at < 0:
            break
        verb = template[at + 1 : at + 2]
        modifier, position = _modifier(template, at + 2, verb)
        parts.append(_verb(verb, modifier, null, show))
    return parts or [_constant(b"")]


def _modifier(template: str, position: int, verb: str) -> tuple[str | None, int]:
    """(what is in the braces at `position`, the position after them); None where there are none."""
    if not (verb and verb in MODIFIABLE and template.startswith("{", position)):
        return None, position
    depth = 0
    for at in range(position, len(template)):
        depth += {"{": 1, "}": -1}.get(template[at], 0)
        if depth == 0:
            return template[position + 1 : at], at + 1
    raise BadTemplate(f"the brace after %{verb} is not closed")


def _verb(verb: str, modifier: str | None, null: bytes, show: Show | None) -> Part:
    if verb == "%":
        return _constant(b"%")
    if verb in SIMPLE:
        return SIMPLE[verb]
    if verb in BYTES:
        return _bytes(BYTES[verb], show if modifier is None else _encoding(verb, modifier), null)
    if verb in LENGTHS:
        return _length(BYTES[LENGTHS[verb]])
    if verb == "d":
        return _moment(modifier or "ms")
    if verb == "h":
        return _plain_headers(null, show) if modifier is None else _headers(modifier, null, show)
    raise BadTemplate(f"%{verb} is no verb; these are: {' '.join(f'%{known}' for known in VERBS)}")


def _constant(data: bytes) -> Part:
    return lambda record, number: data


def _number(value: int | None) -> bytes:
    return b"%d" % (-1 if value is None else value)


BYTES: Final[Mapping[str, Callable[[Record], bytes | None]]] = {
    "k": lambda record: record.key,
    "v": lambda record: record.value,
    "s": lambda record: record.value,
}
LENGTHS: Final = {"K": "k", "V": "v", "S": "v"}
SIMPLE: Final[Mapping[str, Part]] = {
    "t": lambda record, number: (record.topic or "").encode(),
    "p": lambda record, number: _number(record.partition),
    "o": lambda record, number: _number(record.offset),
    "e": lambda record, number: _number(record.leader_epoch),
    "T": lambda record, number: _number(record.timestamp_ms),
    "H": lambda record, number: _number(len(record.headers)),
    "D": lambda record, number: _number(record.delivery_count),
    "R": lambda record, number: (-1 if record.value is None else len(record.value)).to_bytes(4, "big", signed=True),
    "i": lambda record, number: _number(number),
}
VERBS: Final = "tpoekKvVsSRhHTdDi%"
MODIFIABLE: Final = "kvsdh"

ENCODINGS: Final[Mapping[str, Show]] = {
    "hex": lambda data: data.hex().encode(),
    "base64": base64.b64encode,
    "json": lambda data: json.dumps(from_bytes(data), ensure_ascii=False).encode(),
}


def _encoding(verb: str, modifier: str) -> Show:
    if modifier not in ENCODINGS:
        raise BadTemplate(f"%{verb}{{{modifier}}} is unknown; in the braces may be {', '.join(ENCODINGS)}")
    return ENCODINGS[modifier]


def _bytes(of: Callable[[Record], bytes | None], encode: Show | None, null: bytes) -> Part:
    def write(record: Record, number: int) -> bytes:
        value = of(record)
        if value is None:
            return b"null" if encode is ENCODINGS["json"] else null
        return value if encode is None else encode(value)

    return write


def _length(of: Callable[[Record], bytes | None]) -> Part:
    def write(record: Record, number: int) -> bytes:
        value = of(record)
        return _number(None if value is None else len(value))

    return write


def _moment(modifier: str) -> Part:
    if modifier == "ms":
        return SIMPLE["T"]
    if modifier == "s":
        return lambda record, number: _number(None if record.timestamp_ms is None else record.timestamp_ms // 1000)
    match = re.fullmatch(r"strftime\[(.*)\]", modifier, re.DOTALL)
    if match is None and modifier != "iso":
        raise BadTemplate(f"%d{{{modifier}}} is unknown; in the braces may be iso, ms, s, strftime[%F %T]")
    return partial(_strftime, match[1] if match else None)


def _strftime(pattern: str | None, record: Record, number: int) -> bytes:
    """In UTC. A time that Python's calendar does not have stays a number."""
    if record.timestamp_ms is None or record.timestamp_ms == NO_TIMESTAMP:
        return _number(None)
    if pattern is None:
        return (moment(record.timestamp_ms) or "").encode()
    try:
        found = EPOCH + timedelta(milliseconds=record.timestamp_ms)
    except OverflowError:
        return _number(record.timestamp_ms)
    return found.strftime(pattern).encode()


def _plain_headers(null: bytes, show: Show | None) -> Part:
    def one(data: bytes) -> bytes:
        return data if show is None else show(data)

    def write(record: Record, number: int) -> bytes:
        return b",".join(
            one(key_bytes(key)) + b"=" + (null if value is None else one(value)) for key, value in record.headers
        )

    return write


def _headers(template: str, null: bytes, show: Show | None) -> Part:
    """The template for each header: its name is %k, its value %v, its number %i."""
    one = compile_template(template, null, show)

    def write(record: Record, number: int) -> bytes:
        return b"".join(
            one(Record(record.topic, key_bytes(key), value, []), index)
            for index, (key, value) in enumerate(record.headers)
        )

    return write
