"""TLS above another stream: OpenSSL reads and writes memory, and the stream below carries what it made.

A `TlsStream` is a `transport.Stream`, so nothing above knows that it is encrypted. Call `handshake` first.

Rules:
- One buffer for ciphertext (`scratch`) serves all streams of a listener: it is emptied without a checkpoint between.
- OpenSSL's buffers keep the size they once had, so they are fed and emptied in pieces of about one record. That is what
  bounds the memory of an idle connection.
- What OpenSSL has decrypted and no one has read makes no socket readable: `watch` pokes the stream below then.
- What is encrypted has to leave in order. `send_now` that could not send a piece to its end reports that piece as
  unsent, and skips it when the caller sends the rest, which the caller always does next.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, cast

import trio

from kpybroker.broker.loop.alone import OnLeft, OnReady
from kpybroker.broker.network.handshakes import HandshakeFailed, reason_of
from kpybroker.broker.network.other_protocols import OtherProtocolError, instead_of_tls
from kpybroker.broker.network.sending import Buffer, Part
from kpybroker.broker.network.tls_sending import TlsSending
from kpybroker.broker.network.transport import Stream

RECORD_BYTES = 16 * 1024
"""The most plaintext that one TLS record carries."""
FED_BYTES = RECORD_BYTES + 512
"""Ciphertext that OpenSSL's buffer receives at once: a record with its header and padding."""
SCRATCH_BYTES = 64 * 1024
STEP_BYTES = 64 * 1024
"""Plaintext that is encrypted before the stream below is given the result."""
HANDSHAKE_BYTES_MAX = 128 * 1024
"""What a peer may send before the handshake is complete; OpenSSL accepts certificate chains up to 100 KB."""
CLOSE_NOTIFY_BYTES_MAX = 100
"""Ciphertext that says that the peer sends nothing more is no longer than this, and any request is longer."""


def new_scratch() -> memoryview:
    """The buffer that the streams of one listener, or of one client, receive ciphertext into."""
    return memoryview(bytearray(SCRATCH_BYTES))


