"""Scripts about a share partition, which kpybroker's machine plays here, and Kafka's class in SharePartitions.java.

A script is steps, one a line (or separated by `;`); times are milliseconds, errors numbers:

    open DELIVERY_LIMIT LOCK_MS MAX_LOCKS EPOCH START BATCHES   BATCHES: first-last:state:count,... or -
    acquire MEMBER FETCH_OFFSET MAX_RECORDS BATCH_SIZE soft|strict LOG   LOG: base-last,...; aborted ones end with *
    ack MEMBER first-last:TYPES,...                             TYPES: one, or 1.1.2... for each offset
    release MEMBER    after MS    advance LOG_START_OFFSET
    written N ERROR                                             the Nth write in flight ends, counted from 0

What is seen after a step: its result (rows that were acquired, or an error if there is no write), offsets and counts,
the writes in flight, and the state of all offsets that are in flight: `first-last:state:count:member`, with `?` while
a write is in flight.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.values import (
    Acknowledgement,
    Fetched,
    FetchedBatch,
    Outcome,
    PersistedState,
    ShareSettings,
    StateWrite,
)
from kpybroker.core.share_coordinator.values import StateBatch
from kpybroker.wire.errors import ErrorCode

Row = tuple[int, int, str]


class Player:
    """One script, played step by step."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.output: list[str] = []
        self.writes: list[StateWrite] = []
        self.partition = SharePartition(PersistedState(0, 0), ShareSettings())

    def perform(self, line: str) -> None:
        """A step of a scenario (`tests.support.scenarios`)."""
        self.output.append(self.play(line))

    def play(self, step: str) -> str:
        """What is seen after the step."""
        name, *words = step.split()
        result = getattr(self, f"do_{name}")(*words)
        return f"{result} {self.seen()}".strip()

    def do_open(self, limit: str, lock_ms: str, locks: str, epoch: str, start: str, batches: str) -> str:
        state = PersistedState(int(epoch), int(start), [StateBatch(*one) for one in _numbers(batches)])
        self.partition = SharePartition(state, ShareSettings(int(lock_ms), int(limit), int(locks)))
        return ""

    def do_acquire(self, member: str, offset: str, most: str, size: str, mode: str, log: str) -> str:
        batches = [FetchedBatch(*one) for one in _numbers(log.replace("*", ""))]
        aborted = [batch for batch, text in zip(batches, log.split(","), strict=True) if text.endswith("*")]
        fetched = Fetched(int(offset), batches, aborted)
        rows = self.partition.acquire(member, fetched, int(most), int(size), mode == "strict", self.now)
        return "".join(f"{first}-{last}:{count}," for first, last, count in rows)

    def do_ack(self, member: str, acknowledgements: str) -> str:
        asked = []
        for text in acknowledgements.split(","):
            offsets, types = text.split(":")
            first, last = offsets.split("-")
            asked.append(Acknowledgement(int(first), int(last), [int(one) for one in types.split(".")]))
        return self._begun(self.partition.acknowledge(member, asked, self.now))

    def do_release(self, member: str) -> str:
        return self._begun(self.partition.release_member(member))

    def do_after(self, ms: str) -> str:
        """The shell calls `expire` at each deadline; all that runs out until then is one write here."""
        self.now += int(ms) / 1000
        self._begun(self.partition.expire(self.now))
        return ""

    def do_advance(self, log_start_offset: str) -> str:
        self.partition.advance(int(log_start_offset))
        return ""

    def do_written(self, number: str, error: str) -> str:
        write = self.writes.pop(int(number))
        outcome = self.partition.written(write, ErrorCode(int(error)), self.now)
        return "" if write.is_timeout else str(int(outcome.error))

    def _begun(self, outcome: Outcome) -> str:
        if outcome.write is None:
            return str(int(outcome.error))
        self.writes.append(outcome.write)
        return ""

    def seen(self) -> str:
        """All that can be seen of the partition, as text."""
        partition = self.partition
        words = [
            f"next={partition.next_fetch_offset()} start={partition.start_offset} end={partition.end_offset}",
            f"done={partition.delivery_complete_count} inflight={partition.in_flight}",
            f"can={str(partition.can_acquire()).lower()}",
        ]
        for write in self.writes:
            rows = [(first, last, f"{state}:{count}") for first, last, state, count in write.batches]
            numbers = f"{write.state_epoch}/{write.start_offset}/{write.delivery_complete_count}"
            words.append(f"write={numbers}/{joined(rows)}")
        words.append(f"runs={joined(self.rows())}".strip())
        return " ".join(words)

    def rows(self) -> list[Row]:
        """The runs in flight, with their state as text."""
        rows: list[Row] = []
        for run in self.partition.runs():
            mark = "" if run.pending is None else "?"
            rows.append((run.first, run.last, f"{int(run.state)}:{run.delivery_count}:{run.member_id}{mark}"))
        return rows


def joined(rows: Iterable[Row]) -> str:
    """Rows as text; neighbours of one state are one."""
    whole: list[Row] = []
    for first, last, text in sorted(rows):
        if whole and whole[-1][1] + 1 == first and whole[-1][2] == text:
            whole[-1] = (whole[-1][0], last, text)
        else:
            whole.append((first, last, text))
    return "".join(f"{first}-{last}:{text}," for first, last, text in whole)


def _numbers(text: str) -> list[list[int]]:
    if text == "-":
        return []
    return [[int(number) for number in part.replace("-", ":").split(":")] for part in text.split(",")]
