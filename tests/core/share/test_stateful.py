"""A share partition against a list of offsets, in any order of members, failed writes, time, truncation and restarts.

The model knows for each offset who holds it until when, how often it was delivered, which new state is being written,
and what the share coordinator has persisted. It does not know in what pieces records are handed out, only what may be
in them: nothing that is held, being written or done with; a record on its last delivery alone; strictly no more than
was asked for; new records only below the limit. Further: what was accepted is never delivered again, also after a
restart; the start offset never goes back, and everything below it is done with; in the end everything is.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.values import (
    Acknowledgement,
    Fetched,
    FetchedBatch,
    Outcome,
    PersistedState,
    RecordState,
    ShareSettings,
    StateWrite,
)
from kpybroker.core.share_coordinator.values import StateBatch
from kpybroker.wire.errors import ErrorCode
from tests.support.examples import examples

MEMBERS = st.sampled_from("ab")
TYPES = st.sampled_from([0, 1, 1, 2, 2, 3, 4])
SIZES = st.sampled_from([1, 2, 5, 100])
LOCK_S = 10.0
S = RecordState
NEW_STATES = {0: S.ARCHIVED, 1: S.ACKNOWLEDGED, 2: S.AVAILABLE, 3: S.ARCHIVED}


@dataclass
class Record:
    state: RecordState = S.AVAILABLE
    count: int = 0
    holder: str = ""
    until: float = 0
    writing: RecordState | None = None

    @property
    def is_free(self) -> bool:
        return self.state is S.AVAILABLE and self.writing is None


class Partition(RuleBasedStateMachine):
    @initialize(
        sizes=st.lists(st.integers(1, 6), min_size=3, max_size=10),
        aborted=st.sets(st.integers(0, 9), max_size=2),
        limit=st.sampled_from([2, 3, 5]),
        locks=st.sampled_from([8, 1000]),
    )
    def begin(self, sizes: list[int], aborted: set[int], limit: int, locks: int) -> None:
        self.settings = ShareSettings(int(LOCK_S * 1000), limit, locks)
        self.now = 100.0
        self.log: list[FetchedBatch] = []
        for size in sizes:
            base = self.log[-1].last_offset + 1 if self.log else 0
            self.log.append(FetchedBatch(base, base + size - 1))
        self.aborted = [self.log[number] for number in aborted if number < len(self.log)]
        self.log_end = self.log[-1].last_offset + 1
        self.log_start = 0
        self.records = {offset: Record() for offset in range(self.log_end)}
        self.writes: list[StateWrite] = []
        self.persisted: dict[int, StateBatch] = {}
        self.persisted_start = 0
        self.partition = SharePartition(PersistedState(1, 0), self.settings)
        self.start = 0

    @rule(member=MEMBERS, count=st.integers(1, 4), most=SIZES, size=SIZES, strict=st.booleans())
    def acquire(self, member: str, count: int, most: int, size: int, strict: bool) -> None:
        offset = self.partition.next_fetch_offset()
        if not self.partition.can_acquire():
            return
        if offset < self.log_start:
            assert self.partition.start_offset < self.log_start
            self.partition.advance(self.log_start)
            return
        batches = [batch for batch in self.log if batch.last_offset >= offset][:count]
        aborted = [batch for batch in self.aborted if batch in batches]
        new_from, full = self.partition.end_offset, self._is_full()
        rows = self.partition.acquire(member, Fetched(offset, batches, aborted), most, size, strict, self.now)
        offsets = [offset for row in rows for offset in range(row.first, row.last + 1)]
        assert offsets == sorted(set(offsets))
        assert not strict or len(offsets) <= most
        for row in rows:
            for one in range(row.first, row.last + 1):
                self._acquired(member, one, row.delivery_count)
        self._check_last_deliveries(offsets)
        assert not full or not offsets or offsets[-1] <= new_from
        self._archive_aborted(aborted)

    def _is_full(self) -> bool:
        return self.partition.in_flight >= self.settings.partition_max_record_locks

    def _acquired(self, member: str, offset: int, delivery_count: int) -> None:
        record = self.records[offset]
        assert record.is_free, (offset, record)
        assert not any(batch.base_offset <= offset <= batch.last_offset for batch in self.aborted)
        record.state, record.holder, record.until = S.ACQUIRED, member, self.now + LOCK_S
        record.count += 1
        assert record.count == delivery_count

    def _check_last_deliveries(self, offsets: list[int]) -> None:
        limit = self.settings.delivery_count_limit
        if limit > 2 and any(self.records[offset].count == limit for offset in offsets):
            assert len(offsets) == 1

    def _archive_aborted(self, aborted: list[FetchedBatch]) -> None:
        """The machine says what it archived by its runs; here only that no member holds it."""
        for run in self.partition.runs():
            for offset in range(run.first, run.last + 1):
                if any(batch.base_offset <= offset <= batch.last_offset for batch in aborted):
                    assert run.state in (S.ARCHIVED, S.AVAILABLE)
                    self.records[offset].state, self.records[offset].count = run.state, run.delivery_count

    @rule(member=MEMBERS, first=st.integers(0, 40), types=st.lists(TYPES, min_size=1, max_size=6), alike=st.booleans())
    def acknowledge_anything(self, member: str, first: int, types: list[int], alike: bool) -> None:
        given = types[:1] if alike else types
        self._acknowledge(member, Acknowledgement(first, first + len(types) - 1, given))

    @rule(member=MEMBERS, type_=TYPES)
    def acknowledge_what_is_held(self, member: str, type_: int) -> None:
        for run in list(self.partition.runs()):
            if run.state is S.ACQUIRED and run.member_id == member and run.last >= self.partition.start_offset:
                self._acknowledge(member, Acknowledgement(run.first, run.last, [type_]))
                return

    def _acknowledge(self, member: str, asked: Acknowledgement) -> None:
        start = self.partition.start_offset
        named = {
            offset: asked.types[0] if len(asked.types) == 1 else asked.types[offset - asked.first]
            for offset in range(max(start, asked.first), asked.last + 1)
        }
        outcome = self.partition.acknowledge(member, [asked], self.now)
        held = [offset for offset in named if offset in self.records and self._holds(member, offset)]
        if len(held) < len(named):
            assert outcome.error in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST), (asked, held)
            assert outcome.write is None
            for offset in held:
                if any(not self._holds(member, before) for before in range(min(named), offset)):
                    break
                if named[offset] == 4:
                    self._sync_deadline(offset)
            return
        assert outcome.error is ErrorCode.NONE
        for offset, type_ in named.items():
            if type_ == 4:
                self.records[offset].until = self.now + LOCK_S
            else:
                self.records[offset].writing = self._released(offset) if type_ == 2 else NEW_STATES[type_]
        self._begun(outcome)

    def _sync_deadline(self, offset: int) -> None:
        """A renewal before an offset that was refused stays, unless the request was refused as a whole."""
        for run in self.partition.runs():
            if run.first <= offset <= run.last:
                assert run.deadline in (self.records[offset].until, self.now + LOCK_S)
                self.records[offset].until = run.deadline

    def _holds(self, member: str, offset: int) -> bool:
        record = self.records[offset]
        return record.state is S.ACQUIRED and record.holder == member and record.writing is None

    def _released(self, offset: int) -> RecordState:
        record = self.records[offset]
        is_last = record.count >= self.settings.delivery_count_limit or offset < self.partition.start_offset
        return S.ARCHIVED if is_last else S.AVAILABLE

    def _begun(self, outcome: Outcome) -> None:
        if outcome.write is None:
            return
        self.writes.append(outcome.write)
        for batch in outcome.write.batches:
            for offset in range(batch.first, batch.last + 1):
                record = self.records[offset]
                assert batch.delivery_state == (record.state if record.writing is None else record.writing)
                assert batch.delivery_count == record.count

    @rule(member=MEMBERS)
    def release(self, member: str) -> None:
        for offset in self.records:
            if self._holds(member, offset):
                self.records[offset].writing = self._released(offset)
        self._begun(self.partition.release_member(member))

    @rule(seconds=st.sampled_from([1.0, 4.0, LOCK_S]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for offset, record in self.records.items():
            if record.state is S.ACQUIRED and record.writing is None and record.until <= self.now:
                record.state = self._released(offset)
        deadline = self.partition.next_deadline
        outcome = self.partition.expire(self.now)
        assert outcome.write is None or (deadline is not None and deadline <= self.now)
        self._begun(outcome)
        deadline = self.partition.next_deadline
        assert deadline is None or deadline > self.now

    @precondition(lambda self: self.writes)
    @rule(number=st.integers(0, 5), succeeds=st.sampled_from([True, True, False]))
    def write_ends(self, number: int, succeeds: bool) -> None:
        write = self.writes.pop(number % len(self.writes))
        error = ErrorCode.NONE if succeeds else ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert self.partition.written(write, error, self.now).error is error
        for batch in write.batches:
            for offset in range(batch.first, batch.last + 1):
                if succeeds:
                    self.persisted[offset] = StateBatch(offset, offset, batch.delivery_state, batch.delivery_count)
                if not write.is_timeout:
                    self._ended(offset, succeeds)
        if succeeds:
            self.persisted_start = max(self.persisted_start, write.start_offset)

    def _ended(self, offset: int, succeeds: bool) -> None:
        record = self.records[offset]
        assert record.writing is not None or record.state is S.ARCHIVED
        if succeeds:
            record.state = record.state if record.writing is None else record.writing
        elif record.state is S.ACQUIRED and record.until <= self.now:
            record.state = self._released(offset)
        record.writing = None

    @rule(offset=st.integers(1, 30))
    def the_log_is_truncated(self, offset: int) -> None:
        if not self.log_start < offset < self.log_end:
            return
        self.log_start = offset
        self.log = [batch for batch in self.log if batch.last_offset >= offset]
        self.partition.advance(offset)
        for one in range(offset):
            record = self.records[one]
            if record.is_free or record.writing is S.AVAILABLE:
                record.state, record.writing = S.ARCHIVED, None

    @rule()
    def another_broker_leads(self) -> None:
        """What was not persisted did not happen, so it may be delivered again; what runs out is only that."""
        kept = [self.persisted[offset] for offset in sorted(self.persisted) if offset >= self.persisted_start]
        for offset, record in self.records.items():
            batch = self.persisted.get(offset, StateBatch(offset, offset, 0, 0))
            if batch.delivery_state == S.ACKNOWLEDGED:
                assert record.state.is_terminal or record.writing is S.ACKNOWLEDGED or offset < self.log_start
            below = offset < max(self.persisted_start, self.log_start)
            state = S(batch.delivery_state)
            self.records[offset] = Record(
                S.ARCHIVED if below and not state.is_terminal else state, batch.delivery_count
            )
        self.partition = SharePartition(PersistedState(1, self.persisted_start, kept), self.settings)
        self.partition.advance(self.log_start)
        self.writes.clear()
        self.start = 0

    @invariant()
    def the_machine_is_as_the_model(self) -> None:
        next_offset = 0
        for run in self.partition.runs():
            assert next_offset <= run.first <= run.last
            next_offset = run.last + 1
            for offset in range(run.first, run.last + 1):
                record = self.records[offset]
                if run.pending is None:
                    assert (run.state, run.delivery_count) == (record.state, record.count), (offset, run, record)
                    assert run.member_id == (record.holder if record.state is S.ACQUIRED else "")
        start = self.partition.start_offset
        assert start >= self.start
        self.start = start
        for offset in range(start):
            assert offset < self.log_start or self.records[offset].state.is_terminal, offset
        done = [run for run in self.partition.runs() if run.state.is_terminal and run.last >= start]
        assert self.partition.delivery_complete_count == sum(run.last - max(start, run.first) + 1 for run in done)

    @invariant()
    def what_is_available_is_fetched_next(self) -> None:
        offset, partition = self.partition.next_fetch_offset(), self.partition
        free = [one for one in self.records if one >= partition.start_offset and self.records[one].is_free]
        assert offset == (free[0] if free else self.log_end) or offset == self.log_end

    def teardown(self) -> None:
        """Without failures everything is done with in the end."""
        if not hasattr(self, "partition"):
            return
        for _ in range(len(self.records) * 12):
            while self.writes:
                self.write_ends(0, True)
            left = [one for offset, one in self.records.items() if offset >= self.log_start]
            if all(one.state.is_terminal for one in left):
                return
            self.time_passes(1.0)  # what is held below the log's start ends with its lock
            self.acquire("a", 4, 100, 100, False)
            self.acknowledge_what_is_held("a", 1)
            self.acknowledge_what_is_held("b", 1)
        raise AssertionError(f"stuck: {list(self.partition.runs())}")


Partition.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestPartition = Partition.TestCase
