"""Any transport with TLS above its streams: what holds for connections holds for encrypted ones."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import trio

from kpybroker.broker.network.handshakes import HandshakeFailed
from kpybroker.broker.network.sending import Part
from kpybroker.broker.network.tls_stream import TlsStream, new_scratch
from kpybroker.broker.network.transport import Listener, Stream, Transport
from tests.support.network.certificates import Authority


@cache
def authority() -> Authority:
    """One authority for all tests of this process, with certificates for `server` and `client`."""
    made = Authority(Path(mkdtemp(prefix="certificates-")))
    for name in ("server", "client"):
        made.issue(name, own_key=True)
    return made


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # as a listener's; with tickets a handshake would end only when the client reads
    context.load_cert_chain(authority().directory / "server.pem")
    return context


def client_context(name: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority().certificate))
    if name is not None:
        context.load_cert_chain(authority().directory / f"{name}.pem")
    return context


class EchoTls:
    """What a listener of the configuration has as `ListenerTls`."""

    def __init__(self) -> None:
        self.context = server_context()
        self.scratch = new_scratch()
        self.slot = trio.Lock()

    def wrap(self, stream: Stream) -> TlsStream:
        return TlsStream(stream, self.context, self.scratch)

    async def shake_hands(self, stream: Stream) -> None:
        assert isinstance(stream, TlsStream)
        await stream.handshake(self.slot)


class ShakesLater(TlsStream):
    """A client's stream that shakes hands when it is first used: a server may accept it much later, or never."""

    def __init__(self, inner: Stream, host: str) -> None:
        super().__init__(inner, client_context(), new_scratch(), host)
        self.once = trio.Lock()
        self.has_shaken = False

    async def shake(self) -> None:
        async with self.once:
            if not self.has_shaken:
                try:
                    await self.handshake(trio.Lock())
                except HandshakeFailed as error:
                    raise OSError(str(error)) from error
                self.has_shaken = True

    async def send_parts(self, parts: Sequence[Part]) -> None:
        await self.shake()
        await super().send_parts(parts)

    async def receive_into(self, buffer: memoryview) -> int:
        await self.shake()
        return await super().receive_into(buffer)


class TlsTransport:
    """Listeners of `inner`, whose server must use `tls`, and clients of them."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.tls = EchoTls()

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        return self.inner.listen(host, port, backlog)

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        return ShakesLater(await self.inner.connect(host, port, timeout_s), host)
