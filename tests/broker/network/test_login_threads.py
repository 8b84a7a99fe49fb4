"""Threads for logins, shared by addresses."""

from __future__ import annotations

import threading

import trio
import trio.testing

from kpybroker.broker.network.login_threads import THREADS_MAX, THREADS_OF_ADDRESS_MAX, LoginThreads


async def test_an_address_with_many_logins_leaves_threads_for_others() -> None:
    threads, release, running = LoginThreads(), threading.Event(), list[str]()

    def check(address: str) -> None:
        running.append(address)
        if address == "9.9.9.9":
            release.wait()

    async def log_in(address: str) -> None:
        await trio.to_thread.run_sync(check, address, limiter=threads.limiter(address), abandon_on_cancel=True)

    async with trio.open_nursery() as nursery:
        try:
            for _ in range(100):
                nursery.start_soon(log_in, "9.9.9.9")
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(100):
                for number in range(THREADS_MAX):
                    await log_in(f"10.0.0.{number}")
            assert threads.of_address["9.9.9.9"].borrowed_tokens == THREADS_OF_ADDRESS_MAX
            assert running.count("9.9.9.9") <= THREADS_OF_ADDRESS_MAX
        finally:
            release.set()
    assert running.count("9.9.9.9") == 100
    assert threads.of_address == {}


async def test_a_client_that_has_gone_keeps_its_thread_until_that_ends() -> None:
    """So that connections that come and go do not take all of them."""
    threads, release, running = LoginThreads(), threading.Event(), list[int]()

    def check(number: int) -> None:
        running.append(number)
        release.wait()

    try:
        for number in range(20):
            with trio.move_on_after(0.01):
                limiter = threads.limiter("9.9.9.9")
                await trio.to_thread.run_sync(check, number, limiter=limiter, abandon_on_cancel=True)
        assert threads.all.borrowed_tokens <= THREADS_OF_ADDRESS_MAX
        assert len(running) <= THREADS_OF_ADDRESS_MAX
    finally:
        release.set()
    for _ in range(10_000):
        if not threads.of_address:
            break
        await trio.sleep(0.01)
    assert (threads.of_address, threads.all.borrowed_tokens) == ({}, 0)
