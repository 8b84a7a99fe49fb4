"""Fixtures of the storage tests."""

from __future__ import annotations

import pytest

import kpybroker.storage.segments.index as storage_index
from tests.support.storage.lossy_files import LossyFiles


@pytest.fixture(params=["entries-wait", "entries-at-once"])
def index_writes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With index entries written many together, as an active index does, and with each written at once.

    A scripted load of some dozen batches never fills what an index keeps in memory. Without the second way only its
    rolls and flushes would write to an index, and no crash and no failure would hit an append there.
    """
    if request.param == "entries-at-once":
        monkeypatch.setattr(storage_index, "_UNWRITTEN_BYTES", 0)


@pytest.fixture
def files() -> LossyFiles:
    """An empty disk."""
    return LossyFiles()
