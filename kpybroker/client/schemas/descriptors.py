"""`Messages`: the messages of a Protobuf schema, from the descriptors of its file and of those that it imports.

In front of a message's bytes is which message of the file it is: its index at each level.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.schemas.registry import Schema

KNOWN_FILES: Final = (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
INDEXES_MAX: Final = 100


class Messages:
    """Raises CommandError for a schema that is a text: of those the registry client makes descriptors where it can."""

    def __init__(self, schema: Schema) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        for known in KNOWN_FILES:
            self.pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
        known_names = {known.DESCRIPTOR.name for known in KNOWN_FILES}
        for name, text in schema.references:
            if name not in known_names:
                self.pool.AddSerializedFile(_file(text, name).SerializeToString())
        main = _file(schema.text, "schema.proto")
        self.pool.AddSerializedFile(main.SerializeToString())
        found = self.pool.FindFileByName(main.name)
        self._top = [found.message_types_by_name[one.name] for one in main.message_type]

    def parsed(self, data: bytes) -> Any:
        """The message of bytes with indexes in front. Raises anything for bytes that are none."""
        indexes, start = read_indexes(data)
        message = self._top[indexes[0]]
        for index in indexes[1:]:
            message = message.nested_types[index]
        made = message_factory.GetMessageClass(message)()
        made.ParseFromString(data[start:])
        return made

    def empty(self, name: str | None) -> tuple[bytes, Any]:
        """The indexes and a new message of this name, with or without its package; of the first without a name.

        Raises CommandError.
        """
        indexes, found = [0], self._top[0] if self._top else None
        if name is not None:
            indexes, found = next(
                ((path, one) for path, one in self._all(self._top, []) if name in (one.full_name, one.name)),
                ([], None),
            )
        if found is None:
            known = ", ".join(one.full_name for _, one in self._all(self._top, [])) or "none"
            raise CommandError(f"the schema has no message {name or ''}".rstrip(), f"--message names one of: {known}")
        return written_indexes(indexes), message_factory.GetMessageClass(found)()

    def _all(self, messages: Any, path: list[int]) -> list[tuple[list[int], Any]]:
        found = []
        for index, one in enumerate(messages):
            if not one.GetOptions().map_entry:
                found += [([*path, index], one), *self._all(one.nested_types, [*path, index])]
        return found


def _file(text: str, name: str) -> Any:
    """A descriptor of a file as the registry compiles it. Raises CommandError for its text."""
    try:
        made = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        why = "the registry does not compile Protobuf, and kpybroker does so with kpybroker[protobuf] only"
        raise CommandError(why, "pip install 'kpybroker[protobuf]'") from None
    made.name = name
    return made


def read_indexes(data: bytes) -> tuple[list[int], int]:
    """Which message of the file: its index at each level, and where the data begin. Raises ValueError, IndexError."""
    count, at = _zigzag(data, 0)
    if count == 0:
        return [0], at
    if not 0 < count <= INDEXES_MAX:
        raise ValueError(f"{count} indexes of a message")
    found = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        if index < 0:
            raise ValueError(f"message {index}")
        found.append(index)
    return found, at


def written_indexes(indexes: list[int]) -> bytes:
    """The reverse; the first message of a file is one zero."""
    numbers = [0] if indexes == [0] else [len(indexes), *indexes]
    written = bytearray()
    for number in numbers:
        value = number << 1
        while value > 0x7F:
            written.append(value & 0x7F | 0x80)
            value >>= 7
        written.append(value)
    return bytes(written)


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise ValueError("a number of more than five bytes")
