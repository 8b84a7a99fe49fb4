"""What storage tests share."""

from __future__ import annotations

import pytest

import kpybroker.storage.segments.index as storage_index


@pytest.fixture(params=["entries-wait", "entries-at-once"])
def index_writes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an active index writes its entries, many together; and each with its append.

    A scripted load of some dozen batches never fills what an index keeps in memory, so only its rolls and flushes would
    write to one, and no crash and no failure would meet an append there.
    """
    if request.param == "entries-at-once":
        monkeypatch.setattr(storage_index, "_UNWRITTEN_BYTES", 0)
