"""`tree`: of a descriptor, which some clients send in place of the text.

As in Confluent's registry: options are those of lists, in their order, and Confluent's own; others are left out. Types
have their full names, entries of maps are messages, and `json_name` is written where the descriptor has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.proto.elements import (
    SCALAR_NUMBERS,
    Constant,
    EnumType,
    Extend,
    Field,
    File,
    Kind,
    Label,
    MessageType,
    Method,
    OneOf,
    Option,
    Primitive,
    Range,
    Ranges,
    Service,
)

TYPES: Final = {number: name for name, number in SCALAR_NUMBERS.items()}
LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
OF_FILE: Final = (
    "java_package",
    "java_outer_classname",
    "java_multiple_files",
    "java_generate_equals_and_hash",
    "java_string_check_utf8",
    "optimize_for",
    "go_package",
    "cc_generic_services",
    "java_generic_services",
    "py_generic_services",
    "deprecated",
    "cc_enable_arenas",
    "objc_class_prefix",
    "csharp_namespace",
    "swift_prefix",
    "php_class_prefix",
    "php_namespace",
    "php_metadata_namespace",
    "ruby_package",
    "features",
)
OF_MESSAGE: Final = ("no_standard_descriptor_accessor", "deprecated", "map_entry", "features")
OF_FIELD: Final = (
    "ctype",
    "packed",
    "jstype",
    "deprecated",
    "debug_redact",
    "retention",
    "targets",
    "edition_defaults",
    "features",
    "feature_support",
)
OF_ENUM: Final = ("allow_alias", "deprecated", "features")
OF_CONSTANT: Final = ("deprecated", "debug_redact", "features", "feature_support")
OF_SERVICE: Final = ("deprecated", "features")
OF_METHOD: Final = ("deprecated", "idempotency_level", "features")
OF_EXTENSIONS: Final = ("declaration", "features", "verification")
META_NUMBER: Final = 1088
"""Of the extensions of `confluent/meta.proto`; each is a message with the fields below."""
DOC, PARAMS, TAGS = 1, 2, 3
VALUE_FIRST: Final = ("precision", "scale")
"""Params whose value is written before the key."""


def loaded(data: bytes) -> FileDescriptorProto:
    """A descriptor whose extensions are unknown fields, whatever this program has imported. Raises DecodeError."""
    return cast("FileDescriptorProto", _own_class().FromString(data))


@cache
def _own_class() -> type[Message]:
    pool = DescriptorPool()
    pool.AddSerializedFile(FileDescriptorProto.DESCRIPTOR.file.serialized_pb)
    made: type[Message] = GetMessageClass(pool.FindMessageTypeByName(FileDescriptorProto.DESCRIPTOR.full_name))
    return made


def tree(descriptor: FileDescriptorProto) -> File:
    """Raises RegistryError 42201 for one that breaks off."""
    public = set(descriptor.public_dependency)
    weak = set(descriptor.weak_dependency)
    imports = list(enumerate(descriptor.dependency))
    return File(
        syntax=descriptor.syntax if descriptor.syntax in ("proto2", "proto3") else None,
        package=descriptor.package or None,
        imports=[name for at, name in imports if at not in public and at not in weak],
        public_imports=[name for at, name in imports if at in public],
        types=_types(descriptor.message_type, descriptor.enum_type, descriptor.syntax == "proto3"),
        services=[_service(one) for one in descriptor.service],
        extends=_extends(descriptor.extension, descriptor.syntax == "proto3"),
        options=_options(descriptor.options, OF_FILE, "file"),
    )


def _types(
    messages: Iterable[DescriptorProto], enums: Iterable[EnumDescriptorProto], is_proto3: bool
) -> list[MessageType | EnumType]:
    return [*(_message(one, is_proto3) for one in messages), *map(_enum, enums)]


def _message(message: DescriptorProto, is_proto3: bool) -> MessageType:
    made = MessageType(message.name, options=_options(message.options, OF_MESSAGE, "message"))
    oneofs = [OneOf(one.name, options=_options(one.options, ("features",))) for one in message.oneof_decl]
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            if not 0 <= field.oneof_index < len(oneofs):
                raise invalid_schema(f"the field {field.name[:100]} is in no oneof of its message")
            oneofs[field.oneof_index].fields.append(_field(field, is_proto3, is_in_oneof=True))
        else:
            made.fields.append(_field(field, is_proto3))
    made.oneofs = [one for one in oneofs if one.fields]
    made.types = _types(message.nested_type, message.enum_type, is_proto3)
    made.reserved = [Ranges([_range(one.start, one.end - 1)]) for one in message.reserved_range]
    made.reserved += (Ranges([name]) for name in message.reserved_name)
    made.extensions = [
        Ranges([_range(one.start, one.end - 1)], _options(one.options, OF_EXTENSIONS))
        for one in message.extension_range
    ]
    made.extends = _extends(message.extension, is_proto3)
    return made


def _range(first: int, last: int) -> Range:
    return first if first == last else (first, last)


def _extends(fields: Iterable[FieldDescriptorProto], is_proto3: bool) -> list[Extend]:
    found: dict[str, Extend] = {}
    for field in fields:
        found.setdefault(field.extendee, Extend(field.extendee)).fields.append(_field(field, is_proto3))
    return list(found.values())


def _field(field: FieldDescriptorProto, is_proto3: bool, *, is_in_oneof: bool = False) -> Field:
    kind = field.type_name if field.HasField("type_name") else TYPES.get(field.type)
    if kind is None:
        raise invalid_schema(f"the field {field.name[:100]} has no type")
    return Field(
        "" if is_in_oneof else _label(field, is_proto3),
        kind,
        field.name,
        field.number,
        field.default_value if field.HasField("default_value") and not is_proto3 else None,
        field.json_name if field.HasField("json_name") else None,
        _options(field.options, OF_FIELD, "field"),
    )


def _label(field: FieldDescriptorProto, is_proto3: bool) -> Label:
    label = LABELS[field.label]
    return label if label == "repeated" or field.proto3_optional or not is_proto3 else ""


def _enum(enum: EnumDescriptorProto) -> EnumType:
    return EnumType(
        enum.name,
        [Constant(one.name, one.number, _options(one.options, OF_CONSTANT, "enum_value")) for one in enum.value],
        _options(enum.options, OF_ENUM, "enum"),
        [
            *(Ranges([_range(one.start, one.end)]) for one in enum.reserved_range),
            *(Ranges([name]) for name in enum.reserved_name),
        ],
    )


def _service(service: ServiceDescriptorProto) -> Service:
    methods = [
        Method(
            one.name,
            one.input_type,
            one.output_type,
            one.client_streaming,
            one.server_streaming,
            _options(one.options, OF_METHOD),
        )
        for one in service.method
    ]
    return Service(service.name, methods, _options(service.options, OF_SERVICE))


def _options(options: Message, names: Sequence[str], meta: str | None = None) -> list[Option]:
    """`meta` is the place that Confluent's own option has its name from."""
    found: list[Option] = []
    for name in names:
        field = options.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            continue
        if field.is_repeated:
            found += (_option(field, value) for value in getattr(options, name))
        elif options.HasField(name):
            found.append(_option(field, getattr(options, name)))
    values = _meta(options) if meta is not None else {}
    if values:
        found.append(Option(f"confluent.{meta}_meta", Kind.MAP, values, True))
    return found


