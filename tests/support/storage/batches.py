"""Batches and logs for storage tests."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from typing import Any

from kpybroker.config.topic import LogConfig
from kpybroker.storage.disk.files import Files
from kpybroker.storage.log.append import COORDINATOR, AppendInfo, ProducedBatches
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.reader import Search, TimestampAndOffset
from kpybroker.storage.log.settings import LogCheckpoints, LogSettings
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import V2_HEADER, computed_crc, iter_batches, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from kpybroker.wire.records.record import iter_records

NOW_MS = 1_000_000


def batch(*values: bytes, timestamp: int = NOW_MS, base_offset: int = 0, **fields: Any) -> bytearray:
    """A batch with one record for each value; `fields` are those of BatchFields."""
    entries = [(None, value, timestamp) for value in values or (b"value",)]
    return build_batch(entries, BatchFields(**fields), base_offset=base_offset)


def marker(*, commit: bool, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 0) -> bytearray:
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return build_end_transaction_batch(
        EndTransactionMarker(kind, coordinator_epoch, NOW_MS), producer_id=producer_id, producer_epoch=producer_epoch
    )


def log_config(**changes: Any) -> LogConfig:
    return dataclasses.replace(LogConfig(), **changes)


def open_log(files: Files, directory: str, config: LogConfig | None = None, **options: Any) -> Log:
    """Open a log. `options`: `now_ms`, and the fields of `LogCheckpoints` and `LogSettings`."""
    now_ms = options.pop("now_ms", NOW_MS)
    checkpoints = LogCheckpoints(**{name: options.pop(name) for name in LogCheckpoints._fields if name in options})
    settings = LogSettings(**options)
    return Log(files, directory, config or log_config(), now_ms=now_ms, checkpoints=checkpoints, settings=settings)


def append(log: Log, *values: bytes, leader_epoch: int = 0, **options: Any) -> int:
    """Append a batch as leader; its first offset."""
    return append_batch(log, batch(*values, **options), leader_epoch).first_offset


def append_batch(
    log: Log, records: Buffer, leader_epoch: int = 0, *, now_ms: int = NOW_MS, **options: Any
) -> AppendInfo:
    """Append batches as leader. `options`: the other fields of `ProducedBatches`."""
    return log.append_as_leader(ProducedBatches(records, now_ms, **options), leader_epoch)


def append_as_coordinator(log: Log, records: Buffer, leader_epoch: int = 0) -> AppendInfo:
    """Append a batch as a coordinator of this broker does: no sequence numbers, control batches allowed."""
    return append_batch(log, records, leader_epoch, origin=COORDINATOR)


def found_by(search: Search) -> TimestampAndOffset | None:
    """What a lookup by time finds, taken through all its steps."""
    with closing(search):
        return next((found for step in search if step is not None and (found := step.run()) is not None), None)


def read_all(log: Log, start: int | None = None, max_bytes: int = 1 << 30) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record from an offset on, by reads as a consumer does them."""
    offset = log.log_start_offset if start is None else start
    found = []
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes)
        if fetched.slice is None:
            break
        data = fetched.slice.read()
        fetched.slice.release()
        before = offset
        for position, header in iter_batches(data):
            if not header.is_control:
                found += [
                    (record.offset, record.value)
                    for record in iter_records(data, header, position)
                    if record.offset >= offset
                ]
            offset = max(offset, header.next_offset)
        assert offset > before, "a read that gives no whole batch"
    return found


def claiming(records: Buffer, **fields: int) -> bytearray:
    """The same batch of magic 2 with other values in its header, which need not be true, and the right CRC for them."""
    header = parse_header(records)._replace(**fields)
    changed = bytearray(records)
    V2_HEADER.pack_into(changed, 0, *header)
    header = header._replace(crc=computed_crc(changed, 0, header))
    V2_HEADER.pack_into(changed, 0, *header)
    return changed
