"""Fixtures of the tests of one log."""

from __future__ import annotations

import pytest

from kpybroker.storage.log.log import Log
from tests.support.storage.lossy_files import LossyFiles
from tests.support.storage.small_log import new


@pytest.fixture
def log(files: LossyFiles) -> Log:
    """An empty log of small segments."""
    return new(files)
