"""A descriptor as the text of a .proto file: one way to write each, with the comments in front of things.

Not everything can be written: `Unprintable` is raised for options that are extensions, groups, features of editions and
whatever else a descriptor holds that is not written here. `protobuf.py` compiles what was written and compares it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.unknown_fields import UnknownFieldSet

LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
TYPES: Final = {
    value.number: value.name.removeprefix("TYPE_").lower() for value in FieldDescriptorProto.Type.DESCRIPTOR.values
}
GROUP, MESSAGE, ENUM, STRING, BYTES = 10, 11, 14, 9, 12
PROTO3: Final = "proto3"
FIELD_MAX: Final = 1 << 29
Path = tuple[int, ...]


class Unprintable(Exception):
    """Something in the descriptor has no text here."""


def text_of(file: FileDescriptorProto) -> str:
    """Ends with a line feed. Raises Unprintable."""
    return _Printer(file).text()


class _Printer:
    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._is_proto3 = file.syntax == PROTO3
        self._comments = {
            tuple(place.path): place.leading_comments
            for place in file.source_code_info.location
            if place.leading_comments
        }

    def text(self) -> str:
        file = self._file
        if file.syntax not in ("", "proto2", PROTO3):
            raise Unprintable("editions")
        parts = [f'{self._comment((12,), "")}syntax = "{file.syntax or "proto2"}";\n']
        if file.package:
            parts.append(f"{self._comment((2,), '')}package {file.package};\n")
        imports = [
            f'import {"public " if number in file.public_dependency else ""}"{name}";\n'
            for number, name in enumerate(file.dependency)
        ]
        if file.weak_dependency:
            raise Unprintable("weak imports")
        parts.append("".join(imports))
        parts.append("".join(f"option {option};\n" for option in _options(file.options)))
        for number, enum in enumerate(file.enum_type):
            parts.append(self._enum(enum, (5, number), ""))
        for number, message in enumerate(file.message_type):
            parts.append(self._message(message, (4, number), ""))
        if file.extension:
            parts.append(self._extensions(file.extension, ""))
        for number, service in enumerate(file.service):
            parts.append(self._service(service, (6, number)))
        return "\n".join(part for part in parts if part)

    def _comment(self, path: Path, indent: str) -> str:
        found = self._comments.get(path)
        if found is None:
            return ""
        return "".join(f"{indent}//{line.rstrip()}\n" for line in found.removesuffix("\n").split("\n"))

    def _message(self, message: DescriptorProto, path: Path, indent: str) -> str:
        inner = indent + "  "
        lines = [f"{self._comment(path, indent)}{indent}message {message.name} {{\n"]
        lines += [f"{inner}option {option};\n" for option in _options(message.options)]
        lines += _reserved(message.reserved_range, message.reserved_name, inner, is_enum=False)
        for found in message.extension_range:
            if found.HasField("options"):
                raise Unprintable("options of extension ranges")
            lines.append(f"{inner}extensions {_range(found.start, found.end - 1, FIELD_MAX - 1)};\n")
        maps = {one.name: one for one in message.nested_type if one.options.map_entry}
        lines += self._fields(message, maps, path, inner)
        if message.extension:
            lines.append(self._extensions(message.extension, inner))
        lines += [self._enum(enum, (*path, 4, number), inner) for number, enum in enumerate(message.enum_type)]
        for number, nested in enumerate(message.nested_type):
            if nested.name not in maps:
                lines.append(self._message(nested, (*path, 3, number), inner))
        return "".join([*lines, f"{indent}}}\n"])

    def _fields(
        self, message: DescriptorProto, maps: dict[str, DescriptorProto], path: Path, indent: str
    ) -> Iterator[str]:
        written: set[int] = set()
        for number, field in enumerate(message.field):
            in_oneof = field.HasField("oneof_index") and not field.proto3_optional
            if not in_oneof:
                yield self._field(field, maps, (*path, 2, number), indent)
            elif field.oneof_index not in written:
                written.add(field.oneof_index)
                yield self._oneof(message, field.oneof_index, path, indent)

    def _oneof(self, message: DescriptorProto, index: int, path: Path, indent: str) -> str:
        oneof = message.oneof_decl[index]
        lines = [f"{self._comment((*path, 8, index), indent)}{indent}oneof {oneof.name} {{\n"]
        lines += [f"{indent}  option {option};\n" for option in _options(oneof.options)]
        for number, field in enumerate(message.field):
            if field.HasField("oneof_index") and field.oneof_index == index and not field.proto3_optional:
                lines.append(self._field(field, {}, (*path, 2, number), indent + "  ", in_oneof=True))
        return "".join([*lines, f"{indent}}}\n"])

    def _field(
        self,
        field: FieldDescriptorProto,
        maps: dict[str, DescriptorProto],
        path: Path,
        indent: str,
        *,
        in_oneof: bool = False,
    ) -> str:
        if field.type == GROUP:
            raise Unprintable("groups")
        entry = maps.get(field.type_name.rpartition(".")[2]) if field.type == MESSAGE else None
        if entry is not None:
            kind = f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
        else:
            kind = _type(field)
            is_plain = in_oneof or (self._is_proto3 and field.label == 1 and not field.proto3_optional)
            kind = kind if is_plain else f"{LABELS[field.label]} {kind}"
        options = [*_default(field), *_json_name(field), *_options(field.options)]
        shown = f" [{', '.join(options)}]" if options else ""
        return f"{self._comment(path, indent)}{indent}{kind} {field.name} = {field.number}{shown};\n"

    def _enum(self, enum: EnumDescriptorProto, path: Path, indent: str) -> str:
        inner = indent + "  "
        lines = [f"{self._comment(path, indent)}{indent}enum {enum.name} {{\n"]
        lines += [f"{inner}option {option};\n" for option in _options(enum.options)]
        for number, value in enumerate(enum.value):
            options = _options(value.options)
            shown = f" [{', '.join(options)}]" if options else ""
            comment = self._comment((*path, 2, number), inner)
            lines.append(f"{comment}{inner}{value.name} = {value.number}{shown};\n")
        lines += _reserved(enum.reserved_range, enum.reserved_name, inner, is_enum=True)
        return "".join([*lines, f"{indent}}}\n"])

    def _extensions(self, fields: Sequence[FieldDescriptorProto], indent: str) -> str:
        return "".join(
            f"{indent}extend {field.extendee} {{\n{self._field(field, {}, (), indent + '  ')}{indent}}}\n"
            for field in fields
        )

    def _service(self, service: ServiceDescriptorProto, path: Path) -> str:
        lines = [f"{self._comment(path, '')}service {service.name} {{\n"]
        lines += [f"  option {option};\n" for option in _options(service.options)]
        for number, method in enumerate(service.method):
            taken = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
            given = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
            options = _options(method.options)
            body = " {\n" + "".join(f"    option {option};\n" for option in options) + "  }\n" if options else ";\n"
            comment = self._comment((*path, 2, number), "  ")
            lines.append(f"{comment}  rpc {method.name}({taken}) returns ({given}){body}")
        return "".join([*lines, "}\n"])


def _type(field: FieldDescriptorProto) -> str:
    return str(field.type_name) if field.type in (MESSAGE, ENUM) else TYPES[field.type]


def _range(first: int, last: int, largest: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last == largest else last}"


def _reserved(ranges: Sequence[Any], names: Sequence[str], indent: str, *, is_enum: bool) -> list[str]:
    """An enum's ranges include their end."""
    shown = [
        _range(one.start, one.end if is_enum else one.end - 1, 2**31 - 1 if is_enum else FIELD_MAX - 1)
        for one in ranges
    ]
    lines = [f"{indent}reserved {', '.join(shown)};\n"] if shown else []
    quoted = ", ".join(f'"{name}"' for name in names)
    return [*lines, f"{indent}reserved {quoted};\n"] if names else lines


