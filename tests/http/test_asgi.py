"""Middleware in front of an application: what it never sees, and bodies that are too much."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from kpybroker.http import asgi
from kpybroker.http.asgi import App, AtTheDoor
from kpybroker.http.doors import Door
from kpybroker.http.messages import HttpError

DOOR = Door(frozenset(("here",)), frozenset(("", "text/plain")), body_bytes=1_000)


class Page:
    """Reads its body; `seen` are the sizes of the bodies that it read whole. With `held`, it waits first."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.held: anyio.Event | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        if self.held is not None:
            await self.held.wait()
        self.seen.append(len(body))
        await PlainTextResponse("read")(scope, receive, send)


def refused(error: HttpError) -> App:
    return PlainTextResponse(error.cause, error.status)


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(AtTheDoor(app, DOOR, refused)), base_url="http://here")


async def pieces(count: int, size: int) -> Any:
    for _ in range(count):
        yield bytes(size)


def test_the_application_sees_nothing_of_what_is_refused() -> None:
    async def test() -> None:
        page = Page()
        async with client(page) as browser:
            statuses = [
                (await browser.get("/", headers={"host": "evil.example"})).status_code,
                (await browser.get("/", headers={"origin": "http://evil.example"})).status_code,
                (await browser.post("/", content=b"x", headers={"content-type": "text/html"})).status_code,
                (await browser.post("/", content=bytes(1_001))).status_code,
            ]
        assert statuses == [421, 403, 415, 413]
        assert page.seen == []

    anyio.run(test)


@pytest.mark.parametrize(("count", "status"), [(10, 200), (11, 413)])
def test_a_body_without_a_length_has_the_same_limit(count: int, status: int) -> None:
    async def test() -> None:
        page = Page()
        async with client(page) as browser:
            assert (await browser.post("/", content=pieces(count, 100))).status_code == status
        assert page.seen == ([1_000] if status == 200 else [])

    anyio.run(test)


def test_bodies_of_all_requests_have_a_limit_and_give_back_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "BODIES_BYTES_MAX", 2_500)

    async def test() -> None:
        page, statuses = Page(), list[int]()
        page.held = anyio.Event()
        async with client(page) as browser:

            async def post() -> None:
                statuses.append((await browser.post("/", content=bytes(1_000))).status_code)

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(post)
                await anyio.wait_all_tasks_blocked()
                assert statuses == [503]
                page.held.set()
            page.held = None
            assert (await browser.post("/", content=bytes(1_000))).status_code == 200
        assert statuses == [503, 200, 200]

    anyio.run(test)


def test_a_client_that_leaves_within_its_body_is_no_error() -> None:
    async def test() -> None:
        page, sent = Page(), list[Any]()
        messages = [
            {"type": "http.disconnect"},
            {"type": "http.request", "body": bytes(500), "more_body": True},
        ]

        async def receive() -> Any:
            return messages.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"here"), (b"content-length", b"900")]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        await AtTheDoor(page, DOOR, refused)(scope, receive, send)
        assert (messages, page.seen, sent) == ([], [], [])

    anyio.run(test)
