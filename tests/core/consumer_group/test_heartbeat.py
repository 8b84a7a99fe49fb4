"""A heartbeat that changes nothing: no record is written or made, and its work does not grow with the group."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.consumer_group.members import CurrentAssignment, Member, MemberMetadata
from kpybroker.core.consumer_group.records import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult, Surroundings
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.step import GroupOutcome
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.machine import Now, Write
from kpybroker.core.modern_group.values import TopicMetadata
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.consumer_group.assignors import contiguous
from tests.core.consumer_group.harness import Topics
from tests.support.collector import no_collection
from tests.support.requests.large_groups import EPOCH, TOPIC_ID, member_ids, settled_consumer_group

MEMBERS = 10_000
RECORDS = (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
MADE_FOR_RECORDS = (*RECORDS, CurrentAssignment, Member, MemberMetadata, Write)


def settled(count: int) -> GroupMachine:
    """A group of so many members, loaded; its metadata has been looked at once."""
    surroundings = Surroundings(assignors={"contiguous": contiguous})
    machine = GroupMachine(GroupConfig(), None, surroundings)
    topics = Topics(1, [TopicMetadata(TOPIC_ID, "t", count)])
    machine.on_topics_changed(topics, ["t"], has_new=True)
    for offset, record in enumerate(settled_consumer_group("g", count)):
        machine.replay(record, offset)
    run_to_end(machine.activate(["g"], Now(0, 0.0), WorkBudget()))
    consumer = machine.groups["g"].consumer
    assert consumer is not None
    consumer.metadata_hash = consumer.shared.metadata_hash(["t"])
    beat(machine, member_ids(count)[0])
    return machine


def heartbeat_of(member_id: str) -> ConsumerHeartbeat:
    return ConsumerHeartbeat("g", member_id, EPOCH, client_id="c", client_host="/127.0.0.1")


def beat(machine: GroupMachine, member_id: str) -> list[GroupOutcome]:
    """As a coordinator does it: the read is settled at once."""
    first = machine.handle(heartbeat_of(member_id), member_id, Now(1, 1.0))
    return [first, *(machine.settle(read.done, ErrorCode.NONE, Now(1, 1.0)) for read in first.reads)]


def test_a_heartbeat_that_changes_nothing_makes_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = settled(MEMBERS)
    made: Counter[str] = Counter()

    def counting(kind: type) -> Callable[..., None]:
        plain: Callable[..., None] = vars(kind)["__init__"]

        def count(self: object, *args: object, **kwargs: object) -> None:
            made[kind.__name__] += 1
            plain(self, *args, **kwargs)

        return count

    for kind in MADE_FOR_RECORDS:
        monkeypatch.setattr(kind, "__init__", counting(kind))
    assert machine.groups["g"].consumer is not None
    before = dict(machine.groups["g"].consumer.members)
    for member_id in member_ids(MEMBERS):
        first, *settled_reads = beat(machine, member_id)
        assert (first.writes, first.effects, first.replies) == ([], [], [])
        ((ticket, result),) = [reply for outcome in settled_reads for reply in outcome.replies]
        assert ticket == member_id
        assert result == ConsumerHeartbeatResult(ErrorCode.NONE, None, member_id, EPOCH, 5_000, None)
    assert made == Counter()
    after = machine.groups["g"].consumer.members
    assert all(after[member_id] is member for member_id, member in before.items())
    # The counter counts: a member whose client has another id is written.
    machine.handle(ConsumerHeartbeat("g", member_ids(1)[0], EPOCH, client_id="d"), "t", Now(1, 1.0))
    assert made["MemberRecord"] == made["Write"] == 1


def test_its_work_does_not_grow_with_the_group() -> None:
    """Counted in instructions of Python, so that a loop over members would show."""
    few, many = (instructions(settled(count), member_ids(count)[-1]) for count in (10, MEMBERS))
    assert many == few > 300


def instructions(machine: GroupMachine, member_id: str) -> int:
    """How many one heartbeat takes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    with no_collection():
        sys.settrace(trace)
        try:
            beat(machine, member_id)
        finally:
            sys.settrace(before)
    return count
