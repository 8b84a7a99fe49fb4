"""Target assignments: when, of what, and in slices that hold no one up."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kpybroker.core.assignors.values import Assignment, Members, run_to_end
from kpybroker.core.assignors.values import Topics as Counts
from kpybroker.core.budget import StateBudget
from kpybroker.core.consumer_group import target
from kpybroker.core.consumer_group.members import Member, MemberMetadata
from kpybroker.core.consumer_group.records import MemberRecord, PatternRecord, TargetRecord
from kpybroker.core.consumer_group.shared import ConsumerShared
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.target import (
    SPECS_PER_SLICE,
    Computation,
    ComputeTarget,
    computation,
    first_slice,
    may_compute,
    on_target_computed,
    target_records,
)
from kpybroker.core.consumer_group.values import ResolvedPattern, Surroundings
from kpybroker.core.machine import LogLine, Now, Step
from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.modern_group.values import ModernGroupConfig, TopicMetadata
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.core.consumer_group.harness import Topics

T, U = b"t" * 16, b"u" * 16
NOW = Now(9, 9.0)


class Seen:
    """An assignor that remembers what it was given."""

    def __call__(self, members: Members, topics: Counts) -> Generator[None, None, Assignment]:
        self.members, self.topics = members, topics
        yield from ()
        return {member_id: {} for member_id in members}


def new_group(config: ModernGroupConfig | None = None) -> tuple[ConsumerGroup, Seen]:
    seen = Seen()
    settings = ModernGroupConfig() if config is None else config
    surroundings = Surroundings(assignors={"seen": seen}, config_of=lambda group_id: settings)
    shared = ConsumerShared(surroundings, StateBudget())
    shared.update_topics(Topics(1, [TopicMetadata(T, "t", 3), TopicMetadata(U, "u", 1)]), ["t", "u"], has_new=True)
    return ConsumerGroup("g", shared), seen


def names(*topic_names: str) -> MemberMetadata:
    return MemberMetadata(topic_names=frozenset(topic_names))


@pytest.mark.parametrize(
    ("last", "interval_ms", "now_ms", "expected"),
    [
        (TargetEpoch(2, 0), 1_000, 5, False),  # not behind
        (TargetEpoch(1, 0), 1_000, 5, True),  # never computed
        (TargetEpoch(1, 100), 1_000, 1_099, False),
        (TargetEpoch(1, 100), 1_000, 1_100, True),
        (TargetEpoch(1, 100), 0, 5, True),  # a clock that was set back
        (TargetEpoch(-1, 0), 1_000, 5, True),  # after its tombstone
    ],
)
def test_when_a_target_is_computed(last: TargetEpoch, interval_ms: int, now_ms: int, expected: bool) -> None:
    group, _ = new_group(ModernGroupConfig(assignment_interval_ms=interval_ms))
    group.target_epoch = last
    assert may_compute(group, 2, now_ms) is expected
    group.computing = object()
    assert not may_compute(group, 2, now_ms)


def test_an_assignor_sees_members_with_topic_ids_and_their_last_targets() -> None:
    group, seen = new_group()
    group.replay(MemberRecord("g", "a", names("t", "gone")))
    group.replay(TargetRecord("g", "a", {T: frozenset((0, 1))}))
    group.replay(PatternRecord("g", "u.*", ResolvedPattern(frozenset("u"), 1, 1)))
    new = Member("b", replace(names(), pattern="u.*"))
    work = computation(group, 2, MemberMetadata(), new)
    assert first_slice(work) == {"a": {}, "b": {}}
    assert {member_id: (spec.topics, spec.owned) for member_id, spec in seen.members.items()} == {
        "a": (frozenset((T,)), {T: frozenset((0, 1))}),
        "b": (frozenset((U,)), {}),
    }
    assert seen.topics == {T: 3, U: 1}
    assert (work.epoch, work.assignor) == (2, "seen")


def test_a_static_member_that_is_replaced_gives_its_target_to_the_next() -> None:
    group, seen = new_group()
    metadata = replace(names("t"), instance_id="i")
    group.replay(MemberRecord("g", "a", metadata))
    group.replay(TargetRecord("g", "a", {T: frozenset((0,))}))
    work = computation(group, 2, metadata, Member("b", metadata))
    run_to_end(work.slices)
    assert [*seen.members] == ["b"]
    assert seen.members["b"].owned == {T: frozenset((0,))}
    assert seen.members["b"].instance_id == "i"
    assert work.static == {"b": "i"}


def test_only_what_changed_is_written_and_the_epoch_last() -> None:
    old, new = {T: frozenset((0,))}, {T: frozenset((1,))}
    epoch = TargetEpoch(3, 9)
    records = target_records("g", {"a": old, "b": new, "c": {}}, {"a": old, "b": old, "d": old}, epoch)
    assert [(type(record).__name__, getattr(record, "member_id", "")) for record in records] == [
        ("TargetRecord", "b"),
        ("TargetRecord", "c"),
        ("TargetEpochRecord", ""),
    ]


def in_parts(group: ConsumerGroup, assignment: Assignment) -> Iterator[tuple[list[str], Step[Any]]]:
    """What each part of a result writes, and the step in which it is settled; the reader settles it."""
    work = computation(group, 2, MemberMetadata(), Member("m0", names("t")))
    group.computing = work
    pending: list[tuple[Computation, Assignment]] = [(work, assignment)]
    for one, result in pending:
        step: Step[Any] = Step(NOW)
        on_target_computed(step, group, one, result)
        (write,) = step.outcome.writes
        settled: Step[Any] = Step(NOW)
        for record in write.records:
            group.replay(record)
        yield [f"{type(record).__name__} {getattr(record, 'member_id', '')}" for record in write.records], settled
        write.done(settled, ErrorCode.NONE)
        for effect in settled.outcome.effects:
            assert isinstance(effect, ComputeTarget)
            pending.append((effect.computation, run_to_end(effect.computation.slices)))


def test_a_long_result_is_written_in_parts_and_the_epoch_is_in_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that has gone in between gets nothing; a target that is as before is not written."""
    monkeypatch.setattr(target, "TARGETS_AT_ONCE", 2)
    group, _ = new_group()
    for number in range(6):
        group.replay(MemberRecord("g", f"m{number}", names("t")))
    group.replay(TargetRecord("g", "m1", {T: frozenset((1,))}))
    before = group.target_epoch
    parts = in_parts(group, {f"m{number}": {T: frozenset((number,))} for number in range(6)})
    assert next(parts)[0] == ["TargetRecord m0", "TargetRecord m2"]
    assert group.target_epoch == before
    assert not may_compute(group, 2, 5)
    group.replay(MemberRecord("g", "m4", None))
    assert next(parts)[0] == ["TargetRecord m3", "TargetRecord m5", "TargetEpochRecord "]
    assert list(parts) == []
    assert (group.target_epoch.epoch, group.computing) == (2, None)
    assert sorted(group.targets) == ["m0", "m1", "m2", "m3", "m5"]


