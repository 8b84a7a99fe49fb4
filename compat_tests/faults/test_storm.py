"""A slice of `make soak-cluster`: two short storms, nothing lost; a failure names its seed for `--seed`."""

from __future__ import annotations

import random

import pytest

from compat_tests.conftest import Launcher
from compat_tests.faults.soak import run_seed

STORM_S = 10.0
LONGEST_FAULT_S = 3.0


@pytest.mark.parametrize("number", [1, 2])
def test_nothing_is_lost_in_a_storm(launcher: Launcher, number: int) -> None:
    seed = random.randrange(10**6)
    assert run_seed(launcher.kind, seed, STORM_S, length_max_s=LONGEST_FAULT_S) == []