class TlsStream:
    """The server's end of a connection, or with `server_name` the client's."""

    __slots__ = (
        "_ahead",
        "_has_ended",
        "_has_more",
        "_in",
        "_inner",
        "_is_muted",
        "_is_shaken",
        "_on_ready",
        "_out",
        "_read",
        "_scratch",
        "_ssl",
        "_unsent",
        "_wants_room",
        "local_address",
        "remote_address",
    )

    def __init__(
        self, inner: Stream, context: ssl.SSLContext, scratch: memoryview, server_name: str | None = None
    ) -> None:
        self._inner = inner
        self._scratch = scratch
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._in, self._out, server_side=server_name is None, server_hostname=server_name or None
        )
        # Into a buffer, which typeshed does not know; it returns how many bytes.
        self._read: Callable[[int, memoryview], int] = cast(Any, self._ssl.read)
        self.local_address, self.remote_address = inner.local_address, inner.remote_address
        self._unsent: Buffer = b""  # ciphertext
        self._ahead = 0  # plaintext in it, at its end, that the caller will send again
        self._has_more = False  # there may be plaintext although the socket is not readable
        self._has_ended = False  # the peer sends nothing more
        self._is_shaken = False
        self._is_muted = False
        self._wants_room = False
        self._on_ready: OnReady = _nothing

    # --- the handshake

    async def handshake(self, slot: trio.Lock) -> None:
        """Agree on keys. `slot` is held for each step, so that a crowd of clients lets others be served in between.

        Raises HandshakeFailed, OtherProtocolError for a client that speaks no TLS, OSError.
        """
        received_total = 0
        while not await self._step(slot):
            received = await self._inner.receive_into(self._scratch[:FED_BYTES])
            if not received:
                raise HandshakeFailed("the peer closed the connection during the TLS handshake")
            if received_total == 0 and self._scratch[0] != _HANDSHAKE_RECORD and self._ssl.server_side:
                raise OtherProtocolError(instead_of_tls(bytes(self._scratch[: min(received, 4)])))
            received_total += received
            if received_total > HANDSHAKE_BYTES_MAX:
                raise HandshakeFailed(f"more than {HANDSHAKE_BYTES_MAX} bytes in a TLS handshake")
            self._in.write(self._scratch[:received])
        self._is_shaken = True
        self._has_more = self._in.pending > 0

    async def _step(self, slot: trio.Lock) -> bool:
        """Whether the handshake is complete on this side."""
        async with slot:
            failure: ssl.SSLError | None = None
            is_complete = False
            try:
                self._ssl.do_handshake()
                is_complete = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                failure = error
            await trio.lowlevel.checkpoint()
        self._unsent = self._out.read()
        if failure is not None:
            with suppress(OSError):
                await self.flush()  # the alert
            raise HandshakeFailed(reason_of(failure)) from failure
        await self.flush()
        return is_complete

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate as DER; None where it has shown none."""
        return self._ssl.getpeercert(binary_form=True)

    @property
    def protocol(self) -> tuple[str, str]:
        """The version and the cipher suite of this connection, in OpenSSL's names."""
        cipher = self._ssl.cipher()
        return str(self._ssl.version()), cipher[0] if cipher else ""

    # --- receiving

    def receive_now(self, buffer: memoryview) -> int | None:
        """As `Stream.receive_now`. Raises OSError for data that is not what the peer sent."""
        if (count := self._drain(buffer)) or self._has_ended:
            return count
        while True:
            received = self._inner.receive_now(self._room_for(buffer))
            if received is None:
                return None
            if (count := self._feed(received, buffer)) or self._has_ended:
                return count

    async def receive_into(self, buffer: memoryview) -> int:
        """As `Stream.receive_into`."""
        while True:
            if (count := self.receive_now(buffer)) is not None:
                return count
            received = await self._inner.receive_into(self._room_for(buffer))
            if (count := self._feed(received, buffer)) or self._has_ended:
                return count

    def _room_for(self, buffer: memoryview) -> memoryview:
        """Not much more ciphertext than the buffer has room for when it is decrypted."""
        return self._scratch[: max(len(buffer), FED_BYTES)]

    def _feed(self, received: int, buffer: memoryview) -> int:
        """Decrypt what was received into `scratch`; how many bytes of it are in the buffer now."""
        if not received:
            self._has_ended = True
            return 0
        filled = 0
        for start in range(0, received, FED_BYTES):
            self._in.write(self._scratch[start : min(start + FED_BYTES, received)])
            filled += self._drain(buffer[filled:])
        return filled

    def _drain(self, buffer: memoryview) -> int:
        """Move plaintext into the buffer."""
        filled, room = 0, len(buffer)
        may_have_more = self._in.pending > 0 or self._ssl.pending() > 0
        while may_have_more and filled < room:
            try:
                count = self._read(room - filled, buffer[filled:])
            except ssl.SSLWantReadError:
                may_have_more = False
                break
            except ssl.SSLZeroReturnError:
                count = 0
            if not count:
                self._has_ended = True
                may_have_more = False
                break
            filled += count
            may_have_more = self._in.pending > 0 or self._ssl.pending() > 0
        # The end is seen by the next call: where bytes arrived with it, the socket may stay silent.
        self._has_more = may_have_more or (self._has_ended and filled > 0)
        if self._out.pending:  # new keys, for example
            self._unsent = bytes(self._unsent) + self._out.read()
            self.flush_now()
        return filled

    # --- waiting

    async def watch(self, on_ready: OnReady) -> None:
        """As `Stream.watch`."""
        self._on_ready = on_ready
        self._is_muted = False
        if self._has_more and not self._wants_room:
            self._inner.poke()
        try:
            await self._inner.watch(self._serve)
        finally:
            self._on_ready = _nothing

    def _serve(self) -> bool:
        if not self._on_ready():
            return False
        if self._has_more and not self._is_muted and not self._wants_room:
            self._inner.poke()
        return True

    def want_room(self) -> None:
        """As `Stream.want_room`."""
        self._wants_room = True
        self._inner.want_room()

    def want_data(self) -> None:
        """As `Stream.want_data`."""
        self._wants_room = False
        self._inner.want_data()

    def mute(self, on_left: OnLeft) -> None:
        """As `Stream.mute`."""
        self._is_muted = True
        self._inner.mute(on_left)

    def poke(self) -> None:
        """As `Stream.poke`."""
        self._is_muted = False
        self._inner.poke()

    def heed_end(self, on_left: OnLeft) -> None:
        """As `Stream.heed_end`; it is the end below that counts."""
        self._inner.heed_end(on_left)

    def ignore_end(self) -> None:
        """As `Stream.ignore_end`."""
        self._inner.ignore_end()

    def has_unread(self, more_than: int = 0) -> bool:
        """As `Stream.has_unread`."""
        return self._has_more or self._inner.has_unread(CLOSE_NOTIFY_BYTES_MAX + more_than)

    def belongs_to(self, client: Hashable) -> None:
        """As `Stream.belongs_to`."""
        self._inner.belongs_to(client)

    # --- sending

    def flush_now(self) -> bool:
        """Send ciphertext as far as that takes no waiting; whether all of it is sent. Raises OSError."""
        if self._unsent:
            sent = self._inner.send_now(self._unsent)
            self._unsent = memoryview(self._unsent)[sent:] if sent < len(self._unsent) else b""
        return not self._unsent

    async def flush(self) -> None:
        """Send all ciphertext that is made. Raises OSError."""
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            await self._inner.send_parts([unsent])

    def encrypt(self, data: Buffer) -> None:
        """Make ciphertext of the data; nothing of it is sent yet."""
        assert not self._unsent
        view = memoryview(data)
        records = []
        for start in range(0, len(view), RECORD_BYTES):
            self._ssl.write(view[start : start + RECORD_BYTES])
            records.append(self._out.read())
        self._unsent = records[0] if len(records) == 1 else b"".join(records)

    def take_ahead(self) -> int:
        """How many bytes of what is sent next are encrypted already. The caller skips them."""
        ahead, self._ahead = self._ahead, 0
        return ahead

    def send_now(self, data: Buffer) -> int:
        """As `Stream.send_now`; the bytes it reports as unsent are what is sent next."""
        if not self.flush_now():
            return 0
        view, sent = memoryview(data), self.take_ahead()
        while sent < len(view):
            piece = view[sent : sent + STEP_BYTES]
            self.encrypt(piece)
            if not self.flush_now():
                self._ahead = len(piece)
                break
            sent += len(piece)
        return sent

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        """As `Stream.read_now`."""
        return self._inner.read_now(parts)

    async def send_parts(self, parts: Sequence[Part]) -> None:
        """As `Stream.send_parts`."""
        await self.begin_sending(parts).finish()

    def begin_sending(self, parts: Sequence[Part]) -> TlsSending:
        """As `Stream.begin_sending`."""
        return TlsSending(self, parts)

    # --- the end

    def reset_on_close(self) -> None:
        """As `Stream.reset_on_close`; the peer gets no TLS alert either."""
        self._is_shaken = False
        self._inner.reset_on_close()

    def close(self) -> None:
        """As `Stream.close`. The peer is notified (``close_notify``) if that takes no waiting."""
        if self._is_shaken and not self._unsent:
            self._is_shaken = False
            with suppress(OSError, ValueError):
                self._ssl.unwrap()
            with suppress(OSError, trio.ClosedResourceError):
                self._inner.send_now(self._out.read())
        self._inner.close()


_HANDSHAKE_RECORD = 22


def _nothing() -> bool:
    return True