def _default(field: FieldDescriptorProto) -> Iterator[str]:
    if field.HasField("default_value"):
        value = field.default_value
        if field.type == STRING:
            value = _quoted(value)
        elif field.type == BYTES:
            value = f'"{value}"'  # it is escaped already
        yield f"default = {value}"


def _json_name(field: FieldDescriptorProto) -> Iterator[str]:
    head, *rest = field.name.split("_")
    usual = head + "".join(part[:1].upper() + part[1:] for part in rest)
    if field.HasField("json_name") and field.json_name != usual:
        yield f"json_name = {_quoted(field.json_name)}"


def _options(options: Any) -> list[str]:
    """Those that protoc knows. Raises Unprintable for others."""
    if len(UnknownFieldSet(options)):
        raise Unprintable("options that are extensions")
    shown = []
    for descriptor, value in options.ListFields():
        if descriptor.name == "map_entry":
            continue
        if descriptor.message_type is not None or hasattr(value, "append"):
            raise Unprintable(f"the option {descriptor.name}")
        if descriptor.enum_type is not None:
            text = descriptor.enum_type.values_by_number[value].name
        elif isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, str):
            text = _quoted(value)
        else:
            text = str(value)
        shown.append(f"{descriptor.name} = {text}")
    return shown


def _quoted(text: str) -> str:
    made = []
    for byte in text.encode():
        character = chr(byte)
        if character in '"\\':
            made.append("\\" + character)
        elif 32 <= byte < 127:
            made.append(character)
        else:
            made.append(f"\\{byte:03o}")
    return f'"{"".join(made)}"'
