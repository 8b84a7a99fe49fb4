"""The usual Produce request and its response, read and written without message classes.

The usual request is one partition of one topic, with no transactional id and no tagged field; the response says that
the records were appended. Both take a quarter of the time of `codec`. Their bytes are those that `codec` makes of
`messages.produce` in these versions, and the tests compare the two. For any other request `read` returns None, and
`codec` decides what it is or what is wrong with it.
"""

from __future__ import annotations

import struct

from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.primitives import varint_tail

VERSIONS = (5, 13)

FastProduce = tuple[int, int, str, bytes, int, memoryview]
"""acks, timeout in ms, topic, topic id, index, records: a view into the frame. Before version 13 the id is zeros, from
it on the name is empty.
"""

TOPIC_IDS_FROM = 13
_FLEXIBLE_FROM = ProduceRequest.FLEXIBLE_FROM

# transactional id (null), acks, timeout, topics (one), length of its name; the name; partitions (one), index, size
_HEAD = struct.Struct(">hhiih")
_PARTITION = struct.Struct(">iii")
# The same with compact lengths (length + 1); the size is a varint. No tagged fields, three times.
_COMPACT_HEAD = struct.Struct(">BhiBB")
_COMPACT_PARTITION = struct.Struct(">BiB")
# Both in one, with the topic's id
_WITH_ID = struct.Struct(">BhiB16sBiB")
_NO_TAGS = b"\0\0\0"

# Frame size, correlation id, topics, length of the name; the name; partitions, index, error code, base offset, log
# append time, log start offset, from version 8 on no record errors and no message, throttle time.
_RESPONSE_HEAD = struct.Struct(">iiih")
_RESPONSE_TAIL = struct.Struct(">iihqqqi")
_RESPONSE_TAIL_8 = struct.Struct(">iihqqqihi")
_COMPACT_RESPONSE_HEAD = struct.Struct(">iixBB")
_RESPONSE_HEAD_WITH_ID = struct.Struct(">iixB16s")
_COMPACT_RESPONSE_TAIL = struct.Struct(">BihqqqBBxxix")


def read(frame: memoryview, position: int, version: int) -> FastProduce | None:
    """The request whose body begins at `position`; None if it is not of the usual form."""
    try:
        if version < _FLEXIBLE_FROM:
            return _read(frame, position)
        if version < TOPIC_IDS_FROM:
            return _read_compact(frame, position)
        return _read_with_id(frame, position)
    except (struct.error, IndexError, ProtocolError, UnicodeDecodeError):
        return None


def _read(frame: memoryview, position: int) -> FastProduce | None:
    no_id, acks, timeout_ms, topics, size = _HEAD.unpack_from(frame, position)
    position += _HEAD.size
    name_end = position + size
    partitions, index, size = _PARTITION.unpack_from(frame, name_end)
    records_at = name_end + _PARTITION.size
    if no_id != -1 or topics != 1 or name_end < position or partitions != 1 or size != len(frame) - records_at:
        return None
    return acks, timeout_ms, str(frame[position:name_end], "utf-8"), ZERO_UUID, index, frame[records_at:]


def _read_compact(frame: memoryview, position: int) -> FastProduce | None:
    no_id, acks, timeout_ms, topics, size = _COMPACT_HEAD.unpack_from(frame, position)
    position += _COMPACT_HEAD.size
    name_end = position + size - 1
    partitions, index, size_plus_one = _COMPACT_PARTITION.unpack_from(frame, name_end)
    records_at = name_end + _COMPACT_PARTITION.size
    if size_plus_one > 127:
        size_plus_one, records_at = varint_tail(frame, records_at, size_plus_one)
    records_end = records_at + size_plus_one - 1
    if no_id or topics != 2 or not 0 < size < 128 or partitions != 2 or size_plus_one == 0:
        return None
    if frame[records_end:] != _NO_TAGS:
        return None
    return acks, timeout_ms, str(frame[position:name_end], "utf-8"), ZERO_UUID, index, frame[records_at:records_end]


def _read_with_id(frame: memoryview, position: int) -> FastProduce | None:
    no_id, acks, timeout_ms, topics, topic_id, partitions, index, size_plus_one = _WITH_ID.unpack_from(frame, position)
    records_at = position + _WITH_ID.size
    if size_plus_one > 127:
        size_plus_one, records_at = varint_tail(frame, records_at, size_plus_one)
    records_end = records_at + size_plus_one - 1
    if no_id or topics != 2 or partitions != 2 or size_plus_one == 0 or frame[records_end:] != _NO_TAGS:
        return None
    return acks, timeout_ms, "", topic_id, index, frame[records_at:records_end]


def encode_response(
    version: int,
    correlation_id: int,
    request: FastProduce,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
) -> bytes:
    """The response frame for records that were appended, its size included."""
    _, _, topic, topic_id, index, _ = request
    if version >= TOPIC_IDS_FROM:
        tail = _COMPACT_RESPONSE_TAIL.pack(2, index, 0, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0)
        return _RESPONSE_HEAD_WITH_ID.pack(22 + len(tail), correlation_id, 2, topic_id) + tail
    name = topic.encode()
    size = len(name)
    if version >= _FLEXIBLE_FROM:
        tail = _COMPACT_RESPONSE_TAIL.pack(2, index, 0, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0)
        return _COMPACT_RESPONSE_HEAD.pack(7 + size + len(tail), correlation_id, 2, size + 1) + name + tail
    if version >= 8:
        tail = _RESPONSE_TAIL_8.pack(1, index, 0, base_offset, log_append_time_ms, log_start_offset, 0, -1, 0)
    else:
        tail = _RESPONSE_TAIL.pack(1, index, 0, base_offset, log_append_time_ms, log_start_offset, 0)
    return _RESPONSE_HEAD.pack(10 + size + len(tail), correlation_id, 1, size) + name + tail
