"""`descriptors`: of a tree and its references, what comparing needs of a descriptor, without protoc.

Each file has its messages with fields, oneofs and the entries of its maps; options, defaults, services and extensions
are left out. Files that protoc would refuse have descriptors too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kpybroker.registry.schemas.proto.builtin import FILES
from kpybroker.registry.schemas.proto.elements import SCALAR_NUMBERS, EnumType, Field, File, Group, MessageType
from kpybroker.registry.schemas.proto.names import Names, names_of

LABELS: Final = {"": 1, "optional": 1, "required": 2, "repeated": 3}
GROUP: Final = 10
MESSAGE: Final = 11
ENUM: Final = 14


def descriptors(file: File, references: Iterable[File]) -> list[FileDescriptorProto]:
    """The file's own is the last one."""
    known = list(references)
    return [*_builtin(), *(_described(one, names_of(one, known)) for one in (*known, file))]


@cache
def _builtin() -> tuple[FileDescriptorProto, ...]:
    """Those of the types that need no import."""
    found = []
    for descriptor in FILES:
        made = FileDescriptorProto()
        descriptor.CopyToProto(made)
        found.append(made)
    for package, name in (("confluent", "Meta"), ("confluent.type", "Decimal")):
        found.append(FileDescriptorProto(package=package, syntax="proto3", message_type=[DescriptorProto(name=name)]))
    return tuple(found)


def _described(file: File, names: Names) -> FileDescriptorProto:
    made = FileDescriptorProto(package=file.package or "", syntax=file.syntax or "proto2")
    _Describer(names, is_proto3=file.syntax == "proto3").types(file.types, made.message_type, made.enum_type)
    return made


class _Describer:
    def __init__(self, names: Names, *, is_proto3: bool) -> None:
        self._names = names
        self._is_proto3 = is_proto3

    def types(self, types: Iterable[MessageType | EnumType], messages: Any, enums: Any) -> None:
        """Adds them to the lists of a descriptor."""
        for one in types:
            if isinstance(one, EnumType):
                enums.add(name=one.name)
            else:
                with self._names.within(one.name):
                    self._message(one, messages.add(name=one.name))

    def _message(self, message: MessageType, made: DescriptorProto) -> None:
        self.types(message.types, made.nested_type, made.enum_type)
        if message.is_map_entry:
            made.options.map_entry = True
        for field in message.fields:
            self._field(made, field)
        for group in message.groups:
            self._group(made, group)
        for oneof in message.oneofs:
            place = len(made.oneof_decl)
            made.oneof_decl.add(name=oneof.name)
            for field in oneof.fields:
                self._field(made, field).oneof_index = place
            for group in oneof.groups:
                self._group(made, group).oneof_index = place

    def _field(self, made: DescriptorProto, field: Field) -> FieldDescriptorProto:
        if field.type.startswith("map<"):
            return self._map(made, field)
        found = made.field.add(name=field.name, number=field.number, label=LABELS[field.label])
        self._set_type(found, field.type)
        found.proto3_optional = self._is_proto3 and field.label == "optional"
        return found

    def _set_type(self, made: FieldDescriptorProto, name: str) -> None:
        if name in SCALAR_NUMBERS:
            made.type = SCALAR_NUMBERS[name]
            return
        full = self._names.type(name)
        made.type = MESSAGE if full is not None and self._names.types[full].kind == "message" else ENUM
        made.type_name = f".{full or name.removeprefix('.')}"

    def _map(self, made: DescriptorProto, field: Field) -> FieldDescriptorProto:
        name = f"{''.join(part[:1].upper() + part[1:] for part in field.name.split('_'))}Entry"
        entry = made.nested_type.add(name=name)
        entry.options.map_entry = True
        key, _, value = field.type.removeprefix("map<").removesuffix(">").partition(",")
        for number, (part, kind) in enumerate((("key", key), ("value", value.strip())), 1):
            self._set_type(entry.field.add(name=part, number=number, label=1), kind)
        around = ".".join([*self._names.package, *self._names.scope])
        return made.field.add(
            name=field.name, number=field.number, label=3, type=MESSAGE, type_name=f".{around}.{name}"
        )

    def _group(self, made: DescriptorProto, group: Group) -> FieldDescriptorProto:
        around = ".".join([*self._names.package, *self._names.scope])
        with self._names.within(group.name):
            self._message(MessageType(group.name, fields=list(group.fields)), made.nested_type.add(name=group.name))
        name = f".{around}.{group.name}"
        return made.field.add(
            name=group.name.lower(), number=group.number, label=LABELS[group.label], type=GROUP, type_name=name
        )
