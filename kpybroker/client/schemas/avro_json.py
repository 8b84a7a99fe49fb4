"""`AvroJson`: Avro's binary form as its JSON form and back, which is what Confluent's console tools read and write.

A value of a union is `{"TYPE": value}`, or null; bytes and fixed are texts with a character a byte; logical types are
the numbers and texts that they are stored as. What is written is checked: a field that the schema does not have, a
number out of range and a text for a number are refused. More is read than Java reads: a field with a default may be
left out, and a value that only one type of a union can have needs no type.

fastavro parses the schema. It does not convert the values: its JSON drops unknown fields and fractions, and it recurses
in C as deep as the data say. Here Python's limit of recursion holds, and no more values are read than VALUES_MAX and
one a byte, since an array may claim any number of values without bytes.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import fastavro

VALUES_MAX: Final = 100_000
INT: Final = range(-(2**31), 2**31)
LONG: Final = range(-(2**63), 2**63)
VARINT_BYTES_MAX: Final = 10
NUMBERS: Final = frozenset(("int", "long", "float", "double"))
NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
FLOAT_DIGITS: Final = range(6, 10)

Schema = Any
"""fastavro's parsed schema: a name, a list for a union, or a dict."""


class BadValue(ValueError):
    """A value that is not of the schema; `path` is where it is."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.cause}" if self.path else self.cause


class AvroJson:
    """Of one schema. Raises fastavro's errors for a text that is none."""

    def __init__(self, text: str, references: tuple[tuple[str, str], ...] = ()) -> None:
        self._names: dict[str, Any] = {}
        for _, referenced in references:
            fastavro.parse_schema(_plain(json.loads(referenced)), named_schemas=self._names)
        self._schema = fastavro.parse_schema(_plain(json.loads(text)), named_schemas=self._names)

    def read(self, data: bytes) -> Any:
        """The JSON value of bytes. Raises BadValue."""
        source = _Source(data)
        try:
            value = self._read(source, self._schema)
        except IndexError:
            raise BadValue("the bytes end too early") from None
        except RecursionError:
            raise BadValue("it is nested too deeply") from None
        if source.at != len(data):
            raise BadValue(f"{len(data) - source.at} bytes are left")
        return value

    def write(self, value: Any) -> bytes:
        """The bytes of a JSON value. Raises BadValue."""
        target = bytearray()
        try:
            self._write(target, self._schema, value)
        except RecursionError:
            raise BadValue("it is nested too deeply") from None
        return bytes(target)

    # --- types

    def _resolved(self, schema: Schema) -> Schema:
        while True:
            if isinstance(schema, str) and schema in self._names:
                schema = self._names[schema]
            elif isinstance(schema, dict) and not isinstance(schema["type"], str):
                schema = schema["type"]
            elif isinstance(schema, dict) and schema["type"] in self._names:
                schema = self._names[schema["type"]]
            else:
                return schema

    def _kind(self, schema: Schema) -> str:
        return schema if isinstance(schema, str) else "union" if isinstance(schema, list) else str(schema["type"])

    def _tag(self, schema: Schema) -> str:
        """What names a type of a union."""
        resolved = self._resolved(schema)
        kind = self._kind(resolved)
        return str(resolved["name"]) if kind in ("record", "error", "enum", "fixed") else kind

    # --- reading

    def _read(self, source: _Source, schema: Schema) -> Any:
        source.count()
        schema = self._resolved(schema)
        kind = self._kind(schema)
        simple = READERS.get(kind)
        if simple is not None:
            return simple(source)
        if kind in ("record", "error"):
            return {field["name"]: self._read(source, field["type"]) for field in schema["fields"]}
        if kind == "union":
            branch = _item(schema, source.number(), "type of a union")
            value = self._read(source, branch)
            return value if self._tag(branch) == "null" else {self._tag(branch): value}
        if kind == "array":
            return [self._read(source, schema["items"]) for _ in source.items()]
        if kind == "map":
            return {_read_string(source): self._read(source, schema["values"]) for _ in source.items()}
        if kind == "enum":
            return _item(schema["symbols"], source.number(), "symbol of an enum")
        if kind == "fixed":
            return source.take(schema["size"]).decode("latin-1")
        raise BadValue(f"the type {kind[:50]!r} is not known")

    # --- writing

    def _write(self, target: bytearray, schema: Schema, value: Any) -> None:
        schema = self._resolved(schema)
        kind = self._kind(schema)
        simple = WRITERS.get(kind)
        if simple is not None:
            target += simple(value)
        elif kind in ("record", "error"):
            self._write_record(target, schema, value)
        elif kind == "union":
            target += self._of_union(schema, value)
        elif kind in ("array", "map"):
            self._write_items(target, schema, value)
        elif kind == "enum":
            if value not in schema["symbols"]:
                raise BadValue(f"{_shown(value)} is no symbol of {schema['name']}")
            target += _varint(schema["symbols"].index(value))
        elif kind == "fixed":
            data = _latin(value)
            if len(data) != schema["size"]:
                raise BadValue(f"{len(data)} bytes, and {schema['name']} has {schema['size']}")
            target += data
        else:
            raise BadValue(f"the type {kind[:50]!r} is not known")

    def _write_record(self, target: bytearray, schema: Any, value: Any) -> None:
        _expect(value, dict, f"an object of {schema['name']}")
        names = {field["name"] for field in schema["fields"]}
        unknown = sorted(set(value) - names)
        if unknown:
            raise BadValue(f"{schema['name']} has no field {unknown[0]!r}")
        for field in schema["fields"]:
            name = field["name"]
            if name not in value and "default" not in field:
                raise BadValue(f"the field {name!r} of {schema['name']} is missing")
            with _Within(name):
                self._write(target, field["type"], value[name] if name in value else field["default"])

    def _write_items(self, target: bytearray, schema: Any, value: Any) -> None:
        is_map = schema["type"] == "map"
        _expect(value, dict if is_map else list, "an object" if is_map else "a list")
        pairs = value.items() if is_map else enumerate(value)
        if value:
            target += _varint(len(value))
        for key, one in pairs:
            if is_map:
                target += _write_string(key)
            with _Within(str(key)):
                self._write(target, schema["values" if is_map else "items"], one)
        target += _varint(0)

    def _of_union(self, union: list[Any], value: Any) -> bytes:
        tags = [self._tag(branch) for branch in union]
        if value is None and "null" in tags:
            return _varint(tags.index("null"))
        if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in tags:
            ((tag, inner),) = value.items()
            with _Within(tag):
                return self._of_branch(union, tags.index(tag), inner)
        fitting, failures = {}, []
        for index, tag in enumerate(tags):
            try:
                fitting[index] = self._of_branch(union, index, value)
            except BadValue as error:
                if tag != "null":
                    failures.append(error)
        if not fitting and len(failures) == 1:
            raise failures[0]
        if len(fitting) == 1 or (fitting and all(tags[index] in NUMBERS for index in fitting)):
            return next(iter(fitting.values()))
        why = "may be several types" if fitting else "has no type"
        raise BadValue(f'{_shown(value)} {why} of the union: write {{"TYPE": value}} with one of {", ".join(tags)}')

    def _of_branch(self, union: list[Any], index: int, value: Any) -> bytes:
        target = bytearray(_varint(index))
        self._write(target, union[index], value)
        return bytes(target)


