"""Every mutant of the simulator can still be made of the broker as it is."""

from __future__ import annotations

import filecmp
from pathlib import Path

import pytest

from compat_tests.deps import ROOT
from compat_tests.faults.mutate import Mutant, build, mutants
from tests.simulation import mutants as hunting
from tests.simulation.mutants import NEEDS, PAGE, PATCHES, PLAYED, all_mutants, page, read_found, write_found
from tests.simulation.plays import PLAYS
from tests.simulation.run import is_a, with_client
from tests.simulation.storm import draw


@pytest.mark.parametrize("mutant", mutants(PATCHES), ids=lambda mutant: mutant.name)
def test_a_mutant_differs_from_the_broker_and_is_python(mutant: Mutant, tmp_path: Path) -> None:
    build(mutant, tmp_path)
    changed = [line.removeprefix("+++ b/") for line in mutant.patch.read_text().splitlines() if line.startswith("+++")]
    assert changed
    for name in changed:
        assert not filecmp.cmp(ROOT / name, tmp_path / name, shallow=False)
        compile((tmp_path / name).read_text(), name, "exec")


def test_no_two_have_one_name() -> None:
    names = [mutant.name for mutant in all_mutants()]
    assert len(set(names)) == len(names) >= 50


def test_what_is_on_the_page_and_in_tables_are_mutants() -> None:
    names = {mutant.name for mutant in all_mutants()}
    assert names >= read_found().keys() >= {"sessions_not_restarted"}
    assert names >= NEEDS.keys()
    assert PAGE.read_text() == page(), "run python -m tests.simulation.mutants --page"


def test_a_mutant_of_a_play_names_one_that_is_there() -> None:
    for mutant in mutants(PATCHES):
        assert mutant.faults[0] == "simulated"
        assert PLAYS.keys() >= set(mutant.faults[1:])
    assert PLAYS.keys() >= set(PLAYED.values())
    assert {mutant.name for mutant in mutants()} >= PLAYED.keys()


def test_all_are_found() -> None:
    assert read_found().keys() == {mutant.name for mutant in all_mutants()}


def test_what_was_found_takes_the_place_of_what_was_found_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hunting, "FOUND", tmp_path / "found.txt")
    assert read_found() == {}
    for name, found in (("b", "seed 3: lost"), ("a", "the play x: y | z"), ("b", "seed 2: lost")):
        write_found(name, found)
    assert read_found() == {"a": "the play x: y | z", "b": "seed 2: lost"}


def test_seeds_without_the_client_that_a_mutant_needs_are_left_out() -> None:
    seeds = with_client(range(1, 60), 60, "sharer")
    assert with_client(range(1, 60), 60, None) == list(range(1, 60))
    for seed in range(1, 60):
        assert (seed in seeds) == any(is_a(name, "sharer") for name in draw(seed).clients)
    assert 0 < len(seeds) < 30