def _option(field: FieldDescriptor, value: Any) -> Option:
    if field.message_type is not None:
        inner = {one.name: _in_map(one, part) for one, part in value.ListFields() if not one.is_extension}
        return Option(field.name, Kind.MAP, inner)
    kind, text = _scalar(field, value)
    return Option(field.name, kind, text)


def _in_map(field: FieldDescriptor, value: Any) -> Any:
    kind, text = _scalar(field, value)
    return text if kind is Kind.STRING else Primitive(kind, text)


def _scalar(field: FieldDescriptor, value: Any) -> tuple[Kind, str]:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Kind.ENUM, known.name if known is not None else str(value)
    if isinstance(value, bool):
        return Kind.BOOLEAN, "true" if value else "false"
    return (Kind.STRING, value) if isinstance(value, str) else (Kind.NUMBER, str(value))


def _meta(options: Message) -> dict[str, Any]:
    """`confluent.Meta` among the extensions that this program does not know: doc, params and tags."""
    found: dict[str, Any] = {}
    try:
        for one in UnknownFieldSet(options):
            if one.field_number == META_NUMBER and isinstance(one.data, bytes):
                _add_meta(found, one.data)
    except (DecodeError, UnicodeDecodeError):
        raise invalid_schema("an option of Confluent cannot be read") from None
    order = ("doc", "params", "tags")
    return {key: found[key] for key in order if key in found}


def _add_meta(found: dict[str, Any], data: bytes) -> None:
    for number, value in _parts(data):
        if number == DOC and value:
            found["doc"] = value.decode()
        elif number == PARAMS:
            entry = {one: part.decode() for one, part in _parts(value)}
            pair = {"key": entry.get(1, ""), "value": entry.get(2, "")}
            if pair["key"] in VALUE_FIRST:
                pair = {"value": pair["value"], "key": pair["key"]}
            found.setdefault("params", []).append(pair)
        elif number == TAGS:
            found.setdefault("tags", []).append(value.decode())


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    """The fields of a message that have bytes: one without fields of its own keeps all."""
    message = Empty.FromString(data)
    return [(one.field_number, one.data) for one in UnknownFieldSet(message) if isinstance(one.data, bytes)]
