"""Every procedure of the controller as a play (`tests.support.plays`); `stage.py` says what the commands are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.controller.stage import Stage
from tests.support.plays import goes_as_written, plays_beside


@pytest.mark.parametrize("path", plays_beside(__file__), ids=lambda path: path.stem)
def test_play_goes_as_written(path: Path) -> None:
    goes_as_written(path, Stage)
