"""Protobuf: whether the reader can decode what the writer encoded, by Confluent's rules.

Fields are compared by number. What is not listed here is compatible: new fields, removed ones that are not required,
renamed ones, enums with other values. Messages are found by their name, so none may go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kpybroker.registry.compatibility.reasons import Reason
from kpybroker.registry.schemas.protobuf import ProtobufSchema

GROUP, MESSAGE, ENUM = 10, 11, 14
REQUIRED: Final = 2
NUMBERS: Final = "numbers"
KINDS: Final = {
    **dict.fromkeys((3, 4, 5, 8, 13, ENUM), NUMBERS),  # int64, uint64, int32, bool, uint32
    **dict.fromkeys((17, 18), "zigzag"),
    **dict.fromkeys((9, 12), "text"),
    **dict.fromkeys((7, 15), "fixed32"),
    **dict.fromkeys((6, 16), "fixed64"),
    2: "float",
    1: "double",
}
"""Types of one kind are encoded alike."""


class Side(NamedTuple):
    """One schema: its types by full name, each with its package."""

    messages: Mapping[str, tuple[DescriptorProto, str]]
    is_proto3: Mapping[str, bool]
    """By the full name of the message."""


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Reason]:
    """Why the reader cannot decode data of the writer; empty if it can."""
    old, new = writer.descriptors[-1], reader.descriptors[-1]
    found = []
    if old.package != new.package:
        found.append(Reason("PACKAGE_CHANGED", "#/", "The package in the %reader is not that of the %writer"))
    comparison = _Comparison(_side(writer), _side(reader))
    prefixes = (f".{old.package}" if old.package else "", f".{new.package}" if new.package else "")
    return found + comparison.types(old.message_type, new.message_type, prefixes, "#")


def _side(schema: ProtobufSchema) -> Side:
    messages: dict[str, tuple[DescriptorProto, str]] = {}
    is_proto3: dict[str, bool] = {}
    for file in schema.descriptors:
        for name, message in _all(file):
            messages[name] = (message, file.package)
            is_proto3[name] = file.syntax == "proto3"
    return Side(messages, is_proto3)


def _all(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    prefix = f".{file.package}" if file.package else ""
    waiting = [(f"{prefix}.{message.name}", message) for message in file.message_type]
    while waiting:
        name, message = waiting.pop()
        yield name, message
        waiting += [(f"{name}.{nested.name}", nested) for nested in message.nested_type]


class _Comparison:
    """Remembers pairs of messages: each is compared once, which also ends cycles."""

    def __init__(self, old: Side, new: Side) -> None:
        self._old = old
        self._new = new
        self._known: dict[tuple[str, str], list[Reason]] = {}

    def types(
        self, old: list[DescriptorProto], new: list[DescriptorProto], prefixes: tuple[str, str], path: str
    ) -> list[Reason]:
        """Messages directly in a file or a message. Entries of maps are compared with their field."""
        after = {message.name for message in new}
        found = []
        for message in old:
            here = f"{path}/{message.name}"
            if message.name in after:
                names = (f"{prefixes[0]}.{message.name}", f"{prefixes[1]}.{message.name}")
                found += self._messages(*names, here)
            elif not message.options.map_entry:
                found.append(Reason("MESSAGE_REMOVED", here, "The %reader is missing a message of the %writer"))
        return found

    def _messages(self, old_name: str, new_name: str, path: str) -> list[Reason]:
        pair = (old_name, new_name)
        if pair not in self._known:
            self._known[pair] = []
            (old, _), (new, _) = self._old.messages[old_name], self._new.messages[new_name]
            nested = self.types(list(old.nested_type), list(new.nested_type), pair, path)
            self._known[pair] = [*self._fields(old, new, pair, path), *nested]
        return self._known[pair]

    def _fields(self, old: DescriptorProto, new: DescriptorProto, names: tuple[str, str], path: str) -> list[Reason]:
        before = {field.number: field for field in old.field}
        after = {field.number: field for field in new.field}
        found = list(_oneofs(old, new, path))
        gone = _gone_oneofs(old, new)
        for number in sorted({*before, *after}):
            here = f"{path}/{number}"
            if number not in after:
                found += _removed(old, before[number], gone, here)
            elif number not in before:
                if after[number].label == REQUIRED:
                    text = "A required field of the %reader is missing in the %writer"
                    found.append(Reason("REQUIRED_FIELD_ADDED", here, text))
            else:
                found += self._field(before[number], after[number], names, here)
        return found

    def _field(
        self, old: FieldDescriptorProto, new: FieldDescriptorProto, names: tuple[str, str], path: str
    ) -> list[Reason]:
        before, after = self._entry(self._old, old), self._entry(self._new, new)
        if before is not None and after is not None:
            inside = [self._value(one, other, path) for one, other in zip(before.field, after.field, strict=True)]
            return [reason for reasons in inside for reason in reasons]
        if before is not None or after is not None or _is_message(old) != _is_message(new):
            return [Reason("FIELD_KIND_CHANGED", path, "The type of a field in the %reader is not that of the %writer")]
        found = self._value(old, new, path)
        if not found and not _is_message(old) and KINDS[old.type] != "text":
            labels = _label(old, self._old.is_proto3[names[0]]), _label(new, self._new.is_proto3[names[1]])
            if None not in labels and labels[0] != labels[1]:
                text = "The label of a numeric field in the %reader is not that of the %writer"
                return [Reason("FIELD_NUMERIC_LABEL_CHANGED", path, text)]
        return found

    @staticmethod
    def _entry(side: Side, field: FieldDescriptorProto) -> DescriptorProto | None:
        """Of a map."""
        if field.type != MESSAGE:
            return None
        message, _ = side.messages[field.type_name]
        return message if message.options.map_entry else None

    def _value(self, old: FieldDescriptorProto, new: FieldDescriptorProto, path: str) -> list[Reason]:
        if _is_message(old) != _is_message(new):
            return [Reason("FIELD_KIND_CHANGED", path, "The type of a field in the %reader is not that of the %writer")]
        if not _is_message(old):
            if KINDS[old.type] == KINDS[new.type]:
                return []
            text = "The kind of a scalar field in the %reader is not that of the %writer"
            return [Reason("FIELD_SCALAR_KIND_CHANGED", path, text)]
        changed = Reason(
            "FIELD_NAMED_TYPE_CHANGED", path, "The message of a field in the %reader is not that of the %writer"
        )
        if _local(self._old, old.type_name) != _local(self._new, new.type_name):
            return [changed]
        found = self._messages(old.type_name, new.type_name, path)
        return [*found, changed] if found else []


def _local(side: Side, name: str) -> str:
    """A message's name without its package."""
    package = side.messages[name][1]
    return name.removeprefix(f".{package}." if package else ".")


