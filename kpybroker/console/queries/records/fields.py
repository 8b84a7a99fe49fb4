"""Keys, values and headers in the fields of a form, and back, without loss: null, empty and bytes stay apart.

A browser sends each end of a line as CR LF, and a field of one line has none. So text has LF only, and whatever a form
could change goes through it as hex or base64. A header is a line, NAME=VALUE, or NAME alone for a null value; one that
cannot be written so is a line of JSON, as JSON lines have it: {"key": "h", "value": {"base64": "/w=="}}.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Final, NamedTuple

from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.visible import visible_json
from kpybroker.client.records import json_lines
from kpybroker.client.records.json_lines import BadLine
from kpybroker.client.records.record import Headers, key_bytes
from kpybroker.console.queries.decoding import CONTROL

KINDS: Final = ("text", "json", "hex", "base64", "null")
"""What a field's text is. Of a key, none of these is text too, but no key where it is empty."""
HEX_BYTES_MAX: Final = 256
"""Longer bytes are shown as base64."""


class Field(NamedTuple):
    """A kind and a text."""

    kind: str
    text: str


def field_of(data: bytes | None, *, is_one_line: bool = False) -> Field:
    """Bytes as a field has them; `encoded` gives them back."""
    if data is None:
        return Field("null", "")
    text = _text(data)
    if text is None or (is_one_line and "\n" in text):
        is_short = len(data) <= HEX_BYTES_MAX
        return Field("hex", data.hex(" ")) if is_short else Field("base64", base64.b64encode(data).decode())
    return Field("json" if _is_object(text) else "text", text)


def _text(data: bytes) -> str | None:
    """What a browser sends back as it is; None for other bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if CONTROL.search(text) else text


def _is_object(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and json.loads(text) is not None
    except (ValueError, RecursionError):
        return False


def encoded(name: str, field: Field, *, is_key: bool = False) -> bytes | None:
    """The bytes of a field. Raises CommandError for a text that is not of its kind."""
    kind, text = field.kind, field.text.replace("\r\n", "\n")
    if is_key and not kind:
        return text.encode(errors="replace") if text else None
    match kind or "text":
        case "null" if text:
            raise usage(f"the {name} is null and has a text", "choose what the text is, or remove it")
        case "null":
            return None
        case "text":
            return text.encode(errors="replace")
        case "json":
            try:
                json.loads(text, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                raise usage(f"the {name} is not JSON: {error}", "correct it, or send it as text") from None
            return text.encode(errors="replace")
        case "hex":
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise usage(f"the {name} is not hex", "write two digits a byte, as in 00 ff 7a") from None
        case "base64":
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError):
                raise usage(f"the {name} is not base64", "write it as in AP96") from None
    raise usage(f"{kind[:50]!r} is nothing that a {name} can be", f"one of {', '.join(KINDS)}")


def _no_constant(name: str) -> None:
    raise ValueError(f"it has no {name}")


def lines_of(headers: Headers) -> str:
    """Headers as the lines of a field."""
    return "\n".join(_line(key, value) for key, value in headers)


def _line(key: str, value: bytes | None) -> str:
    name, text = _text(key_bytes(key)), None if value is None else _text(value)
    is_plain = name is not None and name and name == name.strip() and name[0] != "{" and not set(name) & set("=\n")
    if not is_plain or (value is not None and (text is None or "\n" in text)):
        row = {"key": json_lines.from_bytes(key_bytes(key)), "value": json_lines.from_bytes(value)}
        return visible_json(json.dumps(row, ensure_ascii=False))
    return f"{name}" if text is None else f"{name}={text}"


def parse_headers(text: str) -> Headers:
    """The reverse. Raises CommandError."""
    found: Headers = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip():
            continue
        if line.lstrip().startswith("{"):
            found += _of_json(line)
            continue
        name, equals, value = line.partition("=")
        if not name.strip():
            raise usage(f"{line[:100]!r} has no name", "write a header a line: NAME=VALUE, or NAME for null")
        found.append((name.strip(), value.encode(errors="replace") if equals else None))
    return found


def _of_json(line: str) -> Headers:
    try:
        whole = json.dumps({"value": None, "headers": [json.loads(line)]})
        return json_lines.load(whole.encode()).headers
    except (ValueError, RecursionError) as error:
        cause = str(error) if isinstance(error, BadLine) else f"it is not JSON: {error}"
        raise usage(f"the header {line[:100]!r}: {cause}", 'write it as {"key": "h", "value": "x"}') from None
