"""A log of groups may be compacted after every operation, up to any point: its groups are loaded the same, here and by
Kafka 4.3.1.

Compaction is as `storage` does it: of the part before a point below the first open transaction, the last record of
each key stays, records of aborted transactions do not; tombstones may have outlived their time. What is after the point
stays as it is. The histories are those of the tests of groups of either protocol, of both, and of offsets of consumer
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import decode_record
from kpybroker.core.group.values import CommitOffsets, DeleteGroup, DeleteOffsets, GroupConfig
from kpybroker.core.offsets.values import OffsetAndMetadata
from tests.core.consumer_group import test_stateful as consumer_groups
from tests.core.consumer_group.clients import GROUP
from tests.core.consumer_group.harness import ConsumerHarness
from tests.core.group import test_stateful as classic_groups
from tests.core.group.harness import Harness, LogEntry, durable_state
from tests.core.group.logs.kafka_replay import KafkasGroups
from tests.core.group.migration import test_stateful as mixed_groups

Placed = tuple[int, LogEntry]
FEW = settings(
    max_examples=10, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def last_stable_offset(log: list[LogEntry]) -> int:
    """Where the first open transaction begins."""
    begun: dict[int, int] = {}
    for offset, entry in enumerate(log):
        if len(entry) == 2:
            begun.pop(entry[0], None)
        elif entry[2] >= 0:
            begun.setdefault(entry[2], offset)
    return min(begun.values(), default=len(log))


def aborted(log: list[LogEntry], upto: int) -> set[int]:
    """Offsets of records whose transaction was aborted."""
    found: set[int] = set()
    in_transaction: dict[int, list[int]] = {}
    for offset, entry in enumerate(log[:upto]):
        if len(entry) == 2:
            offsets = in_transaction.pop(entry[0], [])
            found.update(() if entry[1] else offsets)
        elif entry[2] >= 0:
            in_transaction.setdefault(entry[2], []).append(offset)
    return found


def compacted(log: list[LogEntry], upto: int, *, keeps_tombstones: bool) -> Iterator[Placed]:
    """What is left, with its offsets."""
    upto = min(upto, last_stable_offset(log))
    gone = aborted(log, upto)
    last = {entry[0]: offset for offset, entry in enumerate(log[:upto]) if len(entry) == 3 and offset not in gone}
    for offset, entry in enumerate(log):
        is_last = len(entry) == 3 and last.get(entry[0]) == offset and (keeps_tombstones or entry[1] is not None)
        if offset >= upto or len(entry) == 2 or is_last:
            yield offset, entry


def thrown_by_kafka(log: Iterable[Placed]) -> list[str]:
    """Why Kafka 4.3.1 would not load it."""
    groups = KafkasGroups()
    for offset, entry in log:
        if len(entry) == 2:
            groups.marker(*entry)
        else:
            groups.replay(offset, *entry)
    return groups.thrown


def loaded(log: Iterable[Placed]) -> GroupMachine:
    machine = GroupMachine(GroupConfig())
    for offset, entry in log:
        if len(entry) == 2:
            machine.replay_marker(*entry)
        else:
            record = decode_record(entry[0], entry[1])
            assert record is not None
            machine.replay(record, offset, entry[2])
    return machine


class Compaction:
    """Checks a harness after each of its commands, or each few once the log is long; `count` how often."""

    def __init__(self) -> None:
        self.count = 0
        self.removed = 0
        self._random = Random(1)
        self._length = 0
        self._harness: Harness | None = None
        self._ends: list[int] = []

    def check(self, harness: Harness) -> None:
        log = harness.log
        if harness is not self._harness:
            self._harness, self._length, self._ends = harness, 0, [0]
        self._ends.append(len(log))
        if 0 <= len(log) - self._length <= len(log) // 100:
            return
        self._length = len(log)
        expected = durable_state(harness.machine)
        assert thrown_by_kafka(enumerate(log)) == []
        # No segment ends within a batch; ours loads even that.
        for upto in (len(log), self._random.choice(self._ends), self._random.randint(0, len(log))):
            for keeps_tombstones in (True, False):
                left = list(compacted(log, upto, keeps_tombstones=keeps_tombstones))
                self.count += 1
                self.removed += len(log) - len(left)
                assert durable_state(loaded(left)) == expected, (upto, keeps_tombstones)
                if upto in self._ends:
                    assert thrown_by_kafka(left) == [], (upto, keeps_tombstones)


@pytest.fixture
def compaction(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compaction]:
    """Every check of a harness is one of this as well."""
    checks = Compaction()

    def also(plain: Callable[[Any], None]) -> Callable[[Any], None]:
        def check(harness: Any) -> None:
            plain(harness)
            checks.check(harness)

        return check

    monkeypatch.setattr(Harness, "check", also(Harness.check))
    monkeypatch.setattr(ConsumerHarness, "check", also(ConsumerHarness.check))
    yield checks
    assert checks.count > 10
    assert checks.removed > 10


PARTITIONS = st.tuples(st.sampled_from("tu"), st.integers(0, 1))


class WithOffsets(consumer_groups.ConsumerGroups):
    """Members commit, producers do so in transactions; offsets and groups are deleted, and expire."""

    def _give(self, request: object) -> None:
        self.tickets += 1
        self.harness.ask(f"t{self.tickets}", request)
        self.harness.check()

    @rule(who=consumer_groups.WHO, partition=PARTITIONS)
    def commit(self, who: int, partition: tuple[str, int]) -> None:
        client = self.clients[who]
        value = OffsetAndMetadata(self.tickets, -1, "", self.harness.now.wall_ms)
        self._give(CommitOffsets(GROUP, client.member_id, client.instance_id, client.epoch, {partition: value}))

    @rule(producer_id=st.sampled_from([7, 8]), partition=PARTITIONS)
    def commit_in_transaction(self, producer_id: int, partition: tuple[str, int]) -> None:
        value = OffsetAndMetadata(self.tickets, -1, "", self.harness.now.wall_ms)
        self._give(CommitOffsets(GROUP, "", None, -1, {partition: value}, producer_id, 0))

    @rule(producer_id=st.sampled_from([7, 8]), is_committed=st.booleans())
    def end_transaction(self, producer_id: int, is_committed: bool) -> None:
        self.harness.do_marker(str(producer_id), "commit" if is_committed else "abort")
        self.harness.check()

    @rule(partition=PARTITIONS)
    def delete_offset(self, partition: tuple[str, int]) -> None:
        self._give(DeleteOffsets(GROUP, (partition,)))

    @rule()
    def delete(self) -> None:
        self._give(DeleteGroup(GROUP))

    @rule(days=st.sampled_from([0, 8]))
    def clean_up(self, days: int) -> None:
        self.harness.advance(days * 86_400_000)
        self.harness.do_cleanup(GROUP)
        self.harness.check()


@pytest.mark.parametrize("histories", [classic_groups.Groups, consumer_groups.ConsumerGroups, WithOffsets])
def test_compacted_after_every_operation(histories: type[RuleBasedStateMachine], compaction: Compaction) -> None:
    run_state_machine_as_test(histories, settings=FEW)


@pytest.mark.parametrize("seed", range(6))
def test_compacted_while_groups_change_their_protocol(seed: int, compaction: Compaction) -> None:
    mixed_groups.walk(seed)