def _is_message(field: FieldDescriptorProto) -> bool:
    return field.type in (MESSAGE, GROUP)


def _label(field: FieldDescriptorProto, is_proto3: bool) -> int | None:
    """None for a field of proto3 that has none."""
    return None if is_proto3 and field.label == 1 and not field.proto3_optional else int(field.label)


def _oneof_of(message: DescriptorProto, field: FieldDescriptorProto) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.oneof_decl[field.oneof_index].name)


def _gone_oneofs(old: DescriptorProto, new: DescriptorProto) -> set[str]:
    """Those of which nothing is left: deleting one whole is compatible."""
    numbers = {field.number for field in new.field}
    names = {_oneof_of(new, field) for field in new.field}
    gone: dict[str, bool] = {}
    for field in old.field:
        name = _oneof_of(old, field)
        if name is not None:
            gone[name] = gone.get(name, True) and field.number not in numbers and name not in names
    return {name for name, is_gone in gone.items() if is_gone}


def _removed(message: DescriptorProto, field: FieldDescriptorProto, gone: set[str], path: str) -> list[Reason]:
    oneof = _oneof_of(message, field)
    if oneof is not None:
        if oneof in gone:
            return []
        return [Reason("ONEOF_FIELD_REMOVED", path, "The %reader is missing a field of a oneof of the %writer")]
    if field.label == REQUIRED:
        return [Reason("REQUIRED_FIELD_REMOVED", path, "The %reader is missing a required field of the %writer")]
    return []


def _oneofs(old: DescriptorProto, new: DescriptorProto, path: str) -> Iterator[Reason]:
    """Fields that could be set together cannot be any more."""
    before = {field.number: _oneof_of(old, field) for field in old.field}
    groups: dict[str, set[object]] = {}
    for field in new.field:
        oneof = _oneof_of(new, field)
        if oneof is not None and field.number in before:
            groups.setdefault(oneof, set()).add(before[field.number] or field.number)
    for name, group in groups.items():
        if len(group) > 1:
            is_several = sum(isinstance(one, int) for one in group) > 1
            kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if is_several else "FIELD_MOVED_TO_EXISTING_ONEOF"
            text = "Fields of a oneof of the %reader could be set together in the %writer"
            yield Reason(kind, f"{path}/{name}", text)
