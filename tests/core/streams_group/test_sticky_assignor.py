"""Who gets which task: all of them once, balanced, in place, and no two copies in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.streams_group.members import Tasks
from kpybroker.core.streams_group.sticky_assignor import TASKS_PER_SLICE, Targets, TaskMember, assign_tasks
from kpybroker.core.streams_group.topics.configuring import TASKS_MAX, ConfiguredSubtopology
from kpybroker.core.streams_group.topics.topology import Subtopology, TopicInfo

Subtopologies = Mapping[str, ConfiguredSubtopology]


def stateful(count: int, name: str = "0") -> ConfiguredSubtopology:
    return ConfiguredSubtopology(count, Subtopology(name, ("in",), state_changelog_topics=(TopicInfo("c"),)))


def stateless(count: int, name: str = "0") -> ConfiguredSubtopology:
    return ConfiguredSubtopology(count, Subtopology(name, ("in",)))


def assign(
    processes: Mapping[str, str], subtopologies: Subtopologies, standby: int = 0, before: Targets | None = None
) -> Targets:
    """`processes`: of each member; `before`: the last target."""
    members = {
        member_id: TaskMember(process_id, (before or {}).get(member_id, Tasks()))
        for member_id, process_id in processes.items()
    }
    return run_to_end(assign_tasks(members, subtopologies, standby))


def counts(targets: Targets) -> list[int]:
    return [sum(map(len, tasks.active.values())) for tasks in targets.values()]


def test_without_members_there_is_nothing_to_give() -> None:
    assert assign({}, {"0": stateful(3)}) == {}


def test_tasks_are_spread_over_processes_first() -> None:
    """Two threads of one process are half as loaded as the one of another."""
    targets = assign({"a1": "a", "a2": "a", "b1": "b"}, {"0": stateless(6)})
    assert counts(targets) == [2, 2, 2]


def test_a_member_that_joins_takes_only_its_share() -> None:
    before = assign({"a": "a", "b": "b"}, {"0": stateless(6)})
    after = assign({"a": "a", "b": "b", "c": "c"}, {"0": stateless(6)}, before=before)
    assert counts(after) == [2, 2, 2]
    for member_id in "ab":
        assert after[member_id].active["0"] < before[member_id].active["0"]


def test_what_a_member_leaves_goes_to_its_standby() -> None:
    before = assign({"a": "a", "b": "b", "c": "c"}, {"0": stateful(3)}, 1)
    gone = before["a"].active["0"]
    heir = next(member_id for member_id in "bc" if gone & before[member_id].standby["0"])
    after = assign({"b": "b", "c": "c", "d": "d"}, {"0": stateful(3)}, 1, {one: before[one] for one in "bc"})
    for member_id in "bc":
        assert before[member_id].active["0"] <= after[member_id].active["0"] or member_id == heir
    assert sum(counts(after)) == 3


def test_stateless_tasks_have_no_standby() -> None:
    targets = assign({"a": "a", "b": "b"}, {"0": stateless(2), "1": stateful(2, "1")}, 1)
    assert {name for tasks in targets.values() for name in tasks.standby} == {"1"}
    assert sum(len(tasks.standby["1"]) for tasks in targets.values() if tasks.standby) == 2


def test_more_replicas_than_processes_are_not_made() -> None:
    targets = assign({"a": "p", "b": "p"}, {"0": stateful(2)}, 2)
    assert all(not tasks.standby for tasks in targets.values())


MEMBERS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("pqr"), min_size=1)
SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from("012"),
    st.builds(lambda count, has: (stateful if has else stateless)(count), st.integers(1, 7), st.booleans()),
)


@given(MEMBERS, MEMBERS, SUBTOPOLOGIES, SUBTOPOLOGIES, st.integers(0, 2))
def test_what_always_holds(
    first: dict[str, str], then: dict[str, str], was: Subtopologies, now: Subtopologies, standby: int
) -> None:
    before = assign(first, was, standby)
    targets = assign(then, now, standby, before)
    assert targets.keys() == then.keys()
    every = [(name, task) for name, one in now.items() for task in range(one.task_count)]
    active = Counter(_tasks(targets, "active"))
    assert active == Counter(every)
    held: Counter[tuple[str, tuple[str, int]]] = Counter()
    for member_id, tasks in targets.items():
        for kind in (tasks.active, tasks.standby):
            held.update((then[member_id], (name, task)) for name, indexes in kind.items() for task in indexes)
    assert all(count == 1 for count in held.values())
    copies = Counter(_tasks(targets, "standby"))
    wanted = min(standby, len(set(then.values())) - 1)
    assert copies == Counter({task: wanted for task in every if now[task[0]].is_stateful and wanted})
    assert assign(then, now, standby, before) == targets


@given(MEMBERS, SUBTOPOLOGIES, st.integers(0, 2))
def test_what_is_balanced_stays(members: dict[str, str], subtopologies: Subtopologies, standby: int) -> None:
    """One process a member, so that all of its tasks may be anywhere."""
    alone = dict.fromkeys(members, "") | {member_id: member_id for member_id in members}
    before = assign(alone, subtopologies)
    assert assign(alone, subtopologies, before=before) == before
    loads = counts(before)
    assert max(loads) - min(loads) <= 1


def _tasks(targets: Targets, kind: str) -> list[tuple[str, int]]:
    return [
        (name, task) for tasks in targets.values() for name, indexes in getattr(tasks, kind).items() for task in indexes
    ]


def test_others_run_between_slices() -> None:
    """The most tasks that a topology has, of one member: looked at, given, and written down in slices."""
    slices = list(assign_tasks({"a": TaskMember("p")}, {"0": stateless(TASKS_MAX)}, 0))
    assert len(slices) >= 3 * (TASKS_MAX // TASKS_PER_SLICE)
