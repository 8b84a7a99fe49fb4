"""Rows of `kpybroker log dump` for all files except the `.log`: indexes, snapshots, checkpoints, metadata.

Index files are read piece by piece; the others are small in any log that a broker wrote, and refused when they are not.
`verify` uses the iterators over index entries too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import (
    decode_clean_shutdown,
    decode_leader_epochs,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    uuid_to_text,
)
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.disk.files import File, read_exactly
from kpybroker.storage.inspection.dump_segment import Row, error_row
from kpybroker.storage.log.producer_snapshots import decode_snapshot
from kpybroker.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY
from kpybroker.storage.segments.txn_index import ENTRY as TXN_ENTRY
from kpybroker.storage.segments.txn_index import VERSION as TXN_VERSION

SMALL_FILE_MAX: Final = 256 * 1024 * 1024
_ENTRIES_AT_ONCE = 8192

_STRUCTS: Final = {
    names.INDEX_SUFFIX: OFFSET_ENTRY,
    names.TIME_INDEX_SUFFIX: TIME_ENTRY,
    names.TXN_INDEX_SUFFIX: TXN_ENTRY,
}


def index_entries(file: File, suffix: str, size: int) -> Iterator[tuple[int, ...]]:
    """(slot, fields...) of the whole entries in the first `size` bytes, as stored; ends where all fields are zero.

    Kafka preallocates an index, so zeros follow the entries of one that is in use or was not closed.
    """
    entry = _STRUCTS[suffix]
    zero = (0,) * len(entry.unpack(bytes(entry.size)))
    count = size // entry.size
    for first in range(0, count, _ENTRIES_AT_ONCE):
        data = read_exactly(file, min(_ENTRIES_AT_ONCE, count - first) * entry.size, first * entry.size)
        for slot, fields in enumerate(entry.iter_unpack(data[: len(data) // entry.size * entry.size]), first):
            if fields == zero:
                return
            yield slot, *fields


def rest_of(suffix: str, size: int) -> int:
    """Bytes after the last whole entry."""
    return size % _STRUCTS[suffix].size


def index_rows(file: File, path: str, suffix: str) -> Iterator[Row]:
    """A row for every entry of an index, by its suffix. Raises OSError."""
    size = file.size()
    base = names.offset_of(path.rpartition("/")[2]) or 0
    make = _ENTRY_ROWS[suffix]
    for _, *fields in index_entries(file, suffix, size):
        yield make(base, fields)
    if rest_of(suffix, size):
        yield error_row(f"{rest_of(suffix, size)} bytes after the last whole entry", size - rest_of(suffix, size))


def _offset_row(base: int, fields: list[int]) -> Row:
    return {"type": "offsetIndex", "offset": base + fields[0], "position": fields[1]}


def _time_row(base: int, fields: list[int]) -> Row:
    return {"type": "timeIndex", "timestamp": fields[0], "offset": base + fields[1]}


def _txn_row(_base: int, fields: list[int]) -> Row:
    version, producer_id, first_offset, last_offset, last_stable_offset = fields
    if version != TXN_VERSION:
        return error_row(f"an entry of unknown version {version}")
    return {
        "type": "abortedTxn",
        "version": version,
        "producerId": producer_id,
        "firstOffset": first_offset,
        "lastOffset": last_offset,
        "lastStableOffset": last_stable_offset,
    }


_ENTRY_ROWS: Final[dict[str, Callable[[int, list[int]], Row]]] = {
    names.INDEX_SUFFIX: _offset_row,
    names.TIME_INDEX_SUFFIX: _time_row,
    names.TXN_INDEX_SUFFIX: _txn_row,
}


# --- small files: bytes to rows; CorruptCheckpointError where they are not what their name says


def _snapshot_rows(data: bytes, _path: str) -> Iterator[Row]:
    for entry in decode_snapshot(data):
        last = entry.batches[-1] if entry.batches else None
        yield {
            "type": "producer",
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": None if entry.current_txn_first_offset < 0 else entry.current_txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
            "firstSequence": last and last.first_sequence,
            "lastSequence": last and last.last_sequence,
            "lastOffset": last and last.last_offset,
            "offsetDelta": last and last.offset_delta,
        }


def _epoch_rows(data: bytes, path: str) -> Iterator[Row]:
    for epoch, start_offset in decode_leader_epochs(data, path):
        yield {"type": "leaderEpoch", "epoch": epoch, "startOffset": start_offset}


def _checkpoint_rows(data: bytes, path: str) -> Iterator[Row]:
    for (topic, partition), offset in decode_offsets(data, path).items():
        yield {"type": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def _meta_rows(data: bytes, path: str) -> Iterator[Row]:
    meta = decode_meta_properties(data, path)
    found: dict[str, Any] = {
        "version": meta.version,
        "clusterId": meta.cluster_id,
        "brokerId": meta.broker_id,
        "directoryId": meta.directory_id,
    }
    yield {"type": "metaProperties", **found, "others": dict(meta.others)}


def _partition_metadata_rows(data: bytes, path: str) -> Iterator[Row]:
    yield {"type": "partitionMetadata", "topicId": uuid_to_text(decode_partition_metadata(data, path))}


def _clean_shutdown_rows(data: bytes, _path: str) -> Iterator[Row]:
    yield {"type": "cleanShutdown", "brokerEpoch": decode_clean_shutdown(data)}


SmallFileRows = Callable[[bytes, str], Iterator[Row]]

OFFSET_CHECKPOINTS: Final = (
    names.RECOVERY_POINT_CHECKPOINT,
    names.LOG_START_OFFSET_CHECKPOINT,
    names.HIGH_WATERMARK_CHECKPOINT,
    names.CLEANER_OFFSET_CHECKPOINT,
)
SMALL_FILES: Final[dict[str, SmallFileRows]] = {
    names.LEADER_EPOCH_CHECKPOINT: _epoch_rows,
    names.PARTITION_METADATA: _partition_metadata_rows,
    names.META_PROPERTIES: _meta_rows,
    names.CLEAN_SHUTDOWN: _clean_shutdown_rows,
    **dict.fromkeys(OFFSET_CHECKPOINTS, _checkpoint_rows),
}


def small_file_rows(file: File, path: str, rows: SmallFileRows) -> Iterator[Row]:
    """The rows of a small file, or an error row where it cannot be read as what its name says. Raises OSError."""
    try:
        yield from rows(read_small(file), path)
    except CorruptCheckpointError as error:
        yield error_row(str(error))


def snapshot_rows(file: File, path: str) -> Iterator[Row]:
    """A row for every producer in a snapshot. Raises OSError."""
    yield from small_file_rows(file, path, _snapshot_rows)


def read_small(file: File) -> bytes:
    """The content. Raises CorruptCheckpointError for a file too large for its kind."""
    size = file.size()
    if size > SMALL_FILE_MAX:
        raise CorruptCheckpointError(f"{size} bytes are more than such a file can have")
    return read_exactly(file, size, 0)