def _plain(schema: Any) -> Any:
    """Without logical types, of which some are refused though they are only ignored."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: part if key == "default" else _plain(part) for key, part in schema.items() if key != "logicalType"}


class _Source:
    """Bytes that are read from the front. IndexError at their end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self._left = len(data) + VALUES_MAX

    def count(self) -> None:
        """One value more."""
        self._left -= 1
        if self._left < 0:
            raise BadValue("it has too many values without bytes")

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size < 0 or self.at + size > len(self.data):
            raise IndexError
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        """A zigzag number."""
        value = shift = 0
        for _ in range(VARINT_BYTES_MAX):
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise BadValue("a number has more than ten bytes")

    def items(self) -> Iterator[None]:
        """As often as an array or a map has another item, block by block."""
        while count := self.number():
            if count < 0:
                self.number()  # the block's size
            for _ in range(abs(count)):
                self.count()
                yield


class _Within:
    """Adds a name to the path of a BadValue."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if isinstance(error, BadValue):
            error.path.insert(0, self._name)


def _item(values: list[Any], index: int, what: str) -> Any:
    if not 0 <= index < len(values):
        raise BadValue(f"there is no {what} with number {index}")
    return values[index]


def _expect(value: Any, kind: type, what: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadValue(f"{_shown(value)} is not {what}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


# --- simple types


def _read_boolean(source: _Source) -> bool:
    byte = source.take(1)[0]
    if byte > 1:
        raise BadValue(f"{byte} is no boolean")
    return byte == 1


def _read_string(source: _Source) -> str:
    try:
        return source.take(source.number()).decode()
    except UnicodeDecodeError:
        raise BadValue("a string is not UTF-8") from None


def _finite(value: float) -> Any:
    """JSON has no other numbers."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_float(source: _Source) -> Any:
    """With as few digits as give the same float again."""
    data = source.take(FLOAT.size)
    (value,) = FLOAT.unpack(data)
    if math.isfinite(value):
        for digits in FLOAT_DIGITS:
            short = float(f"{value:.{digits}g}")
            if _packed(FLOAT, short) == data:
                return short
    return _finite(value)


