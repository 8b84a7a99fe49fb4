"""What a control batch says about a transaction."""

from __future__ import annotations

import struct

from kpybroker.core.producer_state import EndTxnMarker
from kpybroker.wire.records.batch import BatchHeader, Buffer, corrupt

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
ABORT = 0
COMMIT = 1


def read_end_txn_marker(header: BatchHeader, batch: Buffer) -> EndTxnMarker | None:
    """None where the batch is empty: compaction removed the marker with its transaction (ControlRecordType,
    EndTransactionMarker). Raises CORRUPT_MESSAGE."""
    from kpybroker.wire.records.record import iter_records

    for record in iter_records(batch, header):
        key, value = record.key, record.value
        if key is None or value is None or len(key) < _KEY.size or len(value) < _VALUE.size:
            raise corrupt(f"Control record at offset {record.offset} is too short")
        _, kind = _KEY.unpack_from(key)
        _, coordinator_epoch = _VALUE.unpack_from(value)
        if kind not in (ABORT, COMMIT):
            return None
        return EndTxnMarker(kind == COMMIT, coordinator_epoch, record.timestamp)
    return None
