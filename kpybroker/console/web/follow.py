"""Messages as server-sent events, as they arrive or as a search finds them: a thread reads, and waits where the browser
is slower.

Nothing is left out: what the browser has not taken is not read. At most FOLLOWERS_MAX at once. Each event's id is the
cursor after it, so a browser that reconnects goes on where it was.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import Record
from kpybroker.console.queries.filters import Accepts
from kpybroker.console.queries.messages import BATCH, Reading, Selection
from kpybroker.console.queries.records.cursors import write_cursor
from kpybroker.console.queries.records.listing import Place, Read, result
from kpybroker.console.queries.records.scan import Scan

FOLLOWERS_MAX: Final = 12
BUFFERED_MAX: Final = 50
PROGRESS_S: Final = 0.5
"""A search says so often how far it is."""
QUIET_S: Final = 2.0
"""After so long without a message a comment is sent, which finds out whether the browser is still there."""

SendEvent = Callable[[str], Any]
Work = Callable[[SendEvent, threading.Event], None]
"""It sends texts until it is done, or the event is set."""

followers = threading.BoundedSemaphore(FOLLOWERS_MAX)
limiter = anyio.CapacityLimiter(FOLLOWERS_MAX)


class Following(Response):
    """The events of one browser, until it goes away. `work` sends them, in a thread."""

    def __init__(self, work: Work) -> None:
        super().__init__(media_type="text/event-stream")
        self._work = work
        self._stopped = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events, and end with the connection."""
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        if not followers.acquire(blocking=False):
            error = CommandError(f"{FOLLOWERS_MAX} pages follow messages already", "close one of them")
            await send({"type": "http.response.body", "body": failed(error).encode()})
            return
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_disconnected, receive, tasks.cancel_scope)
                await self._send_events(tasks, send)
                tasks.cancel_scope.cancel()
        finally:
            self._stopped.set()
            followers.release()

    async def _until_disconnected(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _send_events(self, tasks: TaskGroup, send: Send) -> None:
        write, read = anyio.create_memory_object_stream[str](BUFFERED_MAX)
        tasks.start_soon(self._in_thread, write)
        async with read:
            async for text in read:
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _in_thread(self, write: MemoryObjectSendStream[str]) -> None:
        async with write:
            work = partial(_worked, self._work, write.send, self._stopped)
            await to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)


def _worked(work: Work, send: Callable[[str], Coroutine[Any, Any, None]], stopped: threading.Event) -> None:
    def wait_and_send(text: str) -> None:
        from_thread.run(send, text)

    try:
        work(wait_and_send, stopped)
    except CommandError as error:
        from_thread.run(send, failed(error))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError):
        return  # the browser has gone, or the console stops


def follow(begin: Callable[[], Reading], accepts: Accepts, show: Callable[[Record], str]) -> Work:
    """What arrives, from where the reading begins."""

    def work(send: SendEvent, stopped: threading.Event) -> None:
        with begin() as reading:
            said = time.monotonic()
            send(": following\n\n")
            while not stopped.is_set():
                for record in filter(accepts, reading.next(BATCH)):
                    send(event("message", show(record), write_cursor(reading.cursor)))
                    said = time.monotonic()
                if time.monotonic() - said > QUIET_S:
                    send(": nothing new\n\n")
                    said = time.monotonic()

    return work


class Shown(NamedTuple):
    """How a search is shown: a record, how far it is, and the place of the next page at its end."""

    row: Callable[[Record], str]
    progress: Callable[[Read], str]
    end: Callable[[Read], dict[str, Any]]


def search(scan: Callable[[], Scan], place: Place, wanted: Selection, shown: Shown) -> Work:
    """What a search finds, until it has as much as is wanted, or everything was read."""

    def work(send: SendEvent, stopped: threading.Event) -> None:
        with scan() as scanning:
            found: list[Record] = []
            said = time.monotonic()

            def now() -> Read:
                return result(place, scanning, found, wanted)

            def stop() -> bool:
                nonlocal said
                if time.monotonic() - said > PROGRESS_S:
                    read = now()
                    send(event("progress", shown.progress(read), write_cursor(read.onward or {})))
                    said = time.monotonic()
                return stopped.is_set()

            send(": searching\n\n")
            for record in scanning.records(stop):
                found.append(record)
                send(event("message", shown.row(record), write_cursor(place.timeline.cut())))
                if len(found) == wanted.limit:
                    break
            send(event("end", shown.end(now())))

    return work


def event(name: str, data: Any, identity: str = "") -> str:
    """One event; its data is a JSON text, which has no line end."""
    head = f"id: {identity}\n" if identity else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n"


def failed(error: CommandError) -> str:
    """Why following ended."""
    return event("failed", f"{error.cause}; {error.fix}")
