"""Messages as JSON by their schema, in a given style: what a field is called, and what bytes and records are.

Secrets are `[hidden]` in every style: fields that are one, and the values of settings that a style says are.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

from kpybroker.wire.primitives import Buffer
from kpybroker.wire.schema import HIDDEN, SECRET_FIELDS, Field, Message, default_value, struct_fields

JSON = Any


class Style(NamedTuple):
    """How a kind of JSON is written.

    `name` is a field's and takes its value too; `is_secret` takes the message's class and the name of a setting in it.
    """

    name: Callable[[Field, Any], str]
    data: Callable[[Buffer], JSON]
    records: Callable[[Buffer], JSON]
    is_secret: Callable[[type[Message], str], bool]
    has_defaults: bool = True
    """Whether tagged fields are there that have their default."""


def message_in(style: Style, message: Message, version: int) -> dict[str, JSON]:
    """The fields that a version of a message has."""
    return _struct(style, type(message), message, version)


def _struct(style: Style, message_class: type[Message], node: Message, version: int) -> dict[str, JSON]:
    inner = None if type(node) is message_class else type(node)
    found: dict[str, JSON] = {}
    for field in struct_fields(message_class, inner):
        value = getattr(node, field.name)
        if not field.present(version):
            continue
        if not style.has_defaults and field.is_tagged(version) and value in (None, default_value(field)):
            continue
        found[style.name(field, value)] = _value(style, message_class, field, value, version)
    setting = found.get("name")
    if found.get("value") is not None and isinstance(setting, str) and style.is_secret(message_class, setting):
        found["value"] = HIDDEN
    return found


def _value(style: Style, message_class: type[Message], field: Field, value: Any, version: int) -> JSON:
    if value is None:
        return None
    if field.name in SECRET_FIELDS:
        return HIDDEN
    if field.array:
        return [_element(style, message_class, field, one, version) for one in value]
    return _element(style, message_class, field, value, version)


def _element(style: Style, message_class: type[Message], field: Field, value: Any, version: int) -> JSON:
    if isinstance(value, Message):
        return _struct(style, message_class, value, version)
    match field.type_name:
        case "uuid":
            return uuid_text(value)
        case "bytes":
            return style.data(value)
        case "records":
            return style.records(value)
        case _:
            return value


def uuid_text(value: bytes) -> str:
    """A UUID as Kafka prints it."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
