"""Two short storms; `python -m compat_tests.faults.soak` makes longer ones, of these seeds and others."""

from __future__ import annotations

import pytest

from compat_tests.conftest import Launcher
from compat_tests.faults.soak import Storm, run_seed

STORM_S = 3.0
FAULT_S_MAX = 2.0


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.wide), 2])
def test_nothing_is_lost_in_a_storm(launcher: Launcher, seed: int) -> None:
    assert run_seed(Storm(launcher.kind, STORM_S, length_max_s=FAULT_S_MAX), seed) == []
