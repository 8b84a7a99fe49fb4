"""A target assignment that takes longer than a slice: it is computed next to heartbeats, and written in parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.machine import LogLine, Now
from kpybroker.core.streams_group import target
from kpybroker.core.streams_group.records import StreamsTargetEpochRecord, StreamsTargetRecord
from kpybroker.core.streams_group.target import ComputeTasks
from kpybroker.core.streams_group.topics.topology import Subtopology
from kpybroker.core.streams_group.values import StreamsGroupConfig, StreamsHeartbeat, StreamsSurroundings
from kpybroker.wire.errors import ErrorCode
from tests.core.streams_group.topologies import SomeTopics, topology

NOW = Now(0, 0.0)
TASKS = 2_000
WIDE = topology(Subtopology("0", ("wide",)))


class Coordinator:
    """A machine, and a log that takes all that it is given. `errors` are those of the next writes."""

    def __init__(self, initial_delay_ms: int = 0) -> None:
        config = StreamsGroupConfig(assignment_interval_ms=0, initial_rebalance_delay_ms=initial_delay_ms)
        self.machine = GroupMachine(GroupConfig(), streams_settings=StreamsSurroundings(config_of=lambda _: config))
        self.machine.on_topics_changed(SomeTopics({"wide": TASKS}), ["wide"], has_new=True)
        self.batches: list[tuple[Any, ...]] = []
        self.effects: deque[ComputeTasks] = deque()
        self.errors: list[ErrorCode] = []
        self.replies: dict[Any, Any] = {}
        self.offset = 0

    def run(self, outcome: Any) -> None:
        waiting = deque([outcome])
        while waiting:
            outcome = waiting.popleft()
            self.effects.extend(effect for effect in outcome.effects if not isinstance(effect, LogLine))
            self.replies |= dict(outcome.replies)
            for write in outcome.writes:
                error = self.errors.pop(0) if self.errors else ErrorCode.NONE
                if error is ErrorCode.NONE:
                    self.batches.append(tuple(write.records))
                    for record in write.records:
                        self.machine.replay(record, self.offset)
                        self.offset += 1
                waiting.append(self.machine.settle(write.done, error, NOW))
            waiting.extend(self.machine.settle(read.done, ErrorCode.NONE, NOW) for read in outcome.reads)

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        joins: dict[str, Any] = {}
        if epoch == 0:
            joins = {"topology": WIDE, "rebalance_timeout_ms": 1_000, "process_id": member_id}
            joins |= {"active_tasks": {}, "standby_tasks": {}, "warmup_tasks": {}}
        request = StreamsHeartbeat(group_id="g", member_id=member_id, member_epoch=epoch, **joins | fields)
        self.run(self.machine.handle(request, "ticket", NOW))
        return self.replies.pop("ticket")

    def compute(self) -> None:
        effect = self.effects.popleft()
        targets = run_to_end(effect.slices)
        self.run(self.machine.settle(partial(effect.done, targets), ErrorCode.NONE, NOW))


def counts(tasks: Mapping[str, Any] | None) -> int:
    return sum(len(indexes) for indexes in (tasks or {}).values())


def test_heartbeats_go_on_while_tasks_are_computed() -> None:
    coordinator = Coordinator()
    joined = coordinator.beat("one", 0)
    assert (joined.member_epoch, counts(joined.tasks.active), len(coordinator.effects)) == (1, 0, 1)
    assert coordinator.beat("one", joined.member_epoch).tasks is None
    assert len(coordinator.effects) == 1
    coordinator.compute()
    assert [type(record) for record in coordinator.batches[-1]] == [StreamsTargetRecord, StreamsTargetEpochRecord]
    response = coordinator.beat("one", joined.member_epoch)
    assert (response.member_epoch, counts(response.tasks.active)) == (2, TASKS)


def test_what_changed_since_it_began_counts_in_the_next_one() -> None:
    coordinator = Coordinator()
    first, _ = coordinator.beat("one", 0), coordinator.beat("two", 0)
    coordinator.compute()
    response = coordinator.beat("one", first.member_epoch)
    assert (response.member_epoch, counts(response.tasks.active), len(coordinator.effects)) == (2, TASKS, 1)
    coordinator.compute()
    response = coordinator.beat("one", 2, active_tasks=response.tasks.active, standby_tasks={}, warmup_tasks={})
    assert counts(response.tasks.active) == TASKS // 2


def test_a_member_that_left_gets_nothing_and_a_group_that_ended_is_left_alone() -> None:
    coordinator = Coordinator()
    coordinator.beat("one", 0)
    coordinator.beat("two", 0)
    coordinator.beat("one", -1)
    coordinator.compute()
    assert coordinator.machine.groups["g"].streams is not None
    assert coordinator.machine.groups["g"].streams.targets == {}
    coordinator.beat("two", 1)
    batches = len(coordinator.batches)
    coordinator.run(coordinator.machine.unload(NOW))
    coordinator.compute()
    assert len(coordinator.batches) == batches


def test_a_computation_whose_epoch_did_not_get_into_the_log_counts_for_nothing() -> None:
    coordinator = Coordinator()
    coordinator.errors = [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert coordinator.beat("one", 0).error is not ErrorCode.NONE
    coordinator.beat("one", 0)
    assert len(coordinator.effects) == 2
    coordinator.compute()
    assert not any(isinstance(record, StreamsTargetRecord) for batch in coordinator.batches for record in batch)
    coordinator.compute()
    assert isinstance(coordinator.batches[-1][-1], StreamsTargetEpochRecord)


@pytest.mark.parametrize("fails_at", [None, 0, 1])
def test_a_long_result_is_written_in_parts_with_the_epoch_in_the_last(
    fails_at: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "TARGETS_AT_ONCE", 2)
    coordinator = Coordinator(initial_delay_ms=1_000)
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        coordinator.beat(name, 0)
    assert not coordinator.effects
    joined = len(coordinator.batches)
    coordinator.run(coordinator.machine.expire(Now(1_000, 1.0)))
    coordinator.errors = [] if fails_at is None else [*[ErrorCode.NONE] * fails_at, ErrorCode.NOT_ENOUGH_REPLICAS]
    while coordinator.effects:
        coordinator.compute()
    sizes = [len(batch) for batch in coordinator.batches[joined:]]
    if fails_at is None:
        assert sizes == [2, 2, 2]
        assert isinstance(coordinator.batches[-1][-1], StreamsTargetEpochRecord)
    else:
        assert sizes == [2] * fails_at
        coordinator.beat("a", 1)
        while coordinator.effects:
            coordinator.compute()
    group = coordinator.machine.groups["g"].streams
    assert group is not None
    assert (group.target_epoch.epoch, sorted(group.targets)) == (group.epoch, names)
