"""Every mutant can still be made of the broker as it is."""

from __future__ import annotations

import filecmp
from pathlib import Path

import pytest

from compat_tests.deps import ROOT
from compat_tests.faults.faults import FAULTS
from compat_tests.faults.mutate import SHARE, Mutant, build, mutants
from compat_tests.faults.scenarios import SCENARIOS


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_differs_from_the_broker_and_is_python(mutant: Mutant, tmp_path: Path) -> None:
    assert mutant.faults
    assert set(mutant.faults) <= FAULTS.keys() | SCENARIOS.keys() | {SHARE}
    build(mutant, tmp_path)
    changed = [line.removeprefix("+++ b/") for line in mutant.patch.read_text().splitlines() if line.startswith("+++")]
    assert changed
    for name in changed:
        assert not filecmp.cmp(ROOT / name, tmp_path / name, shallow=False)
        compile((tmp_path / name).read_text(), name, "exec")
