"""Damage is where it says, in the first batch only, in every format; and our own reader notices it."""

from __future__ import annotations

import pytest

from kpybroker.control.rules.acts import Damage
from kpybroker.control.rules.corruption import corrupted
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import iter_batches, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import iter_records

FORMATS = {
    "magic 2": bytes(build_batch([(b"k", b"value" * 9, 5)])),
    "magic 2, zstd": bytes(build_batch([(b"k", b"value" * 9, 5)], BatchFields(codec=Codec.ZSTD))),
    "magic 1": bytes(build_message_set([Record(0, 5, b"k", b"value")], 1)),
    "magic 0": bytes(build_message_set([Record(0, -1, b"k", b"value")], 0)),
}


def is_readable(records: bytes) -> bool:
    try:
        for position, header in iter_batches(records, strict=True):
            verify_crc(records, position, header)
            list(iter_records(records, header, position))
    except KafkaError:
        return False
    return True


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("damage", Damage)
def test_a_reader_notices(name: str, damage: Damage) -> None:
    intact = FORMATS[name]
    assert is_readable(intact)
    records = corrupted(intact + intact, damage)
    assert records is not None
    assert len(records) == 2 * len(intact)
    assert records[len(intact) :] == intact
    assert not is_readable(records[: len(intact)])


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_records_have_a_correct_checksum(name: str) -> None:
    records = corrupted(FORMATS[name], Damage.RECORD)
    assert records is not None
    ((position, header),) = iter_batches(records)
    verify_crc(records, position, header)


@pytest.mark.parametrize(
    "records", [b"", b"short", FORMATS["magic 2"][:-1], bytes(100)], ids=["none", "few", "part", "0"]
)
def test_what_is_no_whole_batch_is_left_alone(records: bytes) -> None:
    assert corrupted(records, Damage.CRC) is None
