"""Only the command line tunes the interpreter's garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.cli.interpreter import garbage
from tests.support.brokers.running_broker import create_topic, running_broker


@pytest.fixture
def restored() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


async def test_a_broker_inside_a_program_leaves_its_garbage_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    for name in ("freeze", "collect", "set_threshold", "disable"):
        monkeypatch.setattr(gc, name, lambda *_, name=name: called.append(name))
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t")
    assert called == []


@pytest.mark.parametrize(
    ("sizes_mb", "given_at"),
    [
        ([50, 51, 60, 70, 70, 70], []),
        ([50, 150, 150, 60, 60, 60], [2]),
        ([50, 100, 151, 153, 60, 60], [3]),
        ([50, 100, 150, 150, 60, 150, 150, 61, 61], [3, 6]),
        ([50, 150, 150, 149, 149, 149], [2]),
        ([150, 50, 100, 99, 50], [3]),
        ([None, 1000, 1000], []),
    ],
    ids=["small", "once", "nearly steady", "while it grows", "in use", "less than at first", "unknown"],
)
def test_memory_is_given_back_once_a_grown_process_grows_no_more(
    restored: None, monkeypatch: pytest.MonkeyPatch, sizes_mb: list[int | None], given_at: list[int]
) -> None:
    """`sizes_mb` are those at the looks; what is looked at after a trim is the next one.

    The end is a number of looks: the clock jumps whenever nothing happens, also while a thread is still to begin.
    """
    scope = trio.CancelScope()
    looks: list[int | None] = []
    given: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a full collection blocks the loop"))

    def resident() -> int | None:
        if len(looks) > len(sizes_mb):
            scope.cancel()
        size = sizes_mb[min(len(looks), len(sizes_mb) - 1)]
        looks.append(size)
        return None if size is None else size * 1024 * 1024

    async def for_all_looks() -> None:
        with scope:
            await garbage.give_back(resident, lambda: given.append(len(looks) - 1))

    trio.run(for_all_looks, clock=trio.testing.MockClock(autojump_threshold=0))
    assert given == given_at


def test_full_collections_wait_until_many_objects_have_survived(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[bool] = []
    made: list[tuple[int, ...]] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *thresholds: made.append(thresholds))
    monkeypatch.setattr(gc, "get_threshold", lambda: garbage.THRESHOLDS)
    counts = iter([(0, 0, 0), (0, 0, garbage.YOUNG_COLLECTIONS_MIN)])
    monkeypatch.setattr(gc, "get_count", lambda: next(counts, (0, 0, 0)))
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))

    async def for_two_intervals() -> None:
        with trio.move_on_after(2.5 * garbage.INTERVAL_S):
            await garbage.collect()

    trio.run(for_two_intervals, clock=trio.testing.MockClock(autojump_threshold=0))
    assert made == [garbage.THRESHOLDS]
    assert collected == [True]
    assert gc.get_freeze_count() > 0


def test_a_python_that_collects_in_small_parts_is_left_to_do_so(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, ...]] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *thresholds: made.append(thresholds))
    monkeypatch.setattr(gc, "get_threshold", lambda: (*made[-1][:2], 0))
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a full collection blocks the loop"))
    trio.run(garbage.collect, clock=trio.testing.MockClock(autojump_threshold=0))
    assert made == [garbage.THRESHOLDS, (garbage.THRESHOLDS[0], garbage.OLD_PARTS)]
