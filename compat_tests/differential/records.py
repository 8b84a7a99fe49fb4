"""Records in scripts: batches of every magic, right and wrong ones, made when the step is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat_tests.differential.script import Names, fill_in
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set

TIME = 1_700_000_000_000
CRC_AT = {0: 12, 1: 12, 2: 17}


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch (magic 2) or message set (magic 0, 1) at offset 0. A value is bytes, or (key, value, timestamp).

    `damage` overwrites bytes afterwards, {position: bytes}; with `sign` the CRC of magic 2 is made right again.
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
        if self.sign:
            from crc32c import crc32c

            buffer[17:21] = crc32c(bytes(buffer[21:])).to_bytes(4, "big")
        return bytes(buffer[: self.cut])


@dataclass(frozen=True, slots=True)
class Several:
    """Batches one after the other."""

    batches: Sequence[Batch]

    def build(self, names: Names) -> bytes:
        return b"".join(batch.build(names) for batch in self.batches)
