"""What must be true of every consumer group in a storm; tested by histories made by hand (`test_check.py`).

That each record is processed at least once is checked with the other readers (`faults/check.py`). Here: who owned what
(the guarantee is in `support/groups/ownership.py`), what was committed by whom, and that nothing falls: committed
offsets, the epochs of groups and members, generations.

A heartbeat counts if the broker was the coordinator before and after it, by the state znode: a deposed one that does
not know it goes on accepting heartbeats, of members that its successor will fence. What Kafka does not promise is not
asked for: a classic group keeps no generation that no member was synced in, and a group that is rolled and had no
member for a moment begins at epoch 1.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from compat_tests.faults.check import Found, Kind, Problem, commits_back, shortened
from compat_tests.faults.groups.history import SESSION_MS, Beat, BeatKind, EpochLook, GroupHistory, GroupProtocol
from compat_tests.faults.history import Partition, StateLook
from compat_tests.support.groups.ownership import (
    Renewal,
    Report,
    Sessions,
    commits,
    disorder,
    double_owners,
    read_without_owning,
    stale_commits,
)
from kpybroker.wire.errors import ErrorCode

ACCEPTED = frozenset((ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS))
"""Of a heartbeat: the session begins again with both."""

WITHOUT_EFFECT = frozenset((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID))
"""Of a heartbeat. What others refused may be in the log all the same, and count for the next coordinator."""

GROUP_KINDS = frozenset((Kind.TWO_OWNERS, Kind.STALE_COMMIT, Kind.UNOWNED))
"""Of problems that only groups have."""

States = Mapping[Partition, Sequence[StateLook]]


def check_groups(groups: Iterable[GroupHistory], states: States, *, is_over: bool = True) -> list[Problem]:
    """Everything that is wrong, at the end or, without `is_over`, so far. `states` has those of the partitions that
    coordinators lead.
    """
    found = (problem for group in groups for problem in _check(group, sorted(states[group.coordinated_at]), is_over))
    return shortened(found)


def _check(group: GroupHistory, states: Sequence[StateLook], is_over: bool) -> Found:
    beats = [(epoch, beat) for beat in group.beats if (epoch := _coordinator_epoch(states, beat)) is not None]
    reports = reports_of(group.beats, lambda beat: _coordinator_epoch(states, beat) is not None)
    sessions = Sessions(_renewals(beat for _, beat in beats), SESSION_MS * 1_000_000, reports)
    for kind, texts in (
        (Kind.TWO_OWNERS, double_owners(group.events, sessions)),
        (Kind.STALE_COMMIT, stale_commits(group.events, sessions)),
        (Kind.UNOWNED, read_without_owning(group.events)),
        (Kind.REREAD, disorder(group.events)),
        (Kind.EPOCH_BACK, [*_member_epochs(group.beats), *_generations(group, beats), *_group_epochs(group)]),
    ):
        yield from (Problem(kind, f"{group.name}: {text}") for text in texts)
    acknowledged: dict[Partition, list[tuple[int, int]]] = defaultdict(list)
    for commit in commits(group.events) if is_over else ():
        acknowledged[commit.partition].append((commit.accepted_ns, commit.offset))
    yield from commits_back(group.name, group.commit_looks, acknowledged, group.commits_found)


def _coordinator_epoch(states: Sequence[StateLook], beat: Beat) -> int | None:
    """The leader epoch that the broker coordinated the group in all the while; None if it is not known that it did."""
    before = bisect_right(states, beat.sent_ns, key=lambda state: state.reported_ns) - 1
    after = bisect_left(states, beat.reported_ns, key=lambda state: state.asked_ns)
    if before < 0 or after >= len(states):
        return None
    first, last = states[before], states[after]
    is_same = first.leader_epoch == last.leader_epoch and first.leader == beat.broker
    return first.leader_epoch if is_same else None


def _renewals(beats: Iterable[Beat]) -> dict[str, list[Renewal]]:
    found: dict[str, list[Renewal]] = defaultdict(list)
    for beat in sorted(beats, key=lambda beat: beat.sent_ns):
        if beat.error in ACCEPTED and beat.asked_epoch >= 0:
            found[beat.member].append(Renewal(beat.sent_ns, beat.kind is BeatKind.CONSUMER and beat.asked_epoch == 0))
    return found


def reports_of(beats: Iterable[Beat], is_by_coordinator: Callable[[Beat], bool]) -> dict[str, list[Report]]:
    """What members of the new protocol reported, in order."""
    found: dict[str, list[Report]] = defaultdict(list)
    for beat in sorted(beats, key=lambda beat: beat.sent_ns):
        if beat.kind is BeatKind.CONSUMER and beat.asked_epoch >= 0 and beat.error not in WITHOUT_EFFECT:
            is_certain = beat.error in ACCEPTED and is_by_coordinator(beat)
            given = beat.given if is_certain else None
            found[beat.member].append(Report(beat.sent_ns, beat.reported_ns, beat.owned, given, is_certain))
    return found


# --- what may not fall


def _member_epochs(beats: Iterable[Beat]) -> Iterator[str]:
    for beat in beats:
        is_member = beat.kind is BeatKind.CONSUMER and beat.error == ErrorCode.NONE and beat.asked_epoch >= 0
        if is_member and beat.epoch < max(beat.asked_epoch, 1):
            yield f"{beat.member} of epoch {beat.asked_epoch} was given epoch {beat.epoch} by {beat.broker}"


def _generations(group: GroupHistory, beats: Iterable[tuple[int, Beat]]) -> Iterator[str]:
    """A member is synced in no generation before one in which another was synced, by then, under the same coordinator
    or one before it.
    """
    if group.protocol is not GroupProtocol.CLASSIC:
        return
    synced = [(epoch, beat) for epoch, beat in beats if beat.kind is BeatKind.SYNC and beat.error == ErrorCode.NONE]
    for epoch, beat in synced:
        for former_epoch, former in synced:
            if former.reported_ns < beat.sent_ns and former_epoch <= epoch and former.epoch > beat.epoch:
                yield (
                    f"{beat.member} was synced in generation {beat.epoch} by {beat.broker}, after {former.member} in "
                    f"{former.epoch} by {former.broker}"
                )
                break


def _group_epochs(group: GroupHistory) -> Iterator[str]:
    """Within one coordinator's time nothing falls, and a new one has all that was committed before."""
    if group.protocol is not GroupProtocol.CONSUMER:
        return
    highest: dict[str, int] = {}
    for look in sorted(group.epoch_looks, key=lambda look: (look.leader_epoch, look.time_ns)):
        for name, epoch in _named_epochs(look).items():
            before = highest.get(name, -1)
            if epoch < before:
                yield f"{name} is {epoch} after {before}, by {look.broker} in leader epoch {look.leader_epoch}"
            highest[name] = max(before, epoch)


def _named_epochs(look: EpochLook) -> dict[str, int]:
    members = {f"the epoch of {member_id}": epoch for member_id, epoch in look.member_epochs.items()}
    return {"the group's epoch": look.group_epoch, "the assignment's epoch": look.assignment_epoch, **members}
