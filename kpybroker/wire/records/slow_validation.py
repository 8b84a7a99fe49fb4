"""Validation that would hold the event loop: which batches need it, and how its result gets its offsets.

Checking a batch's records costs some 3 µs a record, and a few bytes of a compressed batch can expand to millions of
records, or to millions of headers of one record. Such a batch is validated in a thread as if the log were empty;
`place_at` then assigns its offsets in the loop, with no await between it and the append.
"""

from __future__ import annotations

from kpybroker.wire.constants import UNKNOWN_OFFSET
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    LEGACY_ATTRIBUTES_OFFSET,
    MAGIC_OFFSET,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    stamp,
)
from kpybroker.wire.records.validate import ValidatedRecords

IN_LOOP_BYTES_MAX = 32 * 1024
"""Uncompressed bytes checked in the loop: a record takes at least seven bytes, so this is below 15 ms."""

_ATTRIBUTES = ATTRIBUTES_OFFSET + 1  # the low byte


def is_slow_to_validate(records: Buffer, rules: AppendRules) -> bool:
    """Whether validating `records` may hold the loop. Reads a few bytes only; validation itself reports errors."""
    size = len(records)
    if size <= RECORD_BATCH_OVERHEAD or rules.to_magic < 2:
        return False
    if rules.as_sent and records[MAGIC_OFFSET] == 2 and not records[_ATTRIBUTES] & TIMESTAMP_TYPE_MASK:
        return False  # nearly always
    if records[MAGIC_OFFSET] != 2:
        # A compressed message after an uncompressed one is refused before anything is decompressed.
        return records[LEGACY_ATTRIBUTES_OFFSET] & CODEC_MASK != 0 or size > IN_LOOP_BYTES_MAX
    attributes = records[_ATTRIBUTES]
    codec_id = attributes & CODEC_MASK
    is_kept = rules.codec is None or rules.codec == codec_id
    if is_kept and rules.opaque and not attributes & TIMESTAMP_TYPE_MASK:
        return False
    return codec_id != 0 or size > IN_LOOP_BYTES_MAX


def is_slow_to_search(header: BatchHeader) -> bool:
    """Whether reading the records of a stored batch one by one may hold the loop."""
    return header.is_compressed or header.size > IN_LOOP_BYTES_MAX


def place_at(checked: ValidatedRecords, base_offset: int, leader_epoch: int) -> ValidatedRecords:
    """Gives one magic 2 batch that was validated for offset 0 its real offsets, in place and outside its CRC."""
    header = checked.header
    assert header is not None
    assert header.magic == 2
    assert checked.first_offset == 0
    data = checked.data
    assert not isinstance(data, bytes)
    stamp(data, 0, base_offset, leader_epoch)
    at_max = checked.offset_of_max_timestamp
    return checked._replace(
        header=BatchHeader._make((base_offset, header.batch_length, leader_epoch, *header[3:])),
        first_offset=base_offset,
        last_offset=checked.last_offset + base_offset,
        offset_of_max_timestamp=at_max if at_max == UNKNOWN_OFFSET else at_max + base_offset,
    )