def test_a_part_that_is_not_written_ends_the_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "TARGETS_AT_ONCE", 1)
    group, _ = new_group()
    for number in range(3):
        group.replay(MemberRecord("g", f"m{number}", names("t")))
    work = group.computing = computation(group, 2, MemberMetadata(), Member("m0", names("t")))
    step: Step[Any] = Step(NOW)
    on_target_computed(step, group, work, {f"m{number}": {T: frozenset((number,))} for number in range(3)})
    (write,) = step.outcome.writes
    settled: Step[Any] = Step(NOW)
    write.done(settled, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert [type(effect) for effect in settled.outcome.effects] == [LogLine]
    assert may_compute(group, 2, 5)


def test_without_an_assignor_the_heartbeat_fails() -> None:
    group = ConsumerGroup("g", ConsumerShared(Surroundings(), StateBudget()))
    with pytest.raises(KafkaError) as raised:
        computation(group, 2, MemberMetadata(), Member("a"))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_large_group_is_prepared_in_slices_and_what_changes_in_between_does_not_count() -> None:
    group, seen = new_group()
    for number in range(2 * SPECS_PER_SLICE):
        group.members[str(number)] = Member(str(number), names("t"))
    work = computation(group, 2, MemberMetadata(), Member("new", names("t")))
    assert first_slice(work) is None
    group.members.clear()
    assert len(run_to_end(work.slices)) == 2 * SPECS_PER_SLICE + 1
    assert len({id(spec.topics) for spec in seen.members.values()}) == 1
