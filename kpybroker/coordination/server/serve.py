"""The server: sockets and timers around `Service` and `Connection`.

Each connection has a task that reads and one that writes. One task commits for all of them, so that changes which
arrive during a commit share the next one. One ends sessions at their time; one removes empty containers.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

import trio

from kpybroker.coordination.server.access import digest
from kpybroker.coordination.server.connection import ClientError, Connection
from kpybroker.coordination.server.service import Service, logger
from kpybroker.coordination.server.sessions import Limits
from kpybroker.core.line_limit import about_client
from kpybroker.core.tree import SystemFailure
from kpybroker.system.sockets import listening

if TYPE_CHECKING:
    from kpybroker.coordination.embedded import EmbeddedStore

CHUNK_BYTES = 64 << 10
REQUESTS_IN_A_ROW_MAX = 32
"""Of one connection, before others run."""
CONTAINERS_SECONDS = 60.0
STALL_SECONDS_MIN = 0.5
RETRY_COMMIT_SECONDS = 1.0
FILE_LOOK_SECONDS = 0.8


class Clock(Protocol):
    """The time that sessions are measured with, in seconds."""

    def monotonic(self) -> float:
        """Now."""

    def move_on_at(self, deadline: float) -> AbstractContextManager[object]:
        """A block that is left when `monotonic` reaches `deadline`."""

    async def pause(self, seconds: float) -> None:
        """Wait between two runs of a periodic task."""


class TreeServer:
    """Bind with `listen`, then run `serve` until it is cancelled. The store must stay open for as long."""

    def __init__(self, store: EmbeddedStore, clock: Clock, limits: Limits | None = None) -> None:
        self._store = store
        self._clock = clock
        self._work = trio.Event()
        self._sock: socket.socket | None = None
        self.address: tuple[str, int] = ("", 0)
        self.service = Service(
            store, limits or Limits(), clock.monotonic, lambda: secrets.token_bytes(16), self._commit_soon
        )

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Bind; the address. Port 0 takes a free one. Raises OSError."""
        self.adopt(listening(host, port))
        return self.address

    def require(self, credentials: str) -> None:
        """Serve only clients that prove these, `user:password`."""
        self.service.required = ("digest", digest(credentials.encode()))

    def adopt(self, sock: socket.socket) -> None:
        """Serve a socket that listens already. The server closes it."""
        self._sock = sock
        self.address = sock.getsockname()[:2]

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        from ipaddress import ip_address

        return ip_address(self.address[0]).is_loopback

    def close(self) -> None:
        """Close the socket of a server that is not served."""
        if self._sock is not None:
            self._sock.close()

    async def serve(self) -> None:
        """Serve until cancelled. The sessions end with it."""
        assert self._sock is not None
        self._store.observe(self.service)
        try:
            async with trio.open_nursery() as nursery:
                for task in (self._commit, self._expire, self._remove_containers, self._look_after_file):
                    nursery.start_soon(task)
                listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._sock))
                await trio.serve_listeners(self._serve_connection, [listener])
        finally:
            self._store.observe_no_more(self.service)

    # --- for all connections

    def _commit_soon(self) -> None:
        self._work.set()

    async def _commit(self) -> None:
        while True:
            self._work = trio.Event()
            try:
                await self._store.settle()
            except SystemFailure as failure:
                self.service.commit_failed(str(failure))
                await trio.sleep(RETRY_COMMIT_SECONDS)
            await self._work.wait()

    async def _expire(self) -> None:
        clock, service = self._clock, self.service
        while True:
            now = clock.monotonic()
            deadline = service.sessions.next_deadline()
            # a session that begins in the meantime ends no sooner than this
            first_new = now + service.limits.timeout_ms_min / 1000
            wake_at = first_new if deadline is None else min(deadline, first_new)
            with clock.move_on_at(wake_at):
                await trio.sleep_forever()
            stalled = clock.monotonic() - wake_at
            if stalled > STALL_SECONDS_MIN:
                service.sessions.prolong(stalled)
            else:
                service.expire()

    async def _remove_containers(self) -> None:
        while True:
            await self._clock.pause(CONTAINERS_SECONDS)
            self.service.remove_containers()

    async def _look_after_file(self) -> None:
        """A file that is taken away is written again, also while no client writes."""
        while True:
            await trio.sleep(FILE_LOOK_SECONDS)
            try:
                self._store.check_file()
            except SystemFailure as failure:
                self.service.commit_failed(str(failure))
                return

    # --- for one

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                host, port = stream.socket.getpeername()[:2]
            except OSError:
                return
            await _Served(self.service, stream, (host.removeprefix("::ffff:"), port)).run()


class _Served:
    """A connection with its socket."""

    def __init__(self, service: Service, stream: trio.SocketStream, address: tuple[str, int]) -> None:
        self._service = service
        self._stream = stream
        self._scope = trio.CancelScope()
        self._can_send = trio.Event()
        self._has_room = trio.Event()
        self._connection = Connection(service, address, self._wake, self._scope.cancel)
        self._client = self._connection.client

    async def run(self) -> None:
        client = self._client
        self._service.add(client)
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write, nursery.cancel_scope)
                    await self._read()
                    if not client.is_ending:  # the client has closed its side, and reads no more
                        nursery.cancel_scope.cancel()
        except* ClientError as errors:
            self._service.places.log_failure(client, errors.exceptions[0])
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client went away
        except* Exception:
            logger.exception("A connection failed", extra=about_client(client.address[0]))
        finally:
            self._service.remove(client)

    def _wake(self) -> None:
        self._can_send.set()

    async def _read(self) -> None:
        client = self._client
        first = trio.CancelScope(deadline=trio.current_time() + self._service.limits.first_request_seconds_max)
        with first:
            while client.is_stranger and not client.is_ending:
                if not await self._read_chunk():
                    return
        if first.cancelled_caught:
            raise ClientError("it was not known in time")
        while not client.is_ending and await self._read_chunk():
            pass

    async def _read_chunk(self) -> bool:
        """Read and perform what is there; False at the end of the stream."""
        connection = self._connection
        while not self._client.has_room:
            self._has_room = trio.Event()
            await self._has_room.wait()
        data = await self._stream.receive_some(CHUNK_BYTES)
        if not data:
            return False
        connection.receive(data)
        in_a_row = 0
        while connection.step():
            in_a_row += 1
            if in_a_row % REQUESTS_IN_A_ROW_MAX == 0:
                await trio.lowlevel.checkpoint()
        return True

    async def _write(self, scope: trio.CancelScope) -> None:
        client = self._client
        while not client.is_over:
            self._can_send = trio.Event()
            if data := client.take():
                await self._stream.send_all(data)
                client.note_sent(len(data))
                self._has_room.set()
            elif not client.is_over:
                await self._can_send.wait()
        scope.cancel()
