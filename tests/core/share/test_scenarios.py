"""Scenarios of a share partition (`tests.support.scenarios`); `player.py` defines their commands.

`compat_tests/groups/test_share_partition.py` plays them to Kafka 4.3.1's own class as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.share.player import Player
from tests.support.scenarios import check_scenarios, scenarios_of


@pytest.mark.parametrize("path", scenarios_of(__file__), ids=lambda path: path.stem)
def test_scenarios_run_as_written(path: Path) -> None:
    check_scenarios(path, Player)
