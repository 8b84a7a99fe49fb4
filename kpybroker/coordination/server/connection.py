"""One client's connection, without I/O: bytes in, and a queue of bytes out.

Its first frame is a ConnectRequest, or its first four bytes are a word such as `srvr`, which is answered in text.
After that each frame is a request, performed at once and in order. What is against the protocol is a `ClientError`,
after which the connection is to be closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kpybroker.coordination.server import four_letter_words, responses
from kpybroker.coordination.server.access import ClientAccess
from kpybroker.coordination.server.jute import JuteError
from kpybroker.coordination.server.perform import perform
from kpybroker.coordination.server.requests import CloseSession, Ping, Request, decode_connect, decode_request
from kpybroker.coordination.server.sessions import Session

if TYPE_CHECKING:
    from kpybroker.coordination.server.service import Service

EVENTS_UNSENT_FACTOR = 16
_NO_PASSWORD = bytes(16)


class ClientError(Exception):
    """What a client did that ends its connection, for the log."""


class Connection:
    """`wake` is called when something may be sent; `abort` when the connection is to be closed at once."""

    def __init__(
        self, service: Service, address: tuple[str, int], wake: Callable[[], None], abort: Callable[[], None]
    ) -> None:
        self.service = service
        self.address = address
        self.access = ClientAccess(address[0])
        self.session: Session | None = None
        self.received = self.sent = 0
        self.unsent_bytes = 0
        """Queued, and taken but not yet sent."""
        self.is_ending = False
        """Whether it is to be closed once everything is sent."""
        self.wake = wake
        self.abort = abort
        self._input = bytearray()
        self._output: deque[tuple[int, bytes, float | None]] = deque()  # zxid, frame, when its request arrived

    # --- out

    def queue(self, zxid: int, frame: bytes, arrived: float | None = None) -> None:
        """Send `frame` after all others, once `zxid` is committed."""
        if self.is_ending:
            return
        self._output.append((zxid, frame, arrived))
        self.unsent_bytes += len(frame)
        if self.unsent_bytes > EVENTS_UNSENT_FACTOR * self.service.limits.unsent_bytes_max and len(self._output) > 1:
            self.abort()  # it does not read its events
        elif zxid > self.service.committed_zxid:
            self.service.commit_soon()
        else:
            self.wake()

    def take(self) -> bytes:
        """Everything that may be sent now. `sent_bytes` is to be called when it is."""
        taken, service = [], self.service
        while self._output and self._output[0][0] <= service.committed_zxid:
            _, frame, arrived = self._output.popleft()
            taken.append(frame)
            self.sent += 1
            service.statistics.sent += 1
            if arrived is not None:
                service.statistics.note((service.now() - arrived) * 1000)
        return b"".join(taken)

    def sent_bytes(self, count: int) -> None:
        """Note that so much of what was taken is sent."""
        self.unsent_bytes -= count

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for a commit."""
        return bool(self._output) and self._output[-1][0] > self.service.committed_zxid

    @property
    def is_over(self) -> bool:
        """Whether everything is sent and nothing more will be."""
        return self.is_ending and not self._output

    @property
    def has_room(self) -> bool:
        """Whether more requests may be read."""
        return self.unsent_bytes <= self.service.limits.unsent_bytes_max

    # --- in

    def receive(self, data: bytes) -> None:
        """Add bytes that have arrived; `step` performs the requests in them."""
        self._input += data

    def step(self) -> bool:
        """Perform the next request; False if it has not arrived yet. Raises ClientError."""
        if len(self._input) < 4 or self.is_ending:
            return False
        if self.session is None and self._four_letters():
            return False
        size = int.from_bytes(self._input[:4], "big", signed=True)
        if not 0 <= size <= self.service.limits.frame_bytes_max:
            first = bytes(self._input[:4])
            shown = f" ({first.decode()!r} as text)" if first.isascii() and first.decode().isprintable() else ""
            most = self.service.limits.frame_bytes_max
            raise ClientError(f"a message of {size} bytes{shown}, where jute.maxbuffer is {most}")
        if len(self._input) < 4 + size:
            return False
        frame = bytes(self._input[4 : 4 + size])
        del self._input[: 4 + size]
        self._count()
        try:
            if self.session is None:
                self._connect(frame)
            else:
                self._perform(self.session, decode_request(frame))
        except JuteError as error:
            raise ClientError(f"no message of ZooKeeper's protocol: {error}") from error
        return True

    def _count(self) -> None:
        self.received += 1
        self.service.statistics.received += 1

    def _four_letters(self) -> bool:
        """Answer a word; False if it is none."""
        text = four_letter_words.answer(bytes(self._input[:4]), self.service, self)
        if text is None:
            return False
        self._count()
        self.queue(self.service.committed_zxid, text.encode())
        self.is_ending = True
        return True

    def _connect(self, frame: bytes) -> None:
        connect, sessions, now = decode_connect(frame), self.service.sessions, self.service.now()
        if connect.session_id == 0:
            session = sessions.open(connect.timeout_ms, now)
            if session is None:
                raise ClientError(f"there are {len(sessions)} sessions")
        else:
            session = sessions.resume(connect.session_id, connect.password, connect.timeout_ms, now)
        zxid = self.service.store.changed_zxid
        if session is None:
            self.queue(zxid, responses.connected(0, 0, _NO_PASSWORD, is_old=connect.is_old))
            self.is_ending = True
            return
        self.service.attach(self, session)
        self.session = session
        answer = responses.connected(session.timeout_ms, session.id, session.password, is_old=connect.is_old)
        self.queue(zxid, answer)

    def _perform(self, session: Session, request: Request) -> None:
        service, arrived = self.service, self.service.now()
        session.touch(arrived)
        if service.watches.count(self) > service.limits.watches_max:
            raise ClientError(f"more than {service.limits.watches_max} watches")
        outcome = perform(request, service, self, session)
        zxid = service.store.changed_zxid
        # pings do not count as requests
        at = None if isinstance(request.body, Ping) else arrived
        self.queue(zxid, responses.reply(request.xid, zxid, outcome.error, outcome.body), at)
        if outcome.closes or isinstance(request.body, CloseSession):
            self.is_ending = True
