"""The slow, obvious codec that the compiled one is compared with.

It reads and writes one field after the other, straight from the spec files (not from the generated classes), in the
order of Kafka's protocol guide. It checks nothing: hostile bytes are a matter of the real codec.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from protocol_specs.notation import FieldSpec, MessageSpec, read_specs

SPECS = Path(__file__).resolve().parents[2] / "protocol_specs"

FIXED = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
    "uuid": ">16s",
}


@cache
def message_specs() -> dict[str, MessageSpec]:
    """Every request, response and record by its class name."""
    return {message.name: message for spec in read_specs(SPECS) for message in spec.messages}


def reference_encode(message: Any, version: int) -> bytes:
    spec = message_specs()[type(message).__name__]
    writer = _Writer(spec, version)
    writer.struct(spec.fields, message)
    return bytes(writer.out)


def reference_decode(name: str, data: bytes, version: int) -> dict[str, Any]:
    """The message as nested dicts of the fields that this version carries."""
    spec = message_specs()[name]
    reader = _Reader(spec, version, data)
    result = reader.struct(spec.fields)
    assert reader.at == len(data), "bytes are left over"
    return result


def as_dict(message: Any, version: int) -> dict[str, Any]:
    """A decoded message in the shape of reference_decode."""
    spec = message_specs()[type(message).__name__]
    return _as_dict(spec, spec.fields, message, version)


def _as_dict(spec: MessageSpec, fields: tuple[FieldSpec, ...], value: Any, version: int) -> dict[str, Any]:
    result: dict[str, Any] = {"unknown": value.unknown_tagged_fields}
    for field in fields:
        if not _in(field.versions, version):
            continue
        item = getattr(value, field.name)
        if field.is_struct and item is not None:
            children = _struct(spec, field.type)
            if field.array:
                item = [_as_dict(spec, children, element, version) for element in item]
            else:
                item = _as_dict(spec, children, item, version)
        result[field.name] = item
    return result


def _in(versions: tuple[int, int] | None, version: int) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


def _struct(spec: MessageSpec, name: str) -> tuple[FieldSpec, ...]:
    return next(struct_spec.fields for struct_spec in spec.structs if struct_spec.name == name)


def _untagged(fields: tuple[FieldSpec, ...], version: int) -> list[FieldSpec]:
    return [field for field in fields if _in(field.versions, version) and not _in(field.tagged, version)]


def _tagged(fields: tuple[FieldSpec, ...], version: int) -> dict[int, FieldSpec]:
    return {field.tag: field for field in fields if field.tag is not None and _in(field.tagged, version)}


@dataclass
class _Writer:
    spec: MessageSpec
    version: int

    def __post_init__(self) -> None:
        self.flexible = self.version >= self.spec.flexible_from
        self.out = bytearray()

    def struct(self, fields: tuple[FieldSpec, ...], value: Any) -> None:
        for field in _untagged(fields, self.version):
            self.field(field, getattr(value, field.name))
        if self.flexible:
            tags = dict(value.unknown_tagged_fields)
            for tag, field in _tagged(fields, self.version).items():
                item = getattr(value, field.name)
                if not self.is_default(field, item):
                    inner = _Writer(self.spec, self.version)
                    inner.field(field, item, is_tagged=True)
                    tags[tag] = bytes(inner.out)
            self.varint(len(tags))
            for tag in sorted(tags):
                self.varint(tag)
                self.varint(len(tags[tag]))
                self.out += tags[tag]

    def is_default(self, field: FieldSpec, item: Any) -> bool:
        if field.default_null:
            return item is None
        if field.array:
            return bool(item == [])
        if field.is_struct:
            return item == type(item)() if item is not None else field.nullable is None
        if field.type == "uuid":
            return bool(item == bytes(16))
        return bool(item == field.default)

    def field(self, field: FieldSpec, item: Any, *, is_tagged: bool = False) -> None:
        if field.array:
            if item is None:
                self.length(None, ">i")
                return
            self.length(len(item), ">i")
            for element in item:
                self.single(field, element)
            return
        if field.is_struct and _in(field.nullable, self.version):
            null = b"\x00" if is_tagged else b"\xff"
            self.out += null if item is None else b"\x01"
            if item is None:
                return
        self.single(field, item)

    def single(self, field: FieldSpec, item: Any) -> None:
        if field.is_struct:
            self.struct(_struct(self.spec, field.type), item)
        elif field.type in FIXED:
            self.out += struct.pack(FIXED[field.type], item)
        else:
            data = item.encode() if isinstance(item, str) else item
            self.length(None if data is None else len(data), ">h" if field.type == "string" else ">i")
            self.out += data or b""

    def length(self, length: int | None, format_if_fixed: str) -> None:
        if self.flexible:
            self.varint(0 if length is None else length + 1)
        else:
            self.out += struct.pack(format_if_fixed, -1 if length is None else length)

    def varint(self, value: int) -> None:
        while value > 127:
            self.out.append(value % 128 + 128)
            value //= 128
        self.out.append(value)


@dataclass
class _Reader:
    spec: MessageSpec
    version: int
    data: bytes
    at: int = 0

    def __post_init__(self) -> None:
        self.flexible = self.version >= self.spec.flexible_from

    def struct(self, fields: tuple[FieldSpec, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {"unknown": ()}
        for field in _untagged(fields, self.version):
            result[field.name] = self.field(field)
        if self.flexible:
            tagged = _tagged(fields, self.version)
            for field in tagged.values():
                result[field.name] = self.default(field)
            for _ in range(self.varint()):
                tag, size = self.varint(), self.varint()
                if tag in tagged:
                    result[tagged[tag].name] = self.field(tagged[tag], is_tagged=True)
                else:
                    result["unknown"] += ((tag, self.take(size)),)
        return result

    def default(self, field: FieldSpec) -> Any:
        if field.array:
            return None if field.default_null else []
        if field.is_struct and field.nullable:
            children = _struct(self.spec, field.type)
            return {"unknown": ()} | {child.name: self.default(child) for child in children}
        return bytes(16) if field.type == "uuid" else field.default

    def field(self, field: FieldSpec, *, is_tagged: bool = False) -> Any:
        if field.array:
            count = self.length(">i")
            return None if count is None else [self.single(field) for _ in range(count)]
        if field.is_struct and _in(field.nullable, self.version) and self.fixed(">b") < (1 if is_tagged else 0):
            return None
        return self.single(field)

    def single(self, field: FieldSpec) -> Any:
        if field.is_struct:
            return self.struct(_struct(self.spec, field.type))
        if field.type in FIXED:
            return self.fixed(FIXED[field.type])
        length = self.length(">h" if field.type == "string" else ">i")
        if length is None:
            return None
        data = self.take(length)
        return data.decode() if field.type == "string" else data

    def length(self, format_if_fixed: str) -> int | None:
        length = self.varint() - 1 if self.flexible else self.fixed(format_if_fixed)
        return None if length < 0 else length

    def fixed(self, fmt: str) -> Any:
        return struct.unpack(fmt, self.take(struct.calcsize(fmt)))[0]

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.take(1)[0]) > 127:
            value += (byte - 128) << shift
            shift += 7
        return value + (byte << shift)
