"""The frame of the records of groups: a key starts with its type, a value with version 0, the only one.

A value is flexible, so later Kafkas add tagged fields. A null value is a tombstone. Each kind of group has a table of
its types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.schema import Message

RecordT = TypeVar("RecordT")
MessageT = TypeVar("MessageT")

VALUE_VERSION: Final = 0
_VERSION = struct.Struct(">h")

OF_GROUP: Final = (("group_id", "group_id"),)
"""What a key has: fields of the message, and of the record."""
OF_MEMBER: Final = (*OF_GROUP, ("member_id", "member_id"))


@dataclass(frozen=True, slots=True)
class RecordType:
    """One type: the messages of its key and value, the class of its record, and the way from one value to the other."""

    number: int
    key: type[Message]
    value: type[Message]
    record: Callable[..., Any]
    to_message: Callable[[Any], Message]
    to_value: Callable[[Any], Any]
    fields: tuple[tuple[str, str], ...] = OF_GROUP


class RecordTypes(Generic[RecordT]):
    """The types of one kind of group."""

    __slots__ = ("_by_class", "_by_number")

    def __init__(self, *types: RecordType) -> None:
        self._by_number: Mapping[int, RecordType] = {one.number: one for one in types}
        self._by_class: Mapping[Any, RecordType] = {one.record: one for one in types}

    def encode(self, record: RecordT) -> tuple[bytes, bytes | None]:
        """Key and value bytes."""
        of_type = self._by_class[type(record)]
        message = of_type.key(**{field: getattr(record, name) for field, name in of_type.fields})
        key = _VERSION.pack(of_type.number) + encode(message, of_type.number)
        value: Any = getattr(record, "value")  # noqa: B009 - every record has one
        if value is None:
            return key, None
        return key, _VERSION.pack(VALUE_VERSION) + encode(of_type.to_message(value), VALUE_VERSION)

    def decode(self, number: int, key: bytes | memoryview, value: bytes | memoryview | None) -> RecordT | None:
        """The record of a key without its first two bytes; None if the type is not one of this kind.

        Raises ProtocolError.
        """
        of_type = self._by_number.get(number)
        if of_type is None:
            return None
        decoded = decode(of_type.key, key, number)
        ids = [getattr(decoded, field) for field, _ in of_type.fields]
        found: RecordT = of_type.record(*ids, None if value is None else _value(of_type, value))
        return found


def _value(of_type: RecordType, value: bytes | memoryview) -> Any:
    if len(value) < _VERSION.size:
        raise ProtocolError("the value of a group record is too short for its version")
    version = _VERSION.unpack_from(value)[0]
    if version != VALUE_VERSION:
        raise ProtocolError(f"Unknown version of {of_type.value.__name__}: {version}")
    return of_type.to_value(decode(of_type.value, value[_VERSION.size :], version))


# --- parts that several kinds have, under the same names


def epoch_value(message: Any) -> GroupEpoch:
    """A group's epoch and hash."""
    return GroupEpoch(message.epoch, message.metadata_hash)


def target_epoch_value(message: Any) -> TargetEpoch:
    """The epoch of a target assignment, and when that was computed."""
    return TargetEpoch(message.assignment_epoch, message.assignment_timestamp)


def partitions_value(topics: Iterable[Any]) -> Partitions:
    """Partitions by topic id."""
    return {bytes(topic.topic_id): frozenset(topic.partitions) for topic in topics}


def partitions_message(of: Callable[..., MessageT], topics: Partitions) -> list[MessageT]:
    """One message for each topic."""
    return [of(topic_id=topic_id, partitions=sorted(partitions)) for topic_id, partitions in topics.items()]
