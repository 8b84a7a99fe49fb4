"""Records, and damage to them, for several tests of this room."""

from __future__ import annotations

from hypothesis import strategies as st

from kpybroker.wire.compression import Codec
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.record import Record, iter_records

LEGACY_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]

payloads = st.none() | st.binary(max_size=200)
timestamps = st.integers(-1, 2**62)
headers = st.lists(st.tuples(st.text(max_size=10), payloads), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, *, with_headers: bool = True, max_size: int = 20) -> list[Record]:
    """Records at rising offsets, with gaps."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, max_size))):
        record_headers = draw(headers) if with_headers else ()
        records.append(Record(offset, draw(timestamps), draw(payloads), draw(payloads), record_headers))
        offset += draw(st.integers(1, 300))
    return records


def plain_records(count: int, *, timestamp: int = 1000) -> list[Record]:
    return [Record(i, timestamp + i, b"key-%d" % i, b"value-%d" % i) for i in range(count)]


def read_all(buffer: Buffer) -> list[Record]:
    """Every record of every batch, CRCs checked, nothing left over."""
    records: list[Record] = []
    for position, header in iter_batches(buffer, strict=True):
        verify_crc(buffer, position, header)
        records += iter_records(buffer, header, position)
    return records


def only_header(buffer: Buffer) -> BatchHeader:
    ((_, header),) = iter_batches(buffer, strict=True)
    return header
