"""Rows of `kpybroker log dump` for a `.log` file: one for every batch and, if requested, for every record.

Rows are plain dicts; their fields are listed in docs/internals/disk-format.md and have the names of DumpLogSegments. A
damaged place becomes a row of type `error`, and the walk continues where it can.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kpybroker.core.topic_names import (
    GROUP_METADATA_TOPIC_NAME,
    SHARE_GROUP_STATE_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
)
from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import UnknownLogDirectoryError
from kpybroker.storage.disk.files import File
from kpybroker.storage.inspection.batch_walk import Damage, DamageKind, Placed, crc_of, walk
from kpybroker.storage.inspection.dump_internal import decode_internal
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import CODEC_MASK, BatchHeader, TimestampType
from kpybroker.wire.records.control import ControlRecordType, parse_control_type, parse_end_transaction_marker
from kpybroker.wire.records.record import Record, iter_records

Row = dict[str, Any]

UNCOMPRESSED_MAX = 100 * 1024 * 1024
"""Records of a compressed batch that holds more are not shown."""

_SPACES = str.maketrans("", "", "\t\r\n")

DECODERS = {
    "auto": None,
    "offsets": GROUP_METADATA_TOPIC_NAME,
    "transactions": TRANSACTION_STATE_TOPIC_NAME,
    "share-states": SHARE_GROUP_STATE_TOPIC_NAME,
    "raw": "",
}


@dataclass(slots=True)
class Selection:
    """What to show. `batches_left` counts down over the segments of one partition."""

    records: bool = False
    offset: int = 0
    batches_left: int | None = None
    decoder: str = "auto"

    @property
    def is_over(self) -> bool:
        """Whether all requested batches were shown."""
        return self.batches_left is not None and self.batches_left <= 0


def segment_rows(file: File, path: str, wanted: Selection) -> Iterator[Row]:
    """Rows of type `batch`, `record` and `error`. Raises OSError."""
    topic = internal_topic(path, wanted.decoder) if wanted.records else None
    try:
        for placed in walk(file, file.size()):
            if wanted.is_over:
                return
            if placed[1].last_offset < wanted.offset:
                continue
            if wanted.batches_left is not None:
                wanted.batches_left -= 1
            yield _batch_row(file, placed)
            if wanted.records:
                yield from _record_rows(placed, wanted.offset, topic)
    except Damage as damage:
        kind = "incomplete" if damage.kind is DamageKind.INCOMPLETE else "damaged"
        yield error_row(f"{kind} from here on: {damage}", damage.position)


def internal_topic(path: str, decoder: str) -> str | None:
    """The decoded topic that the file belongs to, by its directory unless `decoder` names one; None for others."""
    if decoder != "auto":
        return DECODERS[decoder] or None
    try:
        topic = names.parse_dir_name(path.rpartition("/")[0]).topic
    except UnknownLogDirectoryError:
        return None
    return topic if topic in DECODERS.values() else None


def error_row(message: str, position: int | None = None) -> Row:
    """A row of type `error`, with the position in the file where there is one."""
    return {"type": "error", "position": position, "message": message}


def _batch_row(file: File, placed: Placed) -> Row:
    position, header, data = placed
    is_v2 = header.magic == 2
    return {
        "type": "batch",
        "position": position,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.records_count if is_v2 else None,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp if is_v2 and header.has_delete_horizon else None,
        "timestampType": _timestamp_type(header),
        "timestamp": header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compression": codec_name(header),
        "crc": header.crc,
        "isValid": crc_of(file, position, header, data) == header.crc,
    }


def _timestamp_type(header: BatchHeader) -> str:
    if header.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if header.timestamp_type is TimestampType.LOG_APPEND_TIME else "CreateTime"


def codec_name(header: BatchHeader) -> str:
    """The name of a batch's compression, or `unknown(id)`."""
    number = header.attributes & CODEC_MASK
    return Codec(number).name.lower() if number < len(Codec) else f"unknown({number})"


def _record_rows(placed: Placed, offset: int, topic: str | None) -> Iterator[Row]:
    position, header, data = placed
    if data is None:
        yield error_row(f"the records of a batch of {header.size} bytes are not shown", position)
        return
    try:
        for record in iter_records(data, header, max_bytes=UNCOMPRESSED_MAX):
            if record.offset >= offset:
                yield _control_row(record) if header.is_control else _record_row(record, topic)
    except KafkaError as error:
        yield error_row(f"the records of this batch cannot be read: {error}", position)


def _record_row(record: Record, topic: str | None) -> Row:
    row = _record_head(record)
    if record.headers_left_out:
        row["headersLeftOut"] = record.headers_left_out
    if topic is None:
        return row | shown("key", record.key) | shown("value", record.value)
    key, value = decode_internal(topic, record.key, record.value)
    return row | {"key": key, "value": value}


def _record_head(record: Record) -> Row:
    return {
        "type": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": record.sequence,
        "headers": [{"key": _safe(name), **shown("value", value)} for name, value in record.headers],
    }


def _control_row(record: Record) -> Row:
    control = parse_control_type(record.key)
    row = _record_head(record) | {"control": control.name}
    if control in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = parse_end_transaction_marker(record)
        assert marker is not None
        return row | {"coordinatorEpoch": marker.coordinator_epoch}
    return row | shown("key", record.key) | shown("value", record.value)


def shown(name: str, data: bytes | None) -> Row:
    """`name` with printable text or null; otherwise `nameBase64`."""
    if data is None:
        return {name: None}
    try:
        text = data.decode()
        if text.isprintable() or text.translate(_SPACES).isprintable():
            return {name: text}
    except UnicodeDecodeError:
        pass
    return {f"{name}Base64": base64.b64encode(data).decode()}


def _safe(text: str) -> str:
    """A header's name with bytes that are not UTF-8 made visible."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
