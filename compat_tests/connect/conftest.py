"""A minute of JVMs each: these run in `make compat` and `make compat-kafka`, or with --all-versions."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if config.getoption("--all-versions") else True
