"""A gate between the brokers and everybody, which can hold back the end of a copier's transactions, and records.

A client that has asked for the end of a transaction has written its records and offsets, and waits. So a copier is
caught within a transaction, and with all of it in the log, however fast or slow it is; and its request for the end
comes late, when the gate is opened again. In the same way a writer is caught after a number of its requests. A broker
behind the gate says that its address is there (`advertised.listeners`).
"""

from __future__ import annotations

import select
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode
from kpybroker.wire.headers import parse_request_header
from kpybroker.wire.messages.end_txn import EndTxnRequest

CONNECT_S = 10.0
PIECE = 1 << 16


class Gate:
    """Any number of doors, each with a port of its own that leads to a broker's."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        """Requests for the end of a transaction that were held or swallowed, by transactional id; ever."""
        self._closed: dict[str, threading.Event] = {}
        self._swallowing: set[str] = set()
        self._produced: _Limit | None = None
        self._listeners: list[socket.socket] = []

    def lead(self, door: int, port: int) -> None:
        """From the port `door` to a broker's."""
        self._listeners.append(socket.create_server(("127.0.0.1", door)))
        threading.Thread(target=self._accept, args=(self._listeners[-1], port), daemon=True).start()

    @contextmanager
    def closed(self, transactional_id: str) -> Iterator[None]:
        """No transaction of this id ends; what is held goes on afterwards."""
        opened = self._closed[transactional_id] = threading.Event()
        try:
            yield
        finally:
            del self._closed[transactional_id]
            opened.set()

    @contextmanager
    def swallowing(self, prefix: str) -> Iterator[None]:
        """No transaction ends whose id begins so: the request is lost, and its client waits for a response."""
        self._swallowing.add(prefix)
        try:
            yield
        finally:
            self._swallowing.discard(prefix)

    @contextmanager
    def producing(self, requests: int) -> Iterator[None]:
        """So many Produce requests go through; what comes after them goes on afterwards."""
        limit = self._produced = _Limit(requests)
        try:
            yield
        finally:
            self._produced = None
            limit.opened.set()

    def close(self) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)  # closing alone does not wake the thread that accepts
            listener.close()

    def _accept(self, listener: socket.socket, port: int) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client, port), daemon=True).start()

    def _serve(self, client: socket.socket, port: int) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", port), CONNECT_S) as broker:
            for end in (client, broker):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_copy, args=(broker, client), daemon=True).start()
            try:
                with client.makefile("rb") as requests:
                    while frame := _frame(requests):
                        if self._lets_through(frame, client):
                            broker.sendall(frame)
            finally:
                _end(broker)

    def _lets_through(self, frame: bytes, client: socket.socket) -> bool:
        """Whether it goes on to the broker; returns when it does."""
        if self._produced is not None and int.from_bytes(frame[4:6], "big") == ApiKey.PRODUCE:
            self._produced.wait()
        if not (self._closed or self._swallowing) or int.from_bytes(frame[4:6], "big") != ApiKey.END_TXN:
            return True
        header = parse_request_header(frame[4:])
        body = frame[4 + header.body_offset :]
        transactional_id = decode(EndTxnRequest, body, header.api_version).transactional_id
        opened = self._closed.get(transactional_id)
        is_swallowed = any(transactional_id.startswith(prefix) for prefix in list(self._swallowing))
        if (opened is not None or is_swallowed) and not _has_hung_up(client):
            self.held[transactional_id] += 1
            if opened is not None:
                opened.wait()
        return not is_swallowed


class _Limit:
    """So many may pass, and the others when it is opened."""

    def __init__(self, count: int) -> None:
        self.opened = threading.Event()
        self._free = threading.Semaphore(count)

    def wait(self) -> None:
        if not self._free.acquire(blocking=False):
            self.opened.wait()


def _frame(requests: BinaryIO) -> bytes:
    """The next one with its size, or nothing when there is none."""
    size = requests.read(4)
    return size + requests.read(int.from_bytes(size, "big"))


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    _end(target)


def _has_hung_up(client: socket.socket) -> bool:
    """Whether its process is dead, whatever of it is still to be read."""
    poll = select.poll()
    poll.register(client, select.POLLRDHUP)
    return bool(poll.poll(0))


def _end(connection: socket.socket) -> None:
    """For both directions, and for a caller that waits in another thread."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
