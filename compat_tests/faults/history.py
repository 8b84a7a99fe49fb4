"""Complete histories of a cluster under faults: what each client sent, received and read, and what could be observed.

Plain values; `check.py` judges them. A record is its producer's name and a number that rises with every record of that
producer, whatever the partition. Times are of one monotonic clock, in nanoseconds. Everything is added by one thread
each (lists and dicts grow by single operations), and read when all of them have ended.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

Partition = tuple[str, int]

SEPARATOR = "."


class Record(NamedTuple):
    """One record's identity; its value begins with it."""

    producer: str
    number: int

    def value(self, size: int = 0) -> str:
        """``producer.number``, as VerifiableProducer writes it, and what it takes to be of that size."""
        return f"{self.producer}{SEPARATOR}{self.number}{SEPARATOR}".ljust(size, "-")


def record_of(value: bytes | str | None) -> Record | None:
    """Whose record this is; None for bytes that no producer of ours wrote."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value or ""
    producer, _, rest = text.partition(SEPARATOR)
    number, _, padding = rest.partition(SEPARATOR)
    if not producer or not number.isdecimal() or padding.strip("-"):
        return None
    return Record(producer, int(number))


class Acknowledged(NamedTuple):
    """`offset` is -1 where the response did not tell it; `broker` is who acknowledged, where that is known."""

    record: Record
    offset: int
    sent_ns: int
    reported_ns: int
    broker: int | None = None


class Stored(NamedTuple):
    """A record in the log, as the last reading found it."""

    offset: int
    record: Record | None
    leader_epoch: int


class Read(NamedTuple):
    """A record as a reader got it while things went on."""

    offset: int
    record: Record | None


@dataclass(slots=True)
class Reader:
    """Who reads partitions from their start, and what he got, in order. `finished`: he came to the end.

    `reads` has every partition that he reads, also where nothing came. A shared one is a group: its members get records
    again when partitions change hands. What was deleted ends at `begins`: he need not have seen what is below that,
    even if it is there again.
    """

    name: str
    committed_only: bool
    reads: dict[Partition, list[Read]]
    is_shared: bool = False
    finished: bool = False
    begins: dict[Partition, int] = field(default_factory=dict)


class Look(NamedTuple):
    """A leader's own word on its partition, by ListOffsets: the log start from after `time_ns`, the rest from before.
    Looks of one broker never overlap.
    """

    time_ns: int
    broker: int
    leader_epoch: int
    log_start: int
    high_watermark: int
    log_end: int


class StateLook(NamedTuple):
    """A partition's state znode at some moment between the two times; `version` is its partition epoch."""

    asked_ns: int
    reported_ns: int
    version: int
    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: frozenset[int]


class Absence(NamedTuple):
    """A broker's process stood still or was dead from one time to another."""

    broker: int
    from_ns: int
    to_ns: int


class FollowerLook(NamedTuple):
    """Where a replica's log ended that did not lead then."""

    asked_ns: int
    reported_ns: int
    broker: int
    log_end: int


class CommitLook(NamedTuple):
    """A group's committed offset of one partition, as a coordinator elected in `leader_epoch` reported it."""

    time_ns: int
    broker: int
    leader_epoch: int
    offset: int


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Transaction(NamedTuple):
    """What was written in one transaction, and what its producer learned of its end."""

    outcome: Outcome
    records: tuple[tuple[Partition, Record], ...]


class Trim(NamedTuple):
    """DeleteRecords up to `offset` was acknowledged, and every replica had noted it on disk."""

    time_ns: int
    offset: int


def _lists() -> dict[Partition, list[Any]]:
    return defaultdict(list)


@dataclass(slots=True)
class History:
    """`log` is what uncommitted reading finds at the end, `committed` what committed reading finds.

    `idempotent` are the producers that promise order and no duplicates. `commits_acknowledged` and `commit_looks` are
    of the one group, by partition. `failures` are what clients and processes met that no one may meet.
    """

    min_isr: int = 2
    idempotent: set[str] = field(default_factory=set)
    acknowledged: dict[Partition, list[Acknowledged]] = field(default_factory=_lists)
    refused: dict[Record, str] = field(default_factory=dict)
    readers: list[Reader] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    looks: dict[Partition, list[Look]] = field(default_factory=_lists)
    follower_looks: dict[Partition, list[FollowerLook]] = field(default_factory=_lists)
    states: dict[Partition, list[StateLook]] = field(default_factory=_lists)
    heard: dict[Partition, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """When the leader took up a version of the state; until then it goes by the one before."""
    absences: list[Absence] = field(default_factory=list)
    commits_acknowledged: dict[Partition, list[tuple[int, int]]] = field(default_factory=_lists)
    """(time, offset)"""
    commit_looks: dict[Partition, list[CommitLook]] = field(default_factory=_lists)
    commits_found: dict[Partition, int] = field(default_factory=dict)
    trims: dict[Partition, list[Trim]] = field(default_factory=_lists)
    log: dict[Partition, list[Stored]] = field(default_factory=_lists)
    committed: dict[Partition, list[Stored]] = field(default_factory=_lists)
    failures: list[str] = field(default_factory=list)
