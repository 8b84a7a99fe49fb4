"""Records by timestamp within a batch."""

from __future__ import annotations

import pytest

from kpybroker.wire.compression import Codec
from kpybroker.wire.records.batch import TimestampType, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.lookup import find_in_batch
from kpybroker.wire.records.record import Record

TIMES = [10, 40, 20, 40, 30]
RECORDS = [Record(100 + index, time, b"k", b"v") for index, time in enumerate(TIMES)]


@pytest.mark.parametrize("codec", Codec)
def test_the_first_record_at_or_after_a_time(codec: Codec) -> None:
    batch = build_batch_of(RECORDS, BatchFields(codec=codec))
    header = parse_header(batch)
    assert find_in_batch(batch, 0, header, 0) == (100, 10)
    assert find_in_batch(batch, 0, header, 11) == (101, 40)
    assert find_in_batch(batch, 0, header, 20, 102) == (102, 20)
    assert find_in_batch(batch, 0, header, 20, 104) == (104, 30)
    assert find_in_batch(batch, 0, header, 40, 104) is None
    assert find_in_batch(batch, 0, header, 41) is None
    assert find_in_batch(batch, 0, header, 0, 105) is None


def test_log_append_time_is_found_at_the_first_record() -> None:
    batch = build_batch_of(RECORDS, BatchFields(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=50))
    header = parse_header(batch)
    assert find_in_batch(batch, 0, header, 45) == (100, 50)
