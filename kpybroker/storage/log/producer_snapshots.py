"""Producer snapshots: `<20-digit offset>.snapshot` files, byte for byte Kafka's version 1, and the list of them.

Layout, big endian: version int16, CRC-32C of all that follows it (uint32), count int32, then per producer: id int64,
epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64, coordinator epoch int32, first
offset of the current transaction int64 (-1 for none). A snapshot holds the state *before* its offset and only the last
batch of a producer, so after an orderly restart only the last of the five batches is known as a duplicate, as in Kafka.
A state that recovery built by reading the batches knows all five (`loader`).

A file is written directly under its name: one cut short by a crash fails its checksum, is deleted, and the one before
it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from kpybroker.core.log.producer_entries import NO_OFFSET, BatchMetadata, ProducerStateEntry
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.disk.files import Files, read_file, unlink_if_exists, write_file
from kpybroker.storage.disk.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, offset_of, segment_file
from kpybroker.wire.crc import crc32c

VERSION = 1

_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """The bytes of a snapshot file."""
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEADER.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """The producers in a snapshot file. Raises CorruptCheckpointError."""
    body_start = _HEADER.size
    entries_start = body_start + _COUNT.size
    if len(data) < entries_start:
        raise CorruptCheckpointError("Snapshot failed schema validation: too short")
    version, stored_crc = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptCheckpointError(f"Snapshot contained an unknown file version {version}")
    computed_crc = crc32c(memoryview(data)[body_start:])
    if stored_crc != computed_crc:
        raise CorruptCheckpointError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored_crc}. Computed crc: {computed_crc}"
        )
    (count,) = _COUNT.unpack_from(data, body_start)
    if count < 0 or entries_start + count * _ENTRY.size != len(data):
        raise CorruptCheckpointError(f"Snapshot failed schema validation: {count} entries in {len(data)} bytes")
    return [_decode_entry(fields) for fields in _ENTRY.iter_unpack(data[entries_start:])]


def _decode_entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first_offset = fields
    batches = [BatchMetadata(sequence, offset, delta, timestamp)] if offset >= 0 else []
    return ProducerStateEntry(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp,
        txn_first_offset if txn_first_offset >= 0 else NO_OFFSET,
        batches,
    )


class ProducerSnapshots:
    """A partition's producer state together with its snapshot files (the other half of ProducerStateManager)."""

    __slots__ = ("_files", "corrupt", "directory", "last_snapshot_offset", "offsets", "state", "unsynced")

    def __init__(self, files: Files, directory: str, state: ProducerState) -> None:
        self._files = files
        self.directory = directory
        self.state = state
        self.last_snapshot_offset = 0
        self.corrupt: tuple[str, ...] = ()  # what was found unreadable and removed, with the reason
        self.unsynced: tuple[str, ...] = ()  # written, and left to the next flush job to make durable
        self.offsets = self._listed()  # of all snapshots, ascending; most logs have none: an empty dict is 64 bytes

    def _listed(self) -> tuple[int, ...]:
        offsets = (
            offset_of(entry.name)
            for entry in self._files.listdir(self.directory)
            if not entry.is_dir and entry.name.endswith(SNAPSHOT_SUFFIX)
        )
        return tuple(sorted(offset for offset in offsets if offset is not None))

    def path(self, offset: int) -> str:
        """The snapshot file of an offset."""
        return segment_file(self.directory, offset, SNAPSHOT_SUFFIX)

    @property
    def latest_offset(self) -> int | None:
        """The offset of the last snapshot; None where there is none."""
        return self.offsets[-1] if self.offsets else None

    def take(self, *, sync: bool) -> None:
        """Write the state at its end offset, unless that was done. Raises OSError."""
        offset = self.state.map_end_offset
        if offset <= self.last_snapshot_offset:
            return
        path = self.path(offset)
        write_file(self._files, path, encode_snapshot(self.state.producers.values()), sync=sync)
        if not sync:
            self.unsynced += (path,)
        self.offsets = tuple(sorted({*self.offsets, offset}))
        self.last_snapshot_offset = offset

    def reload(self) -> None:
        """List the files again. Raises OSError."""
        self.offsets = self._listed()

    def remove_stray(self, segment_base_offsets: Iterable[int]) -> None:
        """Remove snapshots that belong to no segment, except the one of a clean stop, which is above them all."""
        self.reload()
        bases = set(segment_base_offsets)
        strays = [offset for offset in self.offsets if offset not in bases]
        if strays and strays[-1] >= max(bases, default=0):
            strays.pop()
        self._delete(strays)

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Set the state to the latest snapshot within the log; batches after the snapshot are not replayed."""
        self._delete([o for o in self.offsets if o > log_end_offset or o <= log_start_offset])
        if log_end_offset != self.state.map_end_offset:
            self._load_latest(log_start_offset, now_ms)
        else:
            self.on_log_start_offset_incremented(log_start_offset)

    def _load_latest(self, log_start_offset: int, now_ms: int) -> None:
        self.state.clear()
        while (offset := self.latest_offset) is not None:
            try:
                entries = decode_snapshot(read_file(self._files, self.path(offset)) or b"")
            except CorruptCheckpointError as error:
                self.corrupt += (f"Failed to load producer snapshot from '{self.path(offset)}': {error}",)
                self._delete([offset])
                continue
            self.state.load(entries, offset, now_ms)
            self.last_snapshot_offset = offset
            return
        self.last_snapshot_offset = self.state.map_end_offset = log_start_offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Note that the log start offset has moved."""
        self.state.on_log_start_offset_incremented(log_start_offset)
        latest = self.latest_offset
        self.last_snapshot_offset = log_start_offset if latest is None else latest

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Clear the state and remove all snapshots; the state begins again at an offset. Raises OSError."""
        self.state.clear()
        self._delete(self.offsets)
        self.last_snapshot_offset = 0
        self.state.map_end_offset = offset

    def mark_deleted(self, offset: int) -> str | None:
        """Rename a snapshot to `.deleted` and forget it; the new path, None where there was none."""
        if offset not in self.offsets:
            return None
        self._forget([offset])
        path = self.path(offset)
        try:
            self._files.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:  # an intermediate state manager of the recovery removed it
            return None
        return path + DELETED_SUFFIX

    def _delete(self, offsets: Sequence[int]) -> None:
        self._forget(offsets)
        for offset in offsets:
            unlink_if_exists(self._files, self.path(offset))

    def _forget(self, offsets: Sequence[int]) -> None:
        gone = set(offsets)
        self.offsets = tuple(offset for offset in self.offsets if offset not in gone)
