"""Messages with a schema's id in front, as serializers with a registry write them: a zero byte, the id, the data.

Avro is read by fastavro, Protobuf by Google's protobuf from the descriptors that the registry compiles (as `kpybroker
registry` does), or `proto` for a registry that has only the text of .proto files. The data of JSON Schema are JSON.

Values that Python's types have no room for stay as they are written (`plain_values`), and everything around them is
shown. Bytes are from anyone. fastavro recurses in C as deep as the data say, and reads as many elements of no size as
they claim, so a recursive schema is used for DEEP_BYTES_MAX at most, and one with many such values not at all.
"""

from __future__ import annotations

import io
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import fastavro
from google.protobuf import json_format

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.schemas.descriptors import Messages
from kpybroker.client.schemas.plain_values import fields_of, with_plain_values
from kpybroker.client.schemas.registry import Schema

DATA_BYTES_MAX: Final = 1 << 20
DEEP_BYTES_MAX: Final = 500
PREFIX_BYTES: Final = 5
READERS_MAX: Final = 200
EMPTY_VALUES_MAX: Final = 1000
OTHER: Final = "show the message as hex or text"

Reader = Callable[[bytes], Any]
"""From the bytes after the id to a value that JSON can hold. Raises anything for data that are not of the schema."""


class Schemas(Protocol):
    """Where schemas are from."""

    def schema(self, number: int) -> Schema:
        """Raises CommandError."""


class Value(NamedTuple):
    """A decoded value, and the schema's type and id."""

    value: Any
    kind: str


def number_of(data: bytes | None) -> int | None:
    """The id of the schema in front; None where there is none."""
    if data is None or len(data) < PREFIX_BYTES or data[0] != 0:
        return None
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


_readers: OrderedDict[Schema, Reader] = OrderedDict()
_lock = threading.Lock()


def value_of(schemas: Schemas, data: bytes) -> Value:
    """The value of data with an id in front. Raises CommandError."""
    number = number_of(data)
    if number is None:
        raise CommandError("no id of a schema is in front of these bytes", OTHER)
    if len(data) > DATA_BYTES_MAX:
        raise CommandError(f"more than {DATA_BYTES_MAX} bytes are not decoded", OTHER)
    schema = schemas.schema(number)
    kind = f"{schema.kind.lower()}, schema {number}"
    try:
        return Value(_reader(schema)(data[PREFIX_BYTES:]), kind)
    except CommandError:
        raise
    except Exception as error:  # of four libraries, for data that anyone sent
        cause = f"the bytes are not of schema {number} ({schema.kind}): {type(error).__name__}: {str(error)[:200]}"
        raise CommandError(cause, OTHER) from None


def _reader(schema: Schema) -> Reader:
    make = MAKERS.get(schema.kind)
    if make is None:
        raise CommandError(f"schemas of type {schema.kind[:50]} are not known here", OTHER)
    with _lock:
        if schema not in _readers:
            _readers[schema] = make(schema)
            while len(_readers) > READERS_MAX:
                _readers.popitem(last=False)
        return _readers[schema]


# --- Avro

Names = dict[str, Any]


def _avro(schema: Schema) -> Reader:
    names: Names = {}
    for _, text in schema.references:
        fastavro.parse_schema(with_plain_values(json.loads(text)), named_schemas=names)
    parsed = fastavro.parse_schema(with_plain_values(json.loads(schema.text)), named_schemas=names)
    if _is_endless(parsed, names, set(), {}):
        raise CommandError("values of this schema take no bytes, however many they are", OTHER)
    is_recursive = _is_recursive(parsed, names, (), set())

    def read(data: bytes) -> Any:
        if is_recursive and len(data) > DEEP_BYTES_MAX:
            raise CommandError(f"of a schema that contains itself, {DEEP_BYTES_MAX} bytes are decoded at most", OTHER)
        return fastavro.schemaless_reader(io.BytesIO(data), parsed, None)

    return read


def _parts(schema: Any) -> list[Any]:
    """The schemas directly in one."""
    if isinstance(schema, list):
        return schema
    if not isinstance(schema, Mapping):
        return []
    kind = schema["type"]
    if kind in ("record", "error"):
        return [field["type"] for field in schema["fields"]]
    if kind in ("array", "map"):
        return [schema["items" if kind == "array" else "values"]]
    return [kind]


def _is_recursive(schema: Any, names: Names, within: tuple[str, ...], seen: set[str]) -> bool:
    """`within` are the records around this place, `seen` all that were met: each is looked into once."""
    if isinstance(schema, str):
        if schema not in names:
            return False
        schema = names[schema]
    name = schema.get("name") if isinstance(schema, Mapping) else None
    if name is not None:
        if name in within:
            return True
        if name in seen:
            return False
        seen.add(name)
        within = (*within, name)
    return any(_is_recursive(part, names, within, seen) for part in _parts(schema))


def _is_endless(schema: Any, names: Names, seen: set[str], known: dict[str, int]) -> bool:
    """Whether a few bytes can be a great many values: of an array, or of records that hold others twice."""
    if isinstance(schema, str):
        if schema not in names or schema in seen:
            return False
        seen.add(schema)
        schema = names[schema]
    if _values_without_bytes(schema, names, known) > EMPTY_VALUES_MAX:
        return True
    is_array = isinstance(schema, Mapping) and schema["type"] == "array"
    if is_array and _values_without_bytes(schema["items"], names, known):
        return True
    return any(_is_endless(part, names, seen, known) for part in _parts(schema))


def _values_without_bytes(schema: Any, names: Names, known: dict[str, int]) -> int:
    """How many values one of this schema holds if it takes no byte, else 0. `known` is filled, by name."""
    if isinstance(schema, str):
        if schema not in names:
            return int(schema == "null")
        if schema not in known:
            known[schema] = 0  # of one that contains itself
            known[schema] = _values_without_bytes(names[schema], names, known)
        return known[schema]
    if not isinstance(schema, Mapping):
        return 0
    kind = schema["type"]
    if kind in ("record", "error"):
        counts = [_values_without_bytes(part, names, known) for part in _parts(schema)]
        return 1 + sum(counts) if all(counts) else 0
    if kind == "fixed":
        return int(schema["size"] == 0)
    return 0 if kind in ("array", "map", "enum") else _values_without_bytes(kind, names, known)


# --- Protobuf


def _protobuf(schema: Schema) -> Reader:
    messages = Messages(schema)

    def read(data: bytes) -> Any:
        made = messages.parsed(data)
        try:
            return json_format.MessageToDict(made, preserving_proto_field_name=True, descriptor_pool=messages.pool)
        except (
            json_format.Error,
            ValueError,
            TypeError,
            OverflowError,
        ):  # of a time or duration that is none, an Any of another file
            return fields_of(made)

    return read


# --- JSON


def _json(_: Schema) -> Reader:
    return _json_or_text


def _json_or_text(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode()


MAKERS: Final[dict[str, Callable[[Schema], Reader]]] = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
