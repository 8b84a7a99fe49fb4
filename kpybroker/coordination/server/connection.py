"""One client's connection, without I/O: bytes in. What goes out is in the queue of its `Client`.

Its first frame is a ConnectRequest, or its first four bytes are a word such as `srvr`, whose reply is text.
After that each frame is a request, performed at once and in order. What is against the protocol is a `ClientError`,
after which the connection is to be closed.
"""

from __future__ import annotations

from collections.abc import Callable

from kpybroker.coordination.server import four_letter_words, responses
from kpybroker.coordination.server.client import Client
from kpybroker.coordination.server.codes import ErrorCode
from kpybroker.coordination.server.jute import JuteError
from kpybroker.coordination.server.perform import Outcome, perform
from kpybroker.coordination.server.requests import Auth, CloseSession, Ping, Request, decode_connect, decode_request
from kpybroker.coordination.server.service import Service
from kpybroker.coordination.server.sessions import Session

_NO_PASSWORD = bytes(16)


class ClientError(Exception):
    """What a client did that ends its connection, for the log."""


class Connection:
    """`wake` and `on_abort` are those of its `Client`."""

    def __init__(
        self, service: Service, address: tuple[str, int], wake: Callable[[], None], on_abort: Callable[[], None]
    ) -> None:
        self.client = Client(service, address, wake, on_abort)
        self._service = service
        self._input = bytearray()

    def receive(self, data: bytes) -> None:
        """Add bytes that have arrived; `step` performs the requests in them."""
        self._input += data

    def step(self) -> bool:
        """Perform the next request; False if it has not arrived yet. Raises ClientError."""
        if len(self._input) < 4 or self.client.is_ending:
            return False
        if self.client.session is None and self._four_letters():
            return False
        size = int.from_bytes(self._input[:4], "big", signed=True)
        if not 0 <= size <= self._service.limits.frame_bytes_max:
            first = bytes(self._input[:4])
            shown = f" ({first.decode()!r} as text)" if first.isascii() and first.decode().isprintable() else ""
            most = self._service.limits.frame_bytes_max
            raise ClientError(f"a message of {size} bytes{shown}, where jute.maxbuffer is {most}")
        if self.client.is_stranger and size > self._service.limits.strangers_frame_bytes_max:
            raise ClientError(f"a message of {size} bytes from a client that is not known yet")
        if len(self._input) < 4 + size:
            return False
        frame = bytes(self._input[4 : 4 + size])
        del self._input[: 4 + size]
        self.client.note_received()
        try:
            if self.client.session is None:
                self._connect(frame)
            else:
                self._perform(self.client.session, decode_request(frame))
        except JuteError as error:
            raise ClientError(f"no message of ZooKeeper's protocol: {error}") from error
        if self.client.is_stranger and not self._service.settle(self.client):
            self.client.abort()
        return True

    def _four_letters(self) -> bool:
        """Reply to a word; False if it is none."""
        text = four_letter_words.reply(bytes(self._input[:4]), self._service, self.client)
        if text is None:
            return False
        self.client.note_received()
        self.client.queue(self._service.committed_zxid, text.encode())
        self.client.is_ending = True
        return True

    def _connect(self, frame: bytes) -> None:
        connect, sessions, now = decode_connect(frame), self._service.sessions, self._service.now()
        if connect.session_id == 0:
            session = sessions.open(connect.timeout_ms, now)
            if session is None:
                raise ClientError(f"there are {len(sessions)} sessions")
        else:
            session = sessions.resume(connect.session_id, connect.password, connect.timeout_ms, now)
        zxid = self._service.store.changed_zxid
        if session is None:
            self.client.queue(zxid, responses.connected(0, 0, _NO_PASSWORD, is_old=connect.is_old))
            self.client.is_ending = True
            return
        self._service.attach(self.client, session)
        self.client.session = session
        response = responses.connected(session.timeout_ms, session.id, session.password, is_old=connect.is_old)
        self.client.queue(zxid, response)

    def _perform(self, session: Session, request: Request) -> None:
        service, arrived = self._service, self._service.now()
        session.touch(arrived)
        if service.watches.count(self.client) > service.limits.watches_max:
            raise ClientError(f"more than {service.limits.watches_max} watches")
        if service.admits(self.client) or isinstance(request.body, Auth | Ping | CloseSession):
            outcome = perform(request, service, self.client, session)
        else:
            outcome = Outcome(ErrorCode.NO_AUTH)
        zxid = service.store.changed_zxid
        # pings do not count as requests
        at = None if isinstance(request.body, Ping) else arrived
        self.client.queue(zxid, responses.reply(request.xid, zxid, outcome.error, outcome.body), at)
        if outcome.closes or isinstance(request.body, CloseSession):
            self.client.is_ending = True
