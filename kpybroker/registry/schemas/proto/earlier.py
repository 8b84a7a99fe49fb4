"""`comparable`: one text for what other registries, and earlier versions of this one, spelled in several ways.

They wrote out the syntax, left out a `json_name` that is the default, and escaped each byte of a text beyond ASCII.
Only texts that are not in the form of `printer.printed` are compared so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpybroker.registry.schemas.proto import printer
from kpybroker.registry.schemas.proto.elements import EnumType, Field, File, Kind, MessageType, OneOf, Option
from kpybroker.registry.schemas.proto.names import Names


def comparable(file: File, names: Names) -> str:
    """Raises RegistryError 42201 for a name that no type has."""
    types = [_type(one) for one in file.types]
    return printer.normalized(replace(file, types=types, options=_options(file.options)), names)


def _type(one: MessageType | EnumType) -> MessageType | EnumType:
    if isinstance(one, EnumType):
        return one
    return replace(
        one,
        types=[_type(each) for each in one.types],
        fields=[_field(each) for each in one.fields],
        oneofs=[_oneof(each) for each in one.oneofs],
        options=_options(one.options),
    )


def _oneof(one: OneOf) -> OneOf:
    return replace(one, fields=[_field(each) for each in one.fields])


def _field(field: Field) -> Field:
    json_name = None if field.json_name == default_json_name(field.name) else field.json_name
    default = None if field.default is None else _decoded(field.default)
    return field._replace(json_name=json_name, default=default, options=_options(field.options))


def default_json_name(name: str) -> str:
    """As protoc makes it: without underscores, and with a capital behind each."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _options(options: Sequence[Option]) -> list[Option]:
    return [one._replace(value=_decoded(one.value)) if one.kind is Kind.STRING else one for one in options]


def _decoded(text: str) -> str:
    """Characters that are bytes of UTF-8, as those that they are together."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text
