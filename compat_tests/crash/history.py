"""What clients of a broker that is killed again and again received, what is there at the end, and the check.

Values and one pure function, so that the check itself is tested on histories made by hand (`test_history.py`).
A record is known by its producer's name and a number that rises with every record of that producer, whatever the
partition. Offsets and numbers are plain ints; a partition is (topic, index).
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

Partition = tuple[str, int]

_HEADER = struct.Struct(">HII")
PROBLEMS_SHOWN_PER_KIND = 20


class Sent(NamedTuple):
    """One record's identity."""

    producer: int
    number: int


class Stored(NamedTuple):
    """One record as a reader got it; `sent` is None where its bytes are not what any producer wrote."""

    offset: int
    sent: Sent | None
    leader_epoch: int = 0


class Commit(NamedTuple):
    """One look at a group's committed offset: it must lie between what was acknowledged and what was tried."""

    group: str
    acknowledged: int
    attempted: int
    found: int


@dataclass(slots=True)
class History:
    """What the clients saw while the broker lived and died.

    `acknowledged` and `observed` (by readers, before the end) map offsets to records. `ends` are log ends in the order
    in which they were asked for. `idempotent` producers promise no duplicates and order within a partition.
    `created` and `deleted` are topics whose creation or deletion the broker acknowledged.
    """

    idempotent: set[int] = field(default_factory=set)
    acknowledged: dict[Partition, dict[int, Sent]] = field(default_factory=lambda: defaultdict(dict))
    observed: dict[Partition, dict[int, Sent | None]] = field(default_factory=lambda: defaultdict(dict))
    ends: dict[Partition, list[int]] = field(default_factory=lambda: defaultdict(list))
    commits: list[Commit] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    created: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    """For the threads of the clients."""

    def acknowledge(self, partition: Partition, offset: int, sent: Sent) -> None:
        """A delivery report; two records at one offset are a failure at once."""
        before = self.acknowledged[partition].setdefault(offset, sent)
        if before != sent:
            self.failures.append(f"{_at(partition, offset)} was acknowledged for {before} and for {sent}")

    def observe(self, partition: Partition, offset: int, sent: Sent | None) -> None:
        """A reader got this; two readers, or one reader twice, must get the same."""
        before = self.observed[partition].setdefault(offset, sent)
        if before != sent:
            self.failures.append(f"{_at(partition, offset)} was read as {before} and as {sent}")


def check(history: History, stored: Mapping[Partition, Sequence[Stored]], topics: Iterable[str] = ()) -> list[str]:
    """Everything that is wrong; empty when all was kept. `topics` are those that exist at the end."""
    problems = _shortened(history.failures)
    for partition in sorted(set(history.acknowledged) | set(history.observed) | set(stored)):
        records = stored.get(partition, ())
        by_offset = {record.offset: record.sent for record in records}
        for kind in (
            _gaps(partition, records),
            _missing(partition, history.acknowledged.get(partition, {}), by_offset, "acknowledged"),
            _missing(partition, history.observed.get(partition, {}), by_offset, "read"),
            _duplicated_or_reordered(partition, records, history.idempotent),
            _epochs(partition, records),
            _ends(partition, history.ends.get(partition, ()), len(records)),
        ):
            problems += _shortened(list(kind))
    problems += _shortened([f"committed offset: {commit}" for commit in history.commits if not _is_kept(commit)])
    existing = set(topics)
    problems += [f"topic {name} was created and is gone" for name in sorted(history.created - existing)]
    problems += [f"topic {name} was deleted and is back" for name in sorted(history.deleted & existing)]
    return problems


def _at(partition: Partition, offset: int) -> str:
    return f"{partition[0]}-{partition[1]} offset {offset}"


def _shortened(problems: Sequence[str]) -> list[str]:
    more = len(problems) - PROBLEMS_SHOWN_PER_KIND
    return [*problems[:PROBLEMS_SHOWN_PER_KIND], f"... and {more} more like it"] if more > 0 else list(problems)


def _gaps(partition: Partition, records: Sequence[Stored]) -> Iterator[str]:
    for index, record in enumerate(records):
        if record.offset != index:
            yield f"{_at(partition, record.offset)} stands where offset {index} should be"
            return
        if record.sent is None:
            yield f"{_at(partition, record.offset)} holds bytes that no one wrote"


def _missing(
    partition: Partition, promised: Mapping[int, Sent | None], stored: Mapping[int, Sent | None], how: str
) -> Iterator[str]:
    places: dict[Sent | None, int] | None = None
    for offset, sent in promised.items():
        if offset in stored and stored[offset] == sent:
            continue
        if places is None:
            places = {found: place for place, found in stored.items()}
        if sent in places:
            yield f"{_at(partition, offset)}: {sent} was {how} here and is at offset {places[sent]} now"
        else:
            yield f"{_at(partition, offset)}: {sent} was {how} here and is lost; there is {stored.get(offset)}"


def _duplicated_or_reordered(partition: Partition, records: Sequence[Stored], idempotent: set[int]) -> Iterator[str]:
    last: dict[int, Sent] = {}
    seen: set[Sent] = set()
    for record in records:
        sent = record.sent
        if sent is None or sent.producer not in idempotent:
            continue
        if sent in seen:
            yield f"{_at(partition, record.offset)}: {sent} is there twice"
            continue
        seen.add(sent)
        before = last.get(sent.producer)
        if before is not None and sent.number < before.number:
            yield f"{_at(partition, record.offset)}: {sent} comes after {before}"
        last[sent.producer] = sent


def _epochs(partition: Partition, records: Sequence[Stored]) -> Iterator[str]:
    highest = -1
    for record in records:
        if record.leader_epoch < highest:
            yield f"{_at(partition, record.offset)} is of leader epoch {record.leader_epoch}, after {highest}"
        highest = max(highest, record.leader_epoch)


def _ends(partition: Partition, ends: Sequence[int], count: int) -> Iterator[str]:
    highest = 0
    for end in (*ends, count):
        if end < highest:
            yield f"{partition[0]}-{partition[1]}: the log end went back from {highest} to {end}"
        highest = max(highest, end)


def _is_kept(commit: Commit) -> bool:
    return commit.acknowledged <= commit.found <= commit.attempted


# --- the bytes of a record


def encode_value(sent: Sent, size: int) -> bytes:
    """A value of about `size` bytes that shows whose it is and whether it is whole; half of it can be compressed."""
    random = Random(hash(sent))
    filling = random.randbytes(size // 2).ljust(size, b"k")
    body = _HEADER.pack(sent.producer, sent.number, len(filling)) + filling
    return zlib.crc32(body).to_bytes(4, "big") + body


def decode_value(value: bytes | None) -> Sent | None:
    """Whose record this is; None for bytes that `encode_value` did not make."""
    if value is None or len(value) < 4 + _HEADER.size or zlib.crc32(value[4:]) != int.from_bytes(value[:4], "big"):
        return None
    producer, number, size = _HEADER.unpack_from(value, 4)
    return Sent(producer, number) if len(value) == 4 + _HEADER.size + size else None
