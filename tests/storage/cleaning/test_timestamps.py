"""What the records of a segment's file say of their time, whatever their headers say."""

from __future__ import annotations

import pytest

from kpybroker.storage.cleaning import timestamps
from kpybroker.storage.cleaning.timestamps import Timestamps, TimestampsJob, read_timestamps
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set
from tests.support.storage.batches import claiming
from tests.support.storage.lossy_files import LossyFiles

PATH = "/log"
NO_RECORDS = Timestamps(-1, -1, True)


def batch(*times: int, base_offset: int = 0, codec: Codec = Codec.NONE, **claims: int) -> bytearray:
    built = build_batch([(None, b"v" * 50, time) for time in times], BatchFields(codec=codec), base_offset=base_offset)
    return claiming(built, **claims)


def read(data: bytes, start: int = 0, end: int | None = None, seconds_max: float = 1000.0) -> Timestamps:
    files = LossyFiles()
    file = files.open(PATH, create=True)
    file.pwrite(data, 0)
    job = TimestampsJob(PATH, start, len(data) if end is None else end, seconds_max)
    return read_timestamps(files, job, lambda _: None)


@pytest.mark.parametrize("window", [1, 100, 1 << 20])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_the_records_decide(monkeypatch: pytest.MonkeyPatch, window: int, codec: Codec) -> None:
    monkeypatch.setattr(timestamps, "IO_BYTES", window)
    first = batch(10, 30, 20, codec=codec, max_timestamp=-1)
    second = batch(50, 40, base_offset=3, codec=codec, max_timestamp=0)
    third = batch(5, base_offset=5, codec=codec, max_timestamp=9000)
    data = bytes(first + second + third)
    assert read(data) == (50, 4, True)
    assert read(data, end=len(first)) == (30, 2, True)
    assert read(data, start=len(first + second)) == (5, 5, True)
    assert read(data, start=len(data)) == NO_RECORDS


def test_old_messages_count_too() -> None:
    wrapped = build_message_set([Record(n, 100 + n, None, b"v") for n in range(3)], 1, codec=Codec.GZIP)
    wrapped[18:26] = (7).to_bytes(8, "big")
    assert read(bytes(wrapped)) == (102, 2, True)
    assert read(bytes(build_message_set([Record(0, 100, None, b"v")], 0))) == NO_RECORDS


def test_what_cannot_be_read_makes_it_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamps, "RECORDS_MAX_BYTES", 1000)
    bomb = batch(*[90] * 100, codec=Codec.GZIP)
    garbage = batch(80, base_offset=100, attributes=Codec.GZIP)
    sound = batch(70, base_offset=101)
    assert read(bytes(bomb + garbage + sound)) == (70, 101, False)
    assert read(bytes(sound) + bytes(100)) == (70, 101, False)


def test_it_ends_when_its_time_is_over() -> None:
    assert read(bytes(batch(70) + batch(80, base_offset=1)), seconds_max=-1.0) == (-1, -1, False)
