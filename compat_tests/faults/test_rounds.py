"""Rounds of faults are drawn from a seed, and every fault can be drawn."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from unittest.mock import Mock

from compat_tests.faults.faults import FAULTS, Roles
from compat_tests.faults.rounds import Planned, plan, play
from compat_tests.faults.scenarios import SCENARIOS

APPLICATIONS = [SimpleNamespace(name=name, kill=None, start=None, pause=None, resume=None) for name in "abc"]
ROLES = Roles(leaders=[1, 2, 3], coordinators=[2, 2, 1, 3], controller=2)


def cluster() -> Mock:
    return Mock(applications=APPLICATIONS)


def texts(planned: list[Planned]) -> list[tuple[str, float, float]]:
    return [(one.fault.text, one.begin_s, one.length_s) for one in planned]


def test_the_same_seed_draws_the_same_rounds() -> None:
    randoms = (Random(3), Random(3), Random(4))
    rounds = [[texts(plan(cluster(), ROLES, random)) for _ in range(10)] for random in randoms]
    assert rounds[0] == rounds[1] != rounds[2]


def test_only_what_is_wanted_is_drawn() -> None:
    for name in (*FAULTS, *SCENARIOS):
        for one in plan(cluster(), ROLES, Random(1), only=[name]):
            assert one.fault.text


def test_members_are_hurt_where_there_are_some() -> None:
    drawn = [
        " ".join(text for _ in range(100) for text, *_ in texts(plan(Mock(applications=some), ROLES, random)))
        for some, random in ((APPLICATIONS, Random(1)), ([], Random(1)))
    ]
    assert ["the members of" in one for one in drawn] == [True, False]


def test_a_fault_that_cannot_be_done_is_reported_and_the_others_are_done() -> None:
    victim, said = cluster(), Mock()
    victim.kill_zookeeper.side_effect = OSError("no")
    planned = [
        one._replace(begin_s=0, length_s=0)
        for name in ("kill-zookeeper", "pause-zookeeper")
        for one in plan(victim, ROLES, Random(1), only=[name])[:1]
    ]
    assert play(planned, said) == ["kill ZooKeeper: OSError('no')"]
    victim.pause_zookeeper.assert_called_once_with()
    victim.resume_zookeeper.assert_called_once_with()
