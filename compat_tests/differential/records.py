"""Records in scripts: batches of every magic, right and wrong ones, made when the step is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat_tests.differential.script import Names, fill_in
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.batch import V2_HEADER, computed_crc, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set

TIME = 1_700_000_000_000
CRC_AT = {0: 12, 1: 12, 2: 17}


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch (magic 2) or message set (magic 0, 1) at offset 0. A value is bytes, or (key, value, timestamp).

    `damage` overwrites bytes afterwards, {position: bytes}; with `sign` the CRC is made right again. `claims` are
    fields of the header that need not be true, under a right CRC: of magic 1 the timestamp, `max_timestamp`.
    """

    values: Sequence[Any]
    magic: int = 2
    codec: Codec = Codec.NONE
    producer_id: Any = -1
    producer_epoch: Any = -1
    sequence: int = -1
    transactional: bool = False
    damage: Mapping[int, bytes] | None = None
    sign: bool = False
    claims: Mapping[str, int] | None = None
    first_offset: int = 0
    cut: int | None = None

    def build(self, names: Names) -> bytes:
        records = []
        for n, value in enumerate(self.values):
            key, content, time = value if isinstance(value, tuple) else (None, value, TIME + n)
            records.append(Record(self.first_offset + n, time, key, content))
        if self.magic < 2:
            buffer = build_message_set(records, self.magic, codec=self.codec)
        else:
            buffer = build_batch_of(
                records,
                BatchFields(
                    codec=self.codec,
                    producer_id=fill_in(self.producer_id, names),
                    producer_epoch=fill_in(self.producer_epoch, names),
                    base_sequence=self.sequence,
                    is_transactional=self.transactional,
                ),
            )
        for position, content in (self.damage or {}).items():
            buffer[position : position + len(content)] = content
        if self.claims is not None:
            _claim(buffer, self.claims)
        if self.sign or self.claims is not None:
            header = parse_header(buffer)
            crc = computed_crc(buffer, 0, header).to_bytes(4, "big")
            buffer[CRC_AT[header.magic] : CRC_AT[header.magic] + 4] = crc
        return bytes(buffer[: self.cut])


def _claim(buffer: bytearray, claims: Mapping[str, int]) -> None:
    header = parse_header(buffer)
    if header.magic == 2:
        V2_HEADER.pack_into(buffer, 0, *header._replace(**claims))
    else:
        buffer[18:26] = claims["max_timestamp"].to_bytes(8, "big", signed=True)


@dataclass(frozen=True, slots=True)
class Several:
    """Batches one after the other."""

    batches: Sequence[Batch]

    def build(self, names: Names) -> bytes:
        return b"".join(batch.build(names) for batch in self.batches)
