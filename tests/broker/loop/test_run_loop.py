"""trio's loop is what `run_loop` assumes. With a new trio for which this fails the broker is slower, not wrong."""

from __future__ import annotations

import select
from math import inf
from types import SimpleNamespace

import pytest
import trio
import trio.testing
from trio._core import _run

from kpybroker.broker.loop.run_loop import RunLoop
from kpybroker.system.sockets import HAS_EPOLL

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="needs epoll")


def this_loop() -> RunLoop:
    loop = RunLoop.of_this_run()
    assert loop is not None
    return loop


async def test_it_knows_who_can_run() -> None:
    loop = this_loop()
    assert not loop.has_runnable()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        assert loop.has_runnable()


async def test_it_knows_the_next_deadline() -> None:
    loop = this_loop()
    before = loop.next_deadline()
    deadline = trio.current_time() + 100
    with trio.CancelScope(deadline=deadline) as scope:
        assert loop.next_deadline() == min(before, deadline)
        scope.deadline = trio.current_time() + 50
        assert loop.next_deadline() == min(before, scope.deadline)
        await trio.lowlevel.checkpoint()
    assert loop.next_deadline() == before


async def test_it_can_be_woken_up_and_shows_it() -> None:
    loop = this_loop()
    with select.epoll() as epoll:
        epoll.register(loop.descriptor, select.EPOLLIN)
        assert not epoll.poll(0)
        loop.wake()
        assert epoll.poll(0)
        await trio.testing.wait_all_tasks_blocked()
        assert not epoll.poll(0)


async def test_it_knows_that_a_task_waits_for_idleness() -> None:
    loop = this_loop()
    seen: list[bool] = []

    class Hears(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            seen.append(loop.is_waiting_for_idleness())

    hears = Hears()
    assert not loop.is_waiting_for_idleness()
    trio.lowlevel.add_instrument(hears)
    await trio.testing.wait_all_tasks_blocked(0.001)
    trio.lowlevel.remove_instrument(hears)
    assert seen[-1]


async def test_a_clock_that_jumps_waits_for_idleness(autojump_clock: trio.testing.MockClock) -> None:
    assert this_loop().is_waiting_for_idleness()
    autojump_clock.autojump_threshold = inf
    assert not this_loop().is_waiting_for_idleness()


def test_a_guest_of_another_loop_is_left_alone() -> None:
    import queue

    todo: queue.Queue[object] = queue.Queue()
    found: list[RunLoop | None] = []

    async def look() -> None:
        found.append(RunLoop.of_this_run())

    trio.lowlevel.start_guest_run(look, run_sync_soon_threadsafe=todo.put, done_callback=lambda _: todo.put(None))
    while callable(call := todo.get(timeout=30)):
        call()
    assert found == [None]


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        ("runner", "deadlines", None),
        ("runner", "runq", AttributeError),
        ("runner", "waiting_for_idle", AttributeError),
        ("runner", "clock_autojump_threshold", "never"),
        ("runner", "io_manager", SimpleNamespace()),
        ("runner", "is_guest", AttributeError),
        ("deadlines", "next_deadline", lambda _needed: 0.0),
        ("deadlines", "next_deadline", lambda: None),
        ("io_manager", "force_wakeup", None),
        ("io_manager", "_epoll", SimpleNamespace(fileno=lambda: None)),
    ],
)
def test_a_trio_with_other_internals_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, owner: str, name: str, other: object
) -> None:
    parts = {
        "deadlines": SimpleNamespace(next_deadline=lambda: inf),
        "io_manager": SimpleNamespace(_epoll=SimpleNamespace(fileno=lambda: 3), force_wakeup=lambda: None),
    }
    parts["runner"] = SimpleNamespace(
        **parts, runq=[], waiting_for_idle={}, clock_autojump_threshold=inf, is_guest=False
    )
    monkeypatch.setattr(_run, "GLOBAL_RUN_CONTEXT", SimpleNamespace(runner=parts["runner"]))
    assert RunLoop.of_this_run() is not None
    if other is AttributeError:
        delattr(parts[owner], name)
    else:
        setattr(parts[owner], name, other)
    assert RunLoop.of_this_run() is None
