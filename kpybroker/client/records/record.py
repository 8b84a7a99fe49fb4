"""`Record`: what is known of a record, before it is sent and after it was read."""

from __future__ import annotations

from typing import Any, NamedTuple

Headers = list[tuple[str, bytes | None]]

TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class Record(NamedTuple):
    """A record. Unknown numbers are None: the partition and offset of one to produce, the timestamp of an old one."""

    topic: str | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    timestamp_type: str | None = None
    leader_epoch: int | None = None


def of_message(message: Any) -> Record:
    """confluent-kafka's message."""
    kind, timestamp_ms = message.timestamp()
    return Record(
        message.topic(),
        message.key(),
        message.value(),
        message.headers() or [],
        message.partition(),
        message.offset(),
        timestamp_ms if kind in TIMESTAMP_TYPES else None,
        TIMESTAMP_TYPES.get(kind),
        message.leader_epoch(),
    )
