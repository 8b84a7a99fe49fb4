"""A storm that fails becomes the smallest one that fails alike."""

from __future__ import annotations

from tests.simulation.run import kinds
from tests.simulation.shrink import shrink
from tests.simulation.storm import KINDS, Storm, draw


def a_large_storm() -> Storm:
    return next(storm for seed in range(100) if len((storm := draw(seed, brokers=3)).faults) >= 12)


def test_only_the_faults_and_clients_that_matter_are_left() -> None:
    storm = a_large_storm()
    wanted = storm.faults[2], storm.faults[9]
    times = {fault.at_s for fault in wanted}

    def fails(smaller: Storm) -> bool:
        return times <= {fault.at_s for fault in smaller.faults} and "reader1" in smaller.clients

    small = shrink(storm, fails)
    assert [(fault.at_s, fault.kind) for fault in small.faults] == [(fault.at_s, fault.kind) for fault in wanted]
    assert all(fault.for_s <= 1 for fault in small.faults)
    assert small.clients == ("reader1",)
    assert small.partitions == 1
    assert small.seconds < storm.seconds
    assert fails(small)


def test_it_ends_after_so_many_runs() -> None:
    runs = []

    def fails(smaller: Storm) -> bool:
        runs.append(smaller)
        return True

    shrink(a_large_storm(), fails, runs_max=3)
    assert len(runs) == 3


def test_what_can_be_made_no_smaller_stays() -> None:
    storm = a_large_storm()
    assert shrink(storm, lambda smaller: False) == storm


def test_a_seed_is_one_storm_and_seeds_differ_in_their_kinds_of_faults() -> None:
    storms = [draw(seed) for seed in range(60)]
    assert [draw(seed) for seed in range(60)] == storms
    swarms = [{fault.kind for fault in storm.faults} for storm in storms]
    assert set().union(*swarms) == set(KINDS)
    assert any(not swarm & {"kill", "power", "stop"} for swarm in swarms if swarm)
    assert {storm.brokers for storm in storms} == {1, 3}
    assert all(fault.at_s <= storm.seconds for storm in storms for fault in storm.faults)


def test_what_fails_alike_is_of_the_same_kind_whichever_client_meets_it() -> None:
    first = ["12.000 OUT_OF_ORDER_SEQUENCE_NUMBER: producer1, from 3 for t-0", "60.100 lost: producer1.3"]
    again = ["40.500 lost: producer2.7, acknowledged at t-1@4"]
    assert kinds(first) == {"OUT_OF_ORDER_SEQUENCE_NUMBER", "lost"}
    assert kinds(first) & kinds(again) == {"lost"}
