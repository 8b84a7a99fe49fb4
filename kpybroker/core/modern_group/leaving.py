"""How members go, whatever their kind: in which order Kafka can load that, and what ends with a timer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kpybroker.core.machine import Step
from kpybroker.core.modern_group.records import RecordClasses
from kpybroker.core.modern_group.state import MemberT, ModernGroup
from kpybroker.core.modern_group.timers import LiveMember, MemberTimers, TimerKind
from kpybroker.wire.errors import ErrorCode

RETRY_S: Final = 0.5
"""When a member that could not be fenced, because the append failed, is tried again."""
FENCED_AT_ONCE: Final = 500
"""All members of a group may end together: each writes three records, and a batch of the log has a largest size."""

Due = Sequence[tuple[TimerKind, LiveMember]]


def member_tombstones(classes: RecordClasses, group_id: str, member_ids: Iterable[str]) -> list[Any]:
    """What removes members; Kafka cannot load another order."""
    return [
        of_member(group_id, member_id, None)
        for member_id in member_ids
        for of_member in (classes.current, classes.target, classes.member)
    ]


def group_tombstones(
    classes: RecordClasses, group_id: str, members: Collection[str], targets: Collection[str], last: Sequence[Any]
) -> list[Any]:
    """What removes the whole group, with `last`; Kafka cannot load another order."""
    return [
        *(classes.current(group_id, member_id, None) for member_id in members),
        *(classes.target(group_id, member_id, None) for member_id in dict.fromkeys([*members, *targets])),
        classes.target_epoch(group_id, None),
        *(classes.member(group_id, member_id, None) for member_id in members),
        *last,
    ]


# --- timers


def pop_due(timers: MemberTimers, now: float) -> Mapping[str, Due]:
    """The timers that have ended, by group, each oldest first."""
    due: defaultdict[str, list[tuple[TimerKind, LiveMember]]] = defaultdict(list)
    for kind, live in timers.pop_due(now):
        due[live.group_id].append((kind, live))
    return due


def fence_members(
    step: Step[Any],
    group: ModernGroup[MemberT, Any],
    due: Due,
    reason: Callable[[TimerKind, LiveMember, MemberT], str | None],
    fence: Callable[[Sequence[MemberT]], Sequence[Any]],
) -> None:
    """Timers have ended: fence their members, in one batch, but those for which there is no reason any more.

    Above `FENCED_AT_ONCE`, the others are due again at once: in the next batch.
    """
    fenced: dict[str, MemberT] = {}
    retried = []
    for kind, live in due:
        member = group.members.get(live.member_id)
        if member is None or group.live.get(live.member_id) is not live:
            continue
        if (why := reason(kind, live, member)) is None:
            continue
        if len(fenced) >= FENCED_AT_ONCE:
            group.shared.timers.start(kind, live, step.now.monotonic)
            continue
        step.info(f"[GroupId {group.group_id}] Member {live.member_id} fenced from the group because {why}.")
        fenced[live.member_id] = member
        retried.append((kind, live))
    if fenced:
        step.write(fence(list(fenced.values())), partial(_on_fenced, group, retried))


def _on_fenced(group: ModernGroup[Any, Any], due: Due, step: Step[Any], error: ErrorCode) -> None:
    for kind, live in due if error is not ErrorCode.NONE else ():
        if group.live.get(live.member_id) is live:
            group.shared.timers.start(kind, live, step.now.monotonic + RETRY_S)


def restart_rebalance_timer(
    group: ModernGroup[Any, Any], live: LiveMember, member_epoch: int, timeout_ms: int, now: float
) -> None:
    """The member must give up in time what others are to have; the timer is for this epoch."""
    live.rebalance_epoch = member_epoch
    group.shared.timers.start(TimerKind.REBALANCE, live, now + timeout_ms / 1000)


def session_reason(kind: TimerKind) -> str | None:
    """Why a member goes whose session has ended."""
    return "the member session expired" if kind is TimerKind.SESSION else None


def rebalance_reason(live: LiveMember, member_epoch: int, timeout_ms: int) -> str | None:
    """Why a member goes that did not give up in time what others are to have; None if it is in another epoch now."""
    epoch = live.rebalance_epoch
    return None if member_epoch != epoch else f"it failed to transition from epoch {epoch} within {timeout_ms}ms"
