"""A TCP proxy on loopback that misbehaves on request: `async with tcp_proxy(host, port) as proxy`.

It passes bytes both ways until a fault is injected; every fault takes effect at once and is undone by its counterpart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

CHUNK = 65536


class Proxy:
    """`address` is where clients connect. `requests` go to the server, `responses` come from it."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._scopes: set[trio.CancelScope] = set()
        self._refusing = False
        self._lost = {"requests": False, "responses": False}
        self.lost_bytes = {"requests": 0, "responses": 0}
        self._lost_more = trio.Event()
        self.address = ""

    def cut(self) -> None:
        """Break every connection, and refuse new ones until `fix`."""
        self._refusing = True
        self._break()

    def fix(self) -> None:
        """Pass bytes again, both ways, over new connections (the old ones miss what was lost)."""
        self._refusing = False
        if any(self._lost.values()):
            self._break()
        self._lost = {"requests": False, "responses": False}

    def lose(self, direction: str) -> None:
        """Take the bytes of one direction and drop them, until `fix`."""
        self._lost[direction] = True

    async def until_lost(self, direction: str) -> None:
        """Wait until a byte of that direction was dropped."""
        while not self.lost_bytes[direction]:
            await self._lost_more.wait()

    def _break(self) -> None:
        for scope in self._scopes:
            scope.cancel()

    async def serve(self, client: trio.SocketStream) -> None:
        if self._refusing:
            await client.aclose()
            return
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                server = await trio.open_tcp_stream(*self._target)
                async with server, client, trio.open_nursery() as nursery:
                    nursery.start_soon(self._pump, client, server, "requests", scope)
                    nursery.start_soon(self._pump, server, client, "responses", scope)
            except OSError:
                pass  # the server is down: the client sees its connection closed
            finally:
                self._scopes.discard(scope)
        await trio.aclose_forcefully(client)

    async def _pump(
        self, source: trio.SocketStream, sink: trio.SocketStream, direction: str, scope: trio.CancelScope
    ) -> None:
        try:
            while data := await source.receive_some(CHUNK):
                if self._lost[direction]:
                    self.lost_bytes[direction] += len(data)
                    self._lost_more.set()
                    self._lost_more = trio.Event()
                else:
                    await sink.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def tcp_proxy(host: str, port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(host, port)
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        proxy.address = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield proxy
        nursery.cancel_scope.cancel()
