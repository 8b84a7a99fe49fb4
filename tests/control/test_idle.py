"""`Idle` waits for what goes on by itself, and not for clients that send without a pause."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.slow_work import SlowWork
from kpybroker.control import idle
from kpybroker.control.hosted import Hosted
from kpybroker.control.idle import Idle
from tests.support.brokers.hosted import plans


def hosted_in(directory: Path) -> Hosted:
    return Hosted(plans(directory), directory)


async def test_tasks_that_hand_work_on_are_awaited(tmp_path: Path) -> None:
    notes: list[int] = []
    send, receive = trio.open_memory_channel[int](0)

    async def pass_on() -> None:
        async for number in receive:
            await trio.lowlevel.checkpoint()
            notes.append(number)
            if number < 200:
                nursery.start_soon(send.send, number + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_on)
        nursery.start_soon(send.send, 1)
        await Idle(hosted_in(tmp_path))()
        assert notes == list(range(1, 201))
        nursery.cancel_scope.cancel()


async def test_a_request_on_its_way_between_two_sockets_of_the_process_is_awaited(tmp_path: Path) -> None:
    notes: list[bytes] = []
    left, right = trio.socket.socketpair()

    async def echo() -> None:
        while data := await right.recv(10):
            await right.send(data)

    async def ask() -> None:
        for number in range(20):
            await left.send(b"%d" % number)
            notes.append(await left.recv(10))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo)
        nursery.start_soon(ask)
        await Idle(hosted_in(tmp_path))()
        assert len(notes) == 20
        nursery.cancel_scope.cancel()
    left.close()
    right.close()


async def test_work_in_threads_is_awaited_and_what_follows_it(tmp_path: Path) -> None:
    go, notes = threading.Event(), list[str]()

    async def work() -> None:
        await trio.to_thread.run_sync(go.wait)
        notes.append("done")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.1) as scope:
            await Idle(hosted_in(tmp_path))()
        assert scope.cancelled_caught
        go.set()
        await Idle(hosted_in(tmp_path))()
        assert notes == ["done"]


async def test_compaction_is_awaited(tmp_path: Path) -> None:
    hosted = hosted_in(tmp_path)
    broker = SimpleNamespace(slow_work=SlowWork(), is_compacting=True)
    hosted.brokers[0] = cast(Broker, broker)
    with trio.move_on_after(0.1) as scope:
        await Idle(hosted)()
    assert scope.cancelled_caught
    broker.is_compacting = False
    await Idle(hosted)()


async def test_a_client_that_never_stops_does_not_hold_it_up(tmp_path: Path) -> None:
    async def spin() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(spin)
        began, to_rest = trio.current_time(), Idle(hosted_in(tmp_path))
        await to_rest()
        assert idle.PATIENCE_S <= trio.current_time() - began < idle.WORK_S_MAX
        began = trio.current_time()
        for _ in range(10):
            await to_rest()  # it has learned
        assert trio.current_time() - began < 10 * idle.PATIENCE_S
        nursery.cancel_scope.cancel()
