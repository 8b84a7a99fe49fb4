"""A connection without a socket, and the ways into each state of its `Serving`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pytest

from kpybroker.broker.loop.steps import Steps, Wait, pending, run_steps
from kpybroker.broker.network.frames import FrameReader
from kpybroker.broker.network.request_memory import ReceiveBuffers, RequestMemory
from kpybroker.broker.network.response import Response
from kpybroker.broker.network.sending import Progress
from kpybroker.broker.network.transport import Stream
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.serving import (
    CLOSED,
    MUTED,
    READING,
    RESPONDING,
    SENDING,
    SUSPENDED,
    Serving,
    State,
)
from tests.support.network.echo_server import framed

SMALL = 50
DEADLINE = 7.0


class Cold(NamedTuple):
    """A slice of a file that must be read from the disk."""

    content: bytes

    @property
    def size(self) -> int:
        return len(self.content)


class Out:
    """A response on its way out, as far as its client takes it."""

    def __init__(self, stream: Wire, parts: list[Any]) -> None:
        self.stream = stream
        self.parts = list(parts)

    def resume(self) -> Progress:
        while self.parts:
            if isinstance(self.parts[0], Cold):
                return Progress.COLD
            sent = self.stream.send_now(self.parts[0])
            self.parts[0] = self.parts[0][sent:]
            if self.parts[0]:
                return Progress.FULL
            del self.parts[0]
        return Progress.SENT

    def finish_now(self) -> None:
        """What the task does, without its waits."""
        self.stream.room = 10**9
        self.parts = [part.content if isinstance(part, Cold) else part for part in self.parts]
        assert self.resume() is Progress.SENT


class Wire:
    """A stream that notes what it is asked. `room` bytes can be sent before the client reads."""

    def __init__(self) -> None:
        self.incoming = bytearray()
        self.has_ended = False
        self.room = 10**9
        self.sent = bytearray()
        self.asked: list[str] = []

    def receive_now(self, buffer: memoryview) -> int | None:
        count = len(self.incoming)
        if not count:
            return 0 if self.has_ended else None
        buffer[:count] = self.incoming
        self.incoming.clear()
        return count

    def send_now(self, data: Any) -> int:
        count = min(len(data), self.room)
        self.sent += data[:count]
        self.room -= count
        return count

    def read_now(self, parts: list[Any]) -> bytes | None:
        if any(isinstance(part, Cold) for part in parts) or sum(map(len, parts)) > SMALL:
            return None
        return b"".join(parts)

    def begin_sending(self, parts: list[Any]) -> Out:
        return Out(self, parts)

    def has_unread(self, more_than: int = 0) -> bool:
        return len(self.incoming) > more_than

    def mute(self, _: object) -> None:
        self.asked.append("mute")

    def heed_end(self, _: object) -> None:
        self.asked.append("heed_end")

    def poke(self) -> None:
        self.asked.append("poke")

    def want_room(self) -> None:
        self.asked.append("want_room")

    def want_data(self) -> None:
        self.asked.append("want_data")

    def ignore_end(self) -> None:
        self.asked.append("ignore_end")


class Client(PlainConnectionInfo):
    """A connection whose task does nothing, and the client at its other end."""

    __slots__ = ("asked", "respond_now", "serving", "waits", "wire")

    def __init__(self, *, is_polled: bool = True) -> None:
        super().__init__()
        self.wire = Wire()
        self.stream = cast(Stream, self.wire)
        self.asked = self.wire.asked
        self.respond_now: Any = self._respond_now
        self.waits: list[Wait] = []
        memory = RequestMemory(-1)
        frames = FrameReader(self.stream, ReceiveBuffers(), 1000, memory)
        self.serving = Serving(cast(Any, self), frames, memory, 0.0, is_polled=is_polled)

    def sends(self, *words: bytes) -> None:
        for word in words:
            self.wire.incoming += framed(word)

    def _respond_now(self, frame: bytearray | memoryview, _: object) -> Any:
        word = bytes(frame)
        if word.startswith(b"now"):
            return Response(framed(word))
        if word.startswith(b"wait"):
            return run_steps(self._in_steps(word))
        if word.startswith(b"late"):
            return pending(self._late(word))
        if word.startswith(b"task"):
            return pending(self._in_task(word))
        return self._in_parts(word)

    def _in_parts(self, word: bytes) -> Response:
        """ "big" is more than is sent at once, "cold" is on the disk, "mute" and "bigmute" mute the connection."""
        on_sent = [lambda: self.asked.append("on_sent")]
        if b"mute" in word:
            on_sent.append(lambda: self.serving.mute(DEADLINE))
        parts: list[Any] = [len(word).to_bytes(4, "big"), Cold(word) if word.startswith(b"cold") else word]
        return Response(None, parts, on_sent)

    def _in_steps(self, word: bytes) -> Steps[Any]:
        wait = Wait(DEADLINE)
        self.waits.append(wait)
        try:
            yield wait
        finally:
            self.asked.append("resumed" if wait.is_over else "dropped")
        return self._in_parts(word)

    async def _in_task(self, word: bytes) -> Any:
        return self._in_parts(word)

    async def _late(self, word: bytes) -> Any:
        return Response(framed(word))

    # --- what `Served` asks of the task

    def wake_at(self, deadline: float) -> None:
        self.asked.append(f"wake_at {deadline:g}")

    def end(self) -> None:
        self.asked.append("end")

    def end_unless_it_stays(self) -> None:
        self.asked.append("end_unless_it_stays")

    def stay(self) -> None:
        self.asked.append("stay")

    # --- its task, step by step

    def ends(self) -> None:
        if self.serving.state is not CLOSED:
            self.serving.on_close()

    def awaits(self) -> None:
        """The task awaits what is pending, which does not wait here."""
        with pytest.raises(StopIteration) as finished:
            self.serving.take_pending().advance().send(None)
        self.serving.on_response(finished.value.value)

    def finishes(self) -> None:
        """The task sends the rest."""
        cast(Out, self.serving.unsent).finish_now()
        self.serving.on_sent()


BIG = b"big" + bytes(100)


def reading(_: Client) -> None:
    """As it is made."""


def responding(client: Client) -> None:
    client.sends(b"task")
    assert not client.serving.on_ready()


def suspended(client: Client) -> None:
    client.sends(b"wait")
    assert client.serving.on_ready()


def sending(client: Client) -> None:
    """A large response."""
    client.wire.room = 10
    client.sends(BIG)
    assert client.serving.on_ready()


def sending_rest(word: bytes, room: int = 10**9) -> Callable[[Client], None]:
    """A small response of which the client takes only a part; another request is behind it. Then there is `room`."""

    def make(client: Client) -> None:
        client.wire.room = 5
        client.sends(b"now1", word)
        assert client.serving.on_ready()
        client.wire.room = room

    return make


def muted(client: Client) -> None:
    client.sends(b"mute")
    assert client.serving.on_ready()


def closed(client: Client) -> None:
    client.serving.on_close()


MADE: dict[State, Callable[[Client], None]] = {
    READING: reading,
    RESPONDING: responding,
    SUSPENDED: suspended,
    SENDING: sending,
    MUTED: muted,
    CLOSED: closed,
}


def ready(client: Client, *words: bytes, ended: bool = False, room: int = 10**9) -> bool:
    client.sends(*words)
    client.wire.has_ended = ended
    client.wire.room = room
    return client.serving.on_ready()


def requested(client: Client, word: bytes, room: int = 10**9) -> None:
    """The task has received it."""
    client.wire.room = room
    client.serving.on_request(bytearray(word))


def responded(client: Client, word: bytes, room: int = 10**9) -> None:
    """The task has awaited what leads to the response to this word."""
    client.serving.take_pending().close()
    client.wire.room = room
    client.serving.on_response(client.respond_now(word, client))


def behind(word: bytes) -> Callable[[Client], None]:
    """In the task because of this request."""

    def make(client: Client) -> None:
        assert not ready(client, word)

    return make


def wait_is_over(client: Client) -> bool:
    client.waits[0].end()
    return client.serving.on_ready()


def left(client: Client, *words: bytes, was_reset: bool = False) -> None:
    client.sends(*words)
    client.serving.on_left(was_reset)
