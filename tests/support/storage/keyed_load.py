"""A random keyed load on a log, and what consumers see of it. For tests of compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from kpybroker.core.log.producer_append import AppendOrigin
from kpybroker.storage.log.log import Log
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set
from tests.support.storage.batches import NOW_MS, append_batch, marker
from tests.support.storage.cleaning import batches_of

CODECS = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


class Seen(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class KeyedLoad:
    """Appends to a log: plain, idempotent and transactional batches of all codecs, with tombstones and headers."""

    def __init__(
        self,
        chance: Random,
        *,
        keys: int = 12,
        producers: int = 4,
        legacy: bool = False,
        codecs: Sequence[Codec] = CODECS,
        now_ms: int = NOW_MS,
    ) -> None:
        self.chance = chance
        self._codecs = codecs
        self.keys = [b"key-%d" % n for n in range(keys)] + [b"", b"k" * 300]
        self.now_ms = now_ms
        self.count = 0
        self._producers = [1000 + n for n in range(producers)]
        self._sequences: dict[int, int] = {}
        self._epochs = dict.fromkeys(self._producers, 0)
        self._open: set[int] = set()
        self._legacy = legacy

    def records(self) -> list[Record]:
        records = []
        for index in range(self.chance.choice((1, 1, 2, 5, 70))):
            self.count += 1
            key = self.chance.choice(self.keys)
            value = (
                None if self.chance.random() < 0.15 else b"value %d " % self.count + bytes(self.chance.randrange(90))
            )
            headers = (("h", b"x"), ("n", None)) if self.chance.random() < 0.2 else ()
            timestamp = self.now_ms + self.chance.choice((0, 0, 1, -5, 4000))
            records.append(Record(index, timestamp, key, value, () if self._legacy else headers))
        return records

    def step(self, log: Log) -> None:
        """One append, or a roll."""
        self.now_ms += self.chance.choice((0, 1, 500))
        kind = self.chance.random()
        if kind < 0.08:
            if log.active_segment.size:
                log.roll(self.now_ms)
        elif self._legacy and kind < 0.5:
            self._append_legacy(log)
        elif kind < 0.45:
            self._append(log, build_batch_of(self.records(), BatchFields(codec=self.chance.choice(self._codecs))))
        elif kind < 0.6:
            self._append_of(log, self._producers[0], transactional=False)
        elif kind < 0.85 or not self._open:
            self._append_of(log, self.chance.choice(self._producers[1:]), transactional=True)
        else:
            self.end_transaction(log, self.chance.choice(sorted(self._open)), commit=self.chance.random() < 0.5)

    def end_all(self, log: Log) -> None:
        for producer_id in sorted(self._open):
            self.end_transaction(log, producer_id, commit=True)

    def end_transaction(self, log: Log, producer_id: int, *, commit: bool) -> None:
        batch = marker(commit=commit, producer_id=producer_id, producer_epoch=self._epochs[producer_id])
        append_batch(log, batch, origin=AppendOrigin.COORDINATOR, now_ms=self.now_ms)
        self._open.discard(producer_id)
        if self.chance.random() < 0.3:
            self._epochs[producer_id] += 1
            self._sequences[producer_id] = 0

    def _append_of(self, log: Log, producer_id: int, *, transactional: bool) -> None:
        records = self.records()
        sequence = self._sequences.get(producer_id, 0)
        batch = build_batch_of(
            records,
            BatchFields(
                codec=self.chance.choice(self._codecs),
                producer_id=producer_id,
                producer_epoch=self._epochs[producer_id],
                base_sequence=sequence,
                is_transactional=transactional,
            ),
        )
        self._append(log, batch)
        self._sequences[producer_id] = sequence + len(records)
        if transactional:
            self._open.add(producer_id)

    def _append(self, log: Log, batch: bytearray) -> None:
        append_batch(log, batch, now_ms=self.now_ms)

    def _append_legacy(self, log: Log) -> None:
        """As a replica takes them: a leader would convert them."""
        records = [r._replace(offset=r.offset + log.log_end_offset) for r in self.records()[:5]]
        magic = self.chance.choice((0, 1))
        codec = self.chance.choice([codec for codec in self._codecs if codec is not Codec.ZSTD])
        log.append_as_follower(build_message_set(records, magic, codec=codec), now_ms=self.now_ms)


def all_records(log: Log) -> list[Seen]:
    """What a consumer of everything sees."""
    return [
        Seen(record.offset, record.key, record.value, record.timestamp)
        for header, records in batches_of(log)
        if not header.is_control
        for record in records
    ]


def committed_records(log: Log) -> list[Seen]:
    """What a consumer of committed records sees, by the rules of Java's CompletedFetch."""
    return list(_committed(log))


def _committed(log: Log) -> Iterator[Seen]:
    waiting = sorted(
        log.collect_aborted_transactions(log.log_start_offset, log.log_end_offset), key=lambda txn: txn.first_offset
    )
    aborted: set[int] = set()
    for header, records in batches_of(log):
        if header.base_offset >= log.last_stable_offset:
            return
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborted.add(waiting.pop(0).producer_id)
        if header.is_control:
            if records and parse_control_type(records[0].key) is ControlRecordType.ABORT:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            yield from (Seen(r.offset, r.key, r.value, r.timestamp) for r in records)


def latest_values(records: list[Seen]) -> dict[bytes, bytes]:
    """The table that the records make: deleted keys are not in it."""
    table: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table
