"""A tree of kpybroker for everyone who connects: a connection receives its port, and it lives as long as that.

For Kafka's own tests, whose `EmbeddedZookeeper` is replaced by one that asks here. The trees are in memory: those tests
have bounds on time, and what is durable is tested elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.server.serve import TreeServer
from kpybroker.coordination.server.sessions import Limits

TICK_MS = 800
"""As Kafka's EmbeddedZookeeper."""


@dataclass
class Trees:
    """`port` is where to connect; `made` counts the trees."""

    port: int = 0
    made: int = 0
    ready: threading.Event = field(default_factory=threading.Event)
    token: trio.lowlevel.TrioToken | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    async def run(self) -> None:
        with self.scope:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.port = listener.socket.getsockname()[1]
            self.token = trio.lowlevel.current_trio_token()
            self.ready.set()
            await trio.serve_listeners(self._serve, [listener])

    async def _serve(self, stream: trio.SocketStream) -> None:
        self.made += 1
        clock = SystemClock()
        store = EmbeddedStore.in_memory(clock.time_ms, trio.lowlevel.checkpoint)
        server = TreeServer(store, clock, Limits(tick_ms=TICK_MS))
        _, port = server.listen("127.0.0.1", 0)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.serve)
                await stream.send_all(b"%d\n" % port)
                await self._end_of(stream)
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await store.close()
                await stream.aclose()

    async def _end_of(self, stream: trio.SocketStream) -> None:
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass


@contextmanager
def fresh_trees() -> Iterator[Trees]:
    """In a thread, for as long as the block lasts."""
    trees = Trees()
    thread = threading.Thread(target=trio.run, args=(trees.run,))
    thread.start()
    trees.ready.wait()
    try:
        yield trees
    finally:
        assert trees.token is not None
        trees.token.run_sync_soon(trees.scope.cancel)
        thread.join()
