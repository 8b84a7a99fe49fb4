"""`Record`: what is known of a record, before it is sent and after it was read.

A header's key is text. Bytes that are no UTF-8 are surrogates in it (Python's `surrogateescape`), and the same bytes
again when they are written: `key_bytes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Headers = list[tuple[str, bytes | None]]

TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class JsonText(bytes):
    """A key or value as the text of a JSON value: in JSON lines it is that value, and not a string."""


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
    delivery_count: int | None = None
    """How often a share group has delivered it."""


def key_bytes(key: str) -> bytes:
    """The bytes of a header's key."""
    return key.encode(errors="surrogateescape")


def of_parts(message: Any, headers: Headers) -> Record:
    """confluent-kafka's message and its headers, which `exact.Exact` reads."""
    kind, timestamp_ms = message.timestamp()
    return Record(
        message.topic(),
        message.key(),
        message.value(),
        headers,
        message.partition(),
        message.offset(),
        timestamp_ms if kind in TIMESTAMP_TYPES else None,
        TIMESTAMP_TYPES.get(kind),
        message.leader_epoch(),
    )
