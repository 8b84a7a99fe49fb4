"""What a login costs, and that a remembered one never waits."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from kpybroker.registry.api import logins, users

RIGHT = ("alice", "secret")
USERS = {"alice": users.hashed("secret"), "bob": users.hashed("other")}


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(Request(scope).url.path)(scope, receive, send)


class Door:
    """The middleware in front of a page, with a clock, and clients at addresses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.app = logins.Login(page, USERS, lambda: self.now)

    async def get(self, login: tuple[str, str], address: str = "10.0.0.1") -> httpx.Response:
        transport = httpx.ASGITransport(self.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/subjects", auth=login)


def run(test: Callable[[], Awaitable[None]]) -> None:
    anyio.run(test)


def hold(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, list[str]]:
    """Hashing that waits for the event, and the passwords that it has begun with."""
    release, begun = threading.Event(), list[str]()

    def wait(password: str, stored: str) -> bool:
        begun.append(password)
        release.wait()
        return users.is_right(password, stored)

    monkeypatch.setattr(logins, "is_right", wait)
    return release, begun


@contextmanager
def at_last(release: threading.Event) -> Iterator[None]:
    """Inside of what waits for the threads, so that a test that fails ends."""
    try:
        yield
    finally:
        release.set()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        await anyio.sleep(0.01)
    raise AssertionError("it has not become true")


def test_wrong_passwords_of_an_address_are_throttled_and_remembered_logins_are_not() -> None:
    async def test() -> None:
        door = Door()
        assert (await door.get(RIGHT)).status_code == 200
        statuses = [(await door.get(("alice", f"wrong-{number}"))).status_code for number in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        refused = await door.get(("bob", "other"))
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["error_code"] == 429
        assert (await door.get(RIGHT)).status_code == 200
        assert (await door.get(("bob", "other"), "10.0.0.2")).status_code == 200
        door.now += 60
        assert (await door.get(("alice", "secret"))).status_code == 200

    run(test)


def test_a_remembered_login_does_not_wait_for_guesses_and_few_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """150 guesses from one address, and 150 from as many: threads are few, and so are those who wait."""

    async def test() -> None:
        door = Door()
        assert (await door.get(RIGHT)).status_code == 200
        release, begun = hold(monkeypatch)
        async with guesses(door) as statuses:
            with at_last(release):
                await until(lambda: len(statuses) == 300 - logins.WAITING_MAX)
                assert set(statuses) == {429}
                await until(lambda: len(begun) == logins.HASHING_MAX)
                assert (await door.get(RIGHT)).status_code == 200
        assert statuses.count(401) == logins.WAITING_MAX

    run(test)


@asynccontextmanager
async def guesses(door: Door) -> AsyncIterator[list[int]]:
    statuses: list[int] = []

    async def guess(number: int) -> None:
        address = "9.9.9.9" if number < 150 else f"8.8.8.{number - 150}"
        response: Response | httpx.Response = await door.get(("alice", f"wrong-{number}"), address)
        statuses.append(response.status_code)

    async with anyio.create_task_group() as tasks:
        for number in range(300):
            tasks.start_soon(guess, number)
        yield statuses


def test_one_address_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        door = Door()
        release, _ = hold(monkeypatch)
        statuses: list[int] = []

        async def get(login: tuple[str, str], address: str) -> None:
            statuses.append((await door.get(login, address)).status_code)

        async with anyio.create_task_group() as tasks:
            with at_last(release):
                for number in range(100):
                    tasks.start_soon(get, ("alice", f"wrong-{number}"), "9.9.9.9")
                await until(lambda: len(statuses) == 100 - logins.WAITING_OF_ADDRESS_MAX)
                tasks.start_soon(get, RIGHT, "10.0.0.1")
                await until(lambda: len(door.app._hashing._running) == logins.WAITING_OF_ADDRESS_MAX + 1)
        assert statuses.count(200) == 1

    run(test)


def test_a_client_with_many_connections_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        door = Door()
        release, begun = hold(monkeypatch)
        statuses: list[int] = []

        async def get() -> None:
            statuses.append((await door.get(RIGHT)).status_code)

        async with anyio.create_task_group() as tasks:
            with at_last(release):
                for _ in range(50):
                    tasks.start_soon(get)
                await until(lambda: begun == ["secret"])
                await anyio.wait_all_tasks_blocked()
        assert statuses == [200] * 50
        assert begun == ["secret"]

    run(test)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "KNOWN_MAX", 1)

    async def test() -> None:
        door = Door()
        for login in (RIGHT, ("bob", "other"), RIGHT):
            assert (await door.get(login)).status_code == 200
        assert len(door.app._known) == 1

    run(test)


def test_long_names_of_strangers_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "is_right", lambda password, stored: False)

    async def test() -> None:
        door = Door()
        await door.get(("x", "wrong"))
        tracemalloc.start()
        try:
            for number in range(100):
                name = f"{number:03}" + "x" * 40_000
                assert (await door.get((name, "wrong"), f"10.1.0.{number}")).status_code == 401
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held_bytes < 2_000_000

    run(test)
