"""Only the command line tunes the interpreter's garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.cli import garbage
from tests.support.running_broker import create_topic, running_broker


@pytest.fixture
def restored() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


async def test_a_broker_inside_a_program_leaves_its_garbage_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    for name in ("freeze", "collect", "set_threshold", "disable"):
        monkeypatch.setattr(gc, name, lambda *_, name=name: called.append(name))
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t")
    assert called == []


def test_full_collections_wait_until_many_objects_have_survived(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[bool] = []
    counts = iter([(0, 0, 0), (0, 0, garbage.YOUNG_COLLECTIONS_MIN)])
    monkeypatch.setattr(gc, "get_count", lambda: next(counts, (0, 0, 0)))
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))

    async def for_two_intervals() -> None:
        with trio.move_on_after(2.5 * garbage.INTERVAL_S):
            await garbage.collect()

    trio.run(for_two_intervals, clock=trio.testing.MockClock(autojump_threshold=0))
    assert gc.get_threshold() == garbage.THRESHOLDS
    assert collected == [True]
    assert gc.get_freeze_count() > 0
