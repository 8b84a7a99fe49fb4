"""Which replica leads next: the four election strategies of the controller, and the choice of a test.

Kafka's `Election` and ``PartitionLeaderElectionAlgorithms``. Plain functions over one partition; `online` says whether
a broker is alive and the partition's log directory on it too. Each returns the new `LeaderAndIsr` (None: no replica can
lead) and the brokers to notify of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from kpybroker.core.leader_and_isr import NO_LEADER, LeaderAndIsr

Online = Callable[[int], bool]


class ElectionResult(NamedTuple):
    """The new state of a partition (None: no leader was found), and the brokers to notify of it."""

    leader_and_isr: LeaderAndIsr | None
    recipients: tuple[int, ...]


def leader_for_offline(
    assignment: Sequence[int],
    current: LeaderAndIsr,
    online: Online,
    *,
    unclean: bool,
    recovery_supported: bool,
) -> ElectionResult:
    """First live replica of the ISR; with `unclean`, if no ISR member is live, first live replica.

    An unclean leader starts RECOVERING where brokers know leader recovery (KIP-704, inter-broker protocol 3.2).
    """
    live = tuple(replica for replica in assignment if online(replica))
    leader = next((replica for replica in live if replica in current.isr), None)
    if leader is not None:
        isr = tuple(replica for replica in current.isr if online(replica))
        return ElectionResult(current.new_leader_and_isr(leader, isr), live)
    if not unclean or not live:
        return ElectionResult(None, live)
    if recovery_supported:
        return ElectionResult(current.new_recovering_leader_and_isr(live[0], (live[0],)), live)
    return ElectionResult(current.new_leader_and_isr(live[0], (live[0],)), live)


def leader_for_reassign(target: Sequence[int], current: LeaderAndIsr, online: Online) -> ElectionResult:
    """First live in-sync replica of the reassignment's target."""
    leader = next((replica for replica in target if online(replica) and replica in current.isr), None)
    return ElectionResult(None if leader is None else current.new_leader(leader), tuple(target))


def leader_for_preferred(assignment: Sequence[int], current: LeaderAndIsr, online: Online) -> ElectionResult:
    """The first assigned replica, if it is alive and in sync."""
    preferred = next(iter(assignment), None)
    if preferred is None or not online(preferred) or preferred not in current.isr:
        return ElectionResult(None, tuple(assignment))
    return ElectionResult(current.new_leader(preferred), tuple(assignment))


def leader_for_designated(
    leader: int, assignment: Sequence[int], current: LeaderAndIsr, online: Online
) -> ElectionResult:
    """The replica that a test has chosen, if it is alive and in sync; or NO_LEADER, as if none was."""
    if leader != NO_LEADER and not (online(leader) and leader in current.isr):
        return ElectionResult(None, tuple(assignment))
    return ElectionResult(current.new_leader(leader), tuple(assignment))


def leader_for_controlled_shutdown(
    assignment: Sequence[int], current: LeaderAndIsr, online: Online, shutting_down: Collection[int]
) -> ElectionResult:
    """First in-sync replica that stays; `online` counts brokers shutting down as alive."""
    live = tuple(replica for replica in assignment if online(replica))
    leader = next((r for r in live if r in current.isr and r not in shutting_down), None)
    if leader is None:
        return ElectionResult(None, live)
    isr = tuple(replica for replica in current.isr if replica not in shutting_down)
    return ElectionResult(current.new_leader_and_isr(leader, isr), live)
