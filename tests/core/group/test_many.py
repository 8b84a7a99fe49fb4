"""Ten thousand members, or groups: a heartbeat that changes nothing writes nothing, and works as with ten."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from types import FrameType
from typing import Any

import pytest

from kpybroker.core.assignors.by_name import ASSIGNORS
from kpybroker.core.assignors.values import Partitions, run_to_end
from kpybroker.core.consumer_group.target import ComputeTarget
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult, Surroundings
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.machine import LogLine, Now, Outcome
from kpybroker.core.modern_group.values import ModernGroupConfig, TopicMetadata
from kpybroker.wire.errors import ErrorCode
from tests.core.consumer_group.harness import Topics
from tests.support.collector import no_collection

MANY = 10_000
PARTITIONS = 20
TOPIC = TopicMetadata(b"t" * 16, "t", PARTITIONS)
ASSIGNED_ONCE = ModernGroupConfig(session_timeout_ms=2**31 - 1, assignment_interval_ms=2**31 - 1)
ASSIGNED_AT_ONCE = ModernGroupConfig(session_timeout_ms=2**31 - 1, assignment_interval_ms=0)
Member = tuple[str, str]
"""A group and the id of its member."""


class Crowd:
    """Members of groups of one machine, in one process with its log."""

    def __init__(self) -> None:
        self.config = ASSIGNED_AT_ONCE
        surroundings = Surroundings(config_of=lambda group_id: self.config, assignors=dict(ASSIGNORS))
        self.machine = GroupMachine(GroupConfig(), None, surroundings)
        self.machine.on_topics_changed(Topics(1, [TOPIC]), ["t"], has_new=True)
        self.records = 0
        self.epochs: dict[Member, int] = {}
        self.owned: dict[Member, Partitions] = {}

    def run(self, outcome: Outcome[Any, Any]) -> ConsumerHeartbeatResult:
        """Carry it out, as a shard does; the reply that came of it."""
        outcomes, replies = deque([outcome]), []
        while outcomes:
            outcome = outcomes.popleft()
            replies += [result for _, result in outcome.replies]
            for write in outcome.writes:
                for record in write.records:
                    self.machine.replay(record, self.records)
                    self.records += 1
                outcomes.append(self.machine.settle(write.done, ErrorCode.NONE, NOW))
            outcomes.extend(self.machine.settle(read.done, ErrorCode.NONE, NOW) for read in outcome.reads)
            for effect in outcome.effects:
                if isinstance(effect, ComputeTarget):
                    assignment = run_to_end(effect.computation.slices)
                    computed = self.machine.on_target_computed(effect.group_id, effect.computation, assignment, NOW)
                    outcomes.append(computed)
                else:
                    assert isinstance(effect, LogLine)
        (result,) = replies
        assert isinstance(result, ConsumerHeartbeatResult)
        assert result.error is ErrorCode.NONE, result
        return result

    def join(self, member: Member) -> None:
        self._take(member, ConsumerHeartbeat(*member, 0, rebalance_timeout_ms=1, topic_names=TOPICS, owned={}))

    def beat(self, member: Member) -> None:
        self._take(member, ConsumerHeartbeat(*member, self.epochs[member], owned=self.owned[member]))

    def _take(self, member: Member, heartbeat: ConsumerHeartbeat) -> None:
        result = self.run(self.machine.handle(heartbeat, "ticket", NOW))
        self.epochs[member] = result.member_epoch
        if result.assignment is not None or member not in self.owned:
            self.owned[member] = {key: frozenset(value) for key, value in (result.assignment or {}).items()}

    def idle(self, member: Member) -> Outcome[Any, Any]:
        """The outcome of a heartbeat that says nothing new."""
        return self.machine.handle(ConsumerHeartbeat(*member, self.epochs[member]), "ticket", NOW)


NOW = Now(1_000_000, 0.0)
TOPICS = frozenset({"t"})


def one_group(members: int) -> Crowd:
    """All have joined, and share the topic."""
    crowd = Crowd()
    crowd.config = ASSIGNED_ONCE
    names = [("g", f"m{number}") for number in range(members)]
    for name in names:
        crowd.join(name)
    crowd.config = ASSIGNED_AT_ONCE
    for _ in range(3):
        for name in names:
            crowd.beat(name)
    counts = [sum(map(len, owned.values())) for owned in crowd.owned.values()]
    assert (sum(counts), max(counts) - min(counts) <= 1) == (PARTITIONS, True)
    return crowd


def many_groups(groups: int) -> Crowd:
    crowd = Crowd()
    for number in range(groups):
        crowd.join((f"g{number}", "m"))
    return crowd


@pytest.fixture(scope="module", params=[one_group, many_groups], ids=["members", "groups"])
def crowds(request: pytest.FixtureRequest) -> tuple[Crowd, Crowd]:
    """Of ten thousand, and of ten."""
    return request.param(MANY), request.param(10)


def test_a_heartbeat_that_changes_nothing_writes_and_asks_nothing(crowds: tuple[Crowd, Crowd]) -> None:
    many, _ = crowds
    records = many.records
    for member in many.epochs:
        outcome = many.idle(member)
        assert (outcome.effects, outcome.writes) == ([], [])
        result = many.run(outcome)
        assert (result.member_epoch, result.assignment) == (many.epochs[member], None)
    assert many.records == records


def test_its_work_does_not_grow_with_members_or_groups(crowds: tuple[Crowd, Crowd]) -> None:
    many, few = crowds
    assert calls_of(many, list(many.epochs)[::997]) == calls_of(few, few.epochs)


def calls_of(crowd: Crowd, members: Iterable[Member]) -> set[tuple[str, ...]]:
    """The Python functions that idle heartbeats of these members call, in their order."""
    return {_calls(crowd, member) for member in members}


def _calls(crowd: Crowd, member: Member) -> tuple[str, ...]:
    called: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    with no_collection():
        sys.setprofile(note)
        try:
            crowd.idle(member)
        finally:
            sys.setprofile(before)
    return tuple(called)
