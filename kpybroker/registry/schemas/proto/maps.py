"""`with_maps`: a tree whose maps are written as maps.

In a descriptor, and so in its text, a map is a repeated field of a message with `option map_entry`. protoc refuses that
in a text: it makes such messages itself.
"""

from __future__ import annotations

from dataclasses import replace

from kpybroker.registry.schemas.proto.elements import EnumType, Field, File, MessageType


def with_maps(file: File) -> File:
    """The same file; where no message is the entry of a map, an equal one."""
    return replace(file, types=[_type(one) for one in file.types])


def _type(one: MessageType | EnumType) -> MessageType | EnumType:
    if isinstance(one, EnumType):
        return one
    entries = {each.name: each for each in one.types if isinstance(each, MessageType) and each.is_map_entry}
    kept = [_type(each) for each in one.types if each.name not in entries]
    return replace(one, types=kept, fields=[_field(each, entries) for each in one.fields])


def _field(field: Field, entries: dict[str, MessageType]) -> Field:
    entry = entries.get(field.type.rpartition(".")[2])
    if entry is None or field.label != "repeated":
        return field
    kinds = {each.name: each.type for each in entry.fields}
    return field._replace(label="", type=f"map<{kinds.get('key')}, {kinds.get('value')}>")
