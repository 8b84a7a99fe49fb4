"""Scenarios of streams groups (`tests.support.scenarios`); `harness.py` defines their commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.streams_group.harness import StreamsHarness
from tests.support.scenarios import check_scenarios, scenarios_of


@pytest.mark.parametrize("path", scenarios_of(__file__), ids=lambda path: path.stem)
def test_scenarios_run_as_written(path: Path) -> None:
    check_scenarios(path, StreamsHarness)
