"""A minute of JVMs each: these run in `make compat` and `make compat-kafka`, or with --all-versions."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def wide(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--all-versions"):
        pytest.skip("needs --all-versions")