READERS: Final[dict[str, Callable[[_Source], Any]]] = {
    "null": lambda source: None,
    "boolean": _read_boolean,
    "int": lambda source: source.number(),
    "long": lambda source: source.number(),
    "float": _read_float,
    "double": lambda source: _finite(DOUBLE.unpack(source.take(DOUBLE.size))[0]),
    "bytes": lambda source: source.take(source.number()).decode("latin-1"),
    "string": _read_string,
}


def _varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    written = bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def _write_null(value: Any) -> bytes:
    if value is not None:
        raise BadValue(f"{_shown(value)} is not null")
    return b""


def _write_boolean(value: Any) -> bytes:
    _expect(value, bool, "a boolean")
    return b"\1" if value else b"\0"


def _whole(kind: str, numbers: range) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        _expect(value, int, f"a whole number ({kind})")
        if value not in numbers:
            raise BadValue(f"{_shown(value)} is out of the range of {kind}")
        return _varint(value)

    return write


def _real(kind: str, packing: struct.Struct) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        if isinstance(value, str) and value in NOT_FINITE:
            return packing.pack(NOT_FINITE[value])
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadValue(f"{_shown(value)} is not a number ({kind})")
        packed = _packed(packing, value)
        if packed is None:
            raise BadValue(f"{_shown(value)} is out of the range of {kind}")
        return packed

    return write


def _packed(packing: struct.Struct, value: float) -> bytes | None:
    try:
        return packing.pack(value)
    except (OverflowError, struct.error):
        return None


def _latin(value: Any) -> bytes:
    _expect(value, str, "a text with a character a byte")
    try:
        return bytes(value.encode("latin-1"))
    except UnicodeEncodeError:
        raise BadValue(f"{_shown(value)} has characters that are no bytes, above \\u00ff") from None


def _write_bytes(value: Any) -> bytes:
    data = _latin(value)
    return _varint(len(data)) + data


def _write_string(value: Any) -> bytes:
    _expect(value, str, "a string")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise BadValue("it has half of a surrogate pair, which is no character") from None
    return _varint(len(data)) + bytes(data)


WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _whole("int", INT),
    "long": _whole("long", LONG),
    "float": _real("float", FLOAT),
    "double": _real("double", DOUBLE),
    "bytes": _write_bytes,
    "string": _write_string,
}
