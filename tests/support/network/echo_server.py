"""A server whose dispatcher is an echo, and clients for it: what a connection does whatever Kafka's requests are."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import trio

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.broker.loop.steps import Steps, Wait, pending, run_steps
from kpybroker.broker.network.response import NO_RESPONSE, Response
from kpybroker.broker.network.transport import Stream, Transport
from kpybroker.broker.requests.connection import BoundListener
from kpybroker.broker.requests.server import Server
from kpybroker.config.keys.synonyms import base_key
from kpybroker.storage.disk.slice import FileSlice, SharedFile
from kpybroker.wire.errors import ProtocolError

HOST = "127.0.0.1"


class Config:
    """The keys the server asks for; a plain dictionary behind BrokerConfig's getters."""

    def __init__(self, **changed: Any) -> None:
        self.values: dict[str, Any] = {
            "queued.max.request.bytes": -1,
            "max.connections": 2**31 - 1,
            "max.connections.per.ip": 2**31 - 1,
            "max.connections.per.ip.overrides": [],
            "connections.max.idle.ms": 600_000,
            "socket.request.max.bytes": 104_857_600,
            "kpybroker.shortcuts": ["all"],
            "max.connection.creation.rate": 2**31 - 1,
            "quota.window.num": 11,
            "quota.window.size.seconds": 1,
        }
        self.values.update({name.replace("_", "."): value for name, value in changed.items()})
        self.callbacks: list[Callable[[frozenset[str]], None]] = []

    inter_broker_listener_name = "REPLICATION"

    def get_int(self, key: str) -> int:
        if key not in self.values:
            key = base_key(key)
        return int(self.values[key])

    def get_list(self, key: str) -> list[str]:
        return list(self.values[key])

    def on_change(self, callback: Callable[[frozenset[str]], None]) -> None:
        self.callbacks.append(callback)

    def announce_change(self) -> None:
        for callback in self.callbacks:
            callback(frozenset(self.values))


class Echo:
    """Stands for the dispatcher: responds with the frame, except to a few words."""

    def __init__(self) -> None:
        self.hold = trio.Event()
        self.in_progress = 0
        self.sent = 0
        self.waits: dict[bytes, Wait] = {}
        self.file: SharedFile | None = None

    def respond_now(self, frame: bytearray | memoryview, connection: Any) -> Any:
        body = bytes(frame)
        connection.client_id = "echoing"
        connection.client_software_name, connection.client_software_version = "echo", "1"
        if body.startswith((b"park", b"late")):
            return run_steps(self._respond_in_steps(body, connection))
        if body.startswith(b"now"):
            return Response(framed(body))
        if body.startswith(b"mute"):
            return self._respond_and_mute(body, connection)
        if body.startswith(b"file"):
            return self._respond_from_file(int(body[4:]))
        return pending(self._respond(body, connection))

    def _respond_in_steps(self, body: bytes, connection: Any) -> Steps[Response]:
        """ "park" until its wait is ended, or until its time, in seconds, is over; "late" is over at once."""
        _, _, seconds = body.partition(b"/")
        deadline = trio.current_time() + float(seconds) if seconds else inf
        wait = self.waits[body] = Wait(-inf if body.startswith(b"late") else deadline)
        self.in_progress += 1
        try:
            yield wait
        finally:
            self.in_progress -= 1
            del self.waits[body]
        return Response(None, (len(body).to_bytes(4, "big"), body), (self._count_sent,))

    def _respond_and_mute(self, body: bytes, connection: Any) -> Any:
        """ "mute", "mute-late" (the response waits for a task), "mute-silent" (none); 100 s, unless "/seconds"."""
        word, _, seconds = body.partition(b"/")
        until = trio.current_time() + float(seconds.split()[0] if seconds else 100)
        frame = b"" if word == b"mute-silent" else framed(body)
        response = Response(None, (frame,), (lambda: connection.mute(until), self._count_sent))
        return pending(self._respond_late(response)) if word == b"mute-late" else response

    @staticmethod
    async def _respond_late(response: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return response

    def _respond_from_file(self, size: int) -> Response:
        assert self.file is not None
        part = FileSlice(self.file, 0, size)
        return Response(None, (size.to_bytes(4, "big"), part), (part.release, self._count_sent))

    async def _respond(self, body: bytes, connection: Any) -> Response:
        if body == b"raise":
            raise RuntimeError("a handler's mistake")
        if body == b"malformed":
            raise ProtocolError("not a request")
        if body == b"silent":
            return NO_RESPONSE
        self.in_progress += 1
        try:
            if body.startswith(b"hold"):
                await self.hold.wait()
            if body.startswith((b"alone", b"rest")):
                with connection.may_leave(serves_rest=body.startswith(b"rest")):
                    await self.hold.wait()
            if body.startswith(b"big"):
                body = bytes(int(body[3:]))
        finally:
            self.in_progress -= 1
        return Response(None, (len(body).to_bytes(4, "big"), body), (self._count_sent,))

    def _count_sent(self) -> None:
        self.sent += 1


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Client:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.buffer = bytearray()

    async def send(self, body: bytes) -> None:
        await self.stream.send_parts([framed(body)])

    async def receive(self, pace: int = 65536) -> bytes | None:
        """The next frame, so much of it at a time; None at the end of the stream."""
        scratch = memoryview(bytearray(pace))
        while len(self.buffer) < 4 or len(self.buffer) < 4 + int.from_bytes(self.buffer[:4], "big"):
            try:
                count = await self.stream.receive_into(scratch)
            except OSError:
                return None
            if not count:
                return None
            self.buffer += scratch[:count]
        size = int.from_bytes(self.buffer[:4], "big")
        body = bytes(self.buffer[4 : 4 + size])
        del self.buffer[: 4 + size]
        return body

    async def ask(self, body: bytes) -> bytes | None:
        await self.send(body)
        return await self.receive()


class House:
    """A running server and the means to reach it."""

    def __init__(self, transport: Transport, config: Config, listeners: int = 1) -> None:
        self.transport = transport
        self.echo = Echo()
        self.server = Server(config, self.echo, SystemClock())  # type: ignore[arg-type]
        self.listeners = [transport.listen(HOST, 0, 50) for _ in range(listeners)]
        self.names = ["PLAINTEXT"] * listeners
        self.listener = self.listeners[0]

    async def connect(self, listener: int = 0) -> Client:
        return Client(await self.transport.connect(*self.listeners[listener].address, timeout_s=60))

    async def run(self, scenario: Callable[[House], Any]) -> None:
        async with trio.open_nursery() as nursery:
            tls = getattr(self.transport, "tls", None)
            protocol = "PLAINTEXT" if tls is None else "SSL"
            names = zip(self.names, self.listeners, strict=True)
            bound = [BoundListener(name, protocol, listener, tls=tls) for name, listener in names]
            nursery.start_soon(self.server.serve, bound)
            await scenario(self)
            nursery.cancel_scope.cancel()
