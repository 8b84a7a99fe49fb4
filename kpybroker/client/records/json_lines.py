"""A record as one line of JSON, and back without loss: `topic consume -f json` writes what `topic produce` reads.

    {"topic":"t","partition":0,"offset":7,"timestamp":1700000000000,"timestamp_type":"CreateTime",
     "key":"k","value":"v","headers":[{"key":"h","value":"x"}]}        (on one line)

Bytes that are UTF-8 are a string, null is null, and other bytes are {"base64": "..."}, a header's key too. Only `value`
is needed to produce. A value or key that is another JSON value is its text without blanks: {"value":{"a":1}} is the
same as {"value":"{\\"a\\":1}"}. One that was decoded with a schema is written so, and with a schema any JSON is read
so, strings too. Lines of `kcat -J` are read too (`payload`, `ts`, headers as a flat list). Characters that a terminal
obeys, or that some programs take for the end of a line, are written as \\uXXXX.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from kpybroker.client.connect.visible import visible_json
from kpybroker.client.records.record import Headers, JsonText, Record, key_bytes

BASE64: Final = "base64"
OURS: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
NAMES: Final = frozenset((*OURS, "payload", "ts", "tstype", "broker"))


class BadLine(ValueError):
    """A line that is no record; the text says why."""


def row(record: Record) -> dict[str, Any]:
    """The record as JSON's types."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        "key": from_bytes(record.key),
        "value": from_bytes(record.value),
        "headers": [
            {"key": key if key.isascii() else from_bytes(key_bytes(key)), "value": from_bytes(value)}
            for key, value in record.headers
        ],
    }


def dump(record: Record) -> bytes:
    """One line, with its end."""
    return visible_json(json.dumps(row(record), ensure_ascii=False, separators=(",", ":"))).encode() + b"\n"


def load(line: bytes, encoded: Collection[str] = ()) -> Record:
    """The record of a line. Raises BadLine.

    Of `encoded`, which may have `key` and `value`, any JSON but null becomes its text: a schema encodes it.
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadLine(f"it is not JSON: {error}") from None
    except RecursionError:
        raise BadLine("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise BadLine('it is not a JSON object like {"key": "k", "value": "v"}')
    unknown = sorted(set(found) - NAMES)
    if unknown:
        raise BadLine(f"it has a field {unknown[0]!r}; fields are {', '.join(OURS)}")
    if "value" not in found and "payload" not in found:
        raise BadLine("it has no field 'value'; null is a value too")
    return Record(
        _text(found, "topic"),
        _field(line, "key", "key" in encoded, found.get("key")),
        _field(line, "value", "value" in encoded, found.get("value", found.get("payload"))),
        _headers(found.get("headers")),
        _number(found, "partition"),
        _number(found, "offset"),
        _number(found, "timestamp", "ts"),
        _text(found, "timestamp_type"),
    )


def from_bytes(value: bytes | None) -> Any:
    """A string if the bytes are UTF-8, else {"base64": ...}; the value of a `JsonText`."""
    if value is None:
        return None
    if isinstance(value, JsonText):
        return json.loads(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(value).decode()}


def to_bytes(value: Any, name: str) -> bytes | None:
    """The reverse. Raises BadLine for anything else than a string, null or {"base64": ...}."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise BadLine(f"{name} has half of a surrogate pair, which is no character") from None
    if _is_base64(value):
        try:
            return base64.b64decode(value[BASE64], validate=True)
        except binascii.Error:
            raise BadLine(f"{name} is not base64") from None
    raise BadLine(f'{name} is neither a string nor null nor {{"base64": "..."}}; put JSON into a string')


def _field(line: bytes, name: str, is_encoded: bool, value: Any) -> bytes | None:
    """A key or value. Raises BadLine."""
    if value is None or (not is_encoded and (isinstance(value, str) or _is_base64(value))):
        return to_bytes(value, name)
    try:
        json.loads(line, object_pairs_hook=_once, parse_float=_exactly)
        return JsonText(dumped(value))
    except RecursionError:
        raise BadLine("it is nested too deeply") from None
    except ValueError as error:
        raise BadLine(f"{name} cannot be written as JSON: {error}") from None


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {BASE64} and isinstance(value[BASE64], str)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, none of whose fields would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("two fields of an object have one name")
    return found


def _exactly(text: str) -> float:
    """A number, none of whose digits would be lost."""
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise ValueError(f"{text[:50]} has more digits than a double")
    return value


def dumped(value: Any) -> bytes:
    """A JSON value as text without blanks. Raises ValueError for numbers and texts that JSON cannot have."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _headers(value: Any) -> Headers:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [(str(name), to_bytes(one, "a header")) for name, one in value.items()]
    if not isinstance(value, list):
        raise BadLine('headers is not a list like [{"key": "h", "value": "x"}]')
    if value and all(isinstance(one, str) or one is None for one in value):  # kcat's: name, value, name, value
        if len(value) % 2 or None in value[::2]:
            raise BadLine("headers is a flat list, but not of pairs")
        return [(name, to_bytes(one, "a header")) for name, one in zip(value[::2], value[1::2], strict=True)]
    return [_header(one) for one in value]


def _header(value: Any) -> tuple[str, bytes | None]:
    if not isinstance(value, dict) or value.get("key") is None or set(value) - {"key", "value"}:
        raise BadLine('a header is not like {"key": "h", "value": "x"}')
    key = to_bytes(value["key"], "the key of a header")
    assert key is not None, "the key is not null"
    return key.decode(errors="surrogateescape"), to_bytes(value.get("value"), f"header {value['key']!r}")


def _number(found: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = found.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int):
                raise BadLine(f"{name} is not a whole number")
            return value
    return None


def _text(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise BadLine(f"{name} is not a string")
    return value
