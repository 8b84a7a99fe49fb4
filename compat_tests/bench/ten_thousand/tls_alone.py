"""What a connection over TLS holds without a broker: Python's `SSLObject` and its two buffers, after the handshake.

python -m compat_tests.bench.ten_thousand.tls_alone server.pem ca.pem 10000     # KB of one
"""

from __future__ import annotations

import gc
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

WARM = 100
FLIGHTS = 4
REQUEST, RESPONSE = bytes(50), bytes(500)


class Side:
    """The server's or the client's end of a connection in memory."""

    def __init__(self, context: ssl.SSLContext, name: str | None) -> None:
        self.received, self.sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.received, self.sent, server_side=name is None, server_hostname=name)


def connection(server_context: ssl.SSLContext, client_context: ssl.SSLContext) -> Side:
    """The server's side of one that has served a request; its client is forgotten."""
    server, client = Side(server_context, None), Side(client_context, "127.0.0.1")
    for _ in range(FLIGHTS):
        for side, other in ((client, server), (server, client)):
            with suppress(ssl.SSLWantReadError):
                side.tls.do_handshake()
            other.received.write(side.sent.read())
    client.tls.write(REQUEST)
    server.received.write(client.sent.read())
    assert server.tls.read(len(REQUEST)) == REQUEST
    server.tls.write(RESPONSE)
    assert server.sent.read()
    return server


def resident_kb() -> int:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def main(arguments: Sequence[str]) -> None:
    """Print the KB of one connection, of so many."""
    pem, authority, count = arguments
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(pem)
    client_context = ssl.create_default_context(cafile=authority)
    held = [connection(server_context, client_context) for _ in range(WARM)]
    gc.collect()
    before = resident_kb()
    held += [connection(server_context, client_context) for _ in range(int(count))]
    gc.collect()
    print((resident_kb() - before) / int(count))


if __name__ == "__main__":
    main(sys.argv[1:])
