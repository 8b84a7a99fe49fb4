"""Two short storms; `python -m compat_tests.faults.soak` makes longer ones, of these seeds and others."""

from __future__ import annotations

import pytest

from compat_tests.conftest import Launcher
from compat_tests.faults.soak import Storm, run_seed

STORM_S = 3.0
FAULT_S_MAX = 2.0


@pytest.mark.parametrize(
    ("seed", "version"), [pytest.param(1, 1, marks=pytest.mark.wide), (2, 2)], ids=["1-version 1", "2-version 2"]
)
def test_nothing_is_lost_in_a_storm(launcher: Launcher, seed: int, version: int) -> None:
    """`version` is that of transactions, where the brokers have it."""
    storm = Storm(launcher.kind, STORM_S, length_max_s=FAULT_S_MAX, transaction_version=version)
    assert run_seed(storm, seed) == []
