"""Every mutant of the simulator can still be made of the broker as it is."""

from __future__ import annotations

import filecmp
from pathlib import Path

import pytest

from compat_tests.deps import ROOT
from compat_tests.faults.mutate import Mutant, build, mutants
from tests.simulation.mutants import PATCHES, all_mutants


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
