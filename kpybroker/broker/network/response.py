"""The response to one request, ready to be sent."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Literal

from kpybroker.broker.loop.steps import Pending, Steps
from kpybroker.broker.network.sending import BUFFERS, Part


class Response:
    """What is there at once, where a `Pending` may be instead: it is awaited, and is steps, as that is.

    `frame` is all of it where it is in memory and nothing follows, as of most; empty where there is none (acks=0).

    Otherwise `frame` is None: `parts` are sent in order, and then `on_sent` is called, whether or not that has failed.
    The first part has bytes; others may be slices of files, which `on_sent` releases.
    """

    __slots__ = ("frame", "on_sent", "parts")

    is_pending: ClassVar[Literal[False]] = False

    def __init__(
        self, frame: bytes | None, parts: Sequence[Part] = (), on_sent: Sequence[Callable[[], None]] = ()
    ) -> None:
        self.frame = frame
        self.parts = parts
        self.on_sent = on_sent

    def __await__(self) -> Generator[Any, Any, Response]:
        return self
        yield

    def as_steps(self) -> Steps[Response]:
        """As of a `Pending`: the steps end at once."""
        return self
        yield

    @property
    def all_parts(self) -> Sequence[Part]:
        """The parts, also where there is only the frame."""
        return self.parts if self.frame is None else (self.frame,)

    def read(self) -> bytes:
        """The whole frame; slices of files may have to wait for the disk."""
        if self.frame is not None:
            return self.frame
        return b"".join(part if isinstance(part, BUFFERS) else part.read() for part in self.parts)

    def sent(self) -> None:
        """It is sent, or never will be."""
        for callback in self.on_sent:
            callback()


NO_RESPONSE = Response(b"")
"""To a request that gets none."""


def steps_of(respond: Callable[[], Response | Pending[Response]]) -> Steps[Response]:
    """What `respond` returns, as steps. The first of them calls it."""
    steps = respond().as_steps()
    del respond  # and the frame that it may hold
    return (yield from steps)
