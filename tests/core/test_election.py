"""The four elections, case by case as Kafka's PartitionLeaderElectionAlgorithmsTest and Election."""

from __future__ import annotations

from collections.abc import Callable

from kpybroker.core.election import (
    ElectionResult,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_preferred,
    leader_for_reassign,
)
from kpybroker.core.leader_and_isr import LeaderAndIsr
from kpybroker.wire.znodes import RECOVERED, RECOVERING


def state(leader: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader, isr, leader_epoch=5, partition_epoch=9)


def alive(*brokers: int) -> Callable[[int], bool]:
    return brokers.__contains__


class TestOffline:
    def elect(
        self, assignment: tuple[int, ...], isr: tuple[int, ...], live: tuple[int, ...], **options: bool
    ) -> ElectionResult:
        options = {"unclean": False, "recovery_supported": True, **options}
        return leader_for_offline(assignment, state(isr[0], *isr), alive(*live), **options)

    def test_first_assigned_live_in_sync_replica_leads_and_the_isr_loses_the_dead(self) -> None:
        new, recipients = self.elect((2, 4, 3), (4, 2, 3), (4, 3))
        assert new == LeaderAndIsr(4, (4, 3), 6, RECOVERED, 9)
        assert recipients == (4, 3)

    def test_no_replica_leads_when_the_isr_is_dead(self) -> None:
        assert self.elect((2, 4), (2,), (4,)) == (None, (4,))

    def test_unclean_takes_the_first_live_replica_and_marks_it_recovering(self) -> None:
        new, _ = self.elect((2, 4, 5), (2,), (5, 4), unclean=True)
        assert new == LeaderAndIsr(4, (4,), 6, RECOVERING, 9)

    def test_unclean_before_leader_recovery_is_not_marked(self) -> None:
        new, _ = self.elect((2, 4), (2,), (4,), unclean=True, recovery_supported=False)
        assert new == LeaderAndIsr(4, (4,), 6, RECOVERED, 9)

    def test_unclean_prefers_a_live_in_sync_replica(self) -> None:
        new, _ = self.elect((2, 4), (4,), (2, 4), unclean=True)
        assert new == LeaderAndIsr(4, (4,), 6, RECOVERED, 9)

    def test_no_replica_leads_when_all_are_dead(self) -> None:
        assert self.elect((2, 4), (2, 4), (), unclean=True) == (None, ())


class TestReassign:
    def test_first_live_in_sync_target_leads_and_the_isr_stays(self) -> None:
        new, recipients = leader_for_reassign((3, 4), state(1, 1, 4), alive(1, 3, 4))
        assert new == LeaderAndIsr(4, (1, 4), 6, RECOVERED, 9)
        assert recipients == (3, 4)

    def test_a_dead_target_does_not_lead(self) -> None:
        assert leader_for_reassign((4,), state(1, 1, 4), alive(1))[0] is None


class TestPreferred:
    def test_the_first_replica_leads(self) -> None:
        new, recipients = leader_for_preferred((2, 4), state(4, 4, 2), alive(2, 4))
        assert new == LeaderAndIsr(2, (4, 2), 6, RECOVERED, 9)
        assert recipients == (2, 4)

    def test_not_out_of_sync_not_dead_not_absent(self) -> None:
        assert leader_for_preferred((2, 4), state(4, 4), alive(2, 4))[0] is None
        assert leader_for_preferred((2, 4), state(4, 4, 2), alive(4))[0] is None
        assert leader_for_preferred((), state(4, 4), alive(4))[0] is None


class TestControlledShutdown:
    def test_another_in_sync_replica_leads_and_the_leaver_leaves_the_isr(self) -> None:
        new, recipients = leader_for_controlled_shutdown((2, 4), state(2, 2, 4), alive(2, 4), {2})
        assert new == LeaderAndIsr(4, (4,), 6, RECOVERED, 9)
        assert recipients == (2, 4)

    def test_the_last_in_sync_replica_keeps_leading(self) -> None:
        assert leader_for_controlled_shutdown((2, 4), state(2, 2), alive(2, 4), {2})[0] is None

    def test_two_that_leave_cannot_replace_each_other(self) -> None:
        assert leader_for_controlled_shutdown((2, 4), state(2, 2, 4), alive(2, 4), {2, 4})[0] is None
