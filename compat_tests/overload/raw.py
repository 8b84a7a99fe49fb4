"""A client that may send anything: frames as bytes, and requests as messages whose responses are decoded."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header

TIMEOUT_S = 60.0


def api_key(request: Any) -> ApiKey:
    name = type(request).__name__.removesuffix("Request")
    return next(key for key, info in API_INFO.items() if info.name == name)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def frame_of(request: Any, version: int) -> bytes:
    header = encode_request_header(RequestHeader(api_key(request), version, 7, "raw"))
    return framed(header + encode(request, version))


class Raw:
    """One connection."""

    def __init__(
        self,
        address: tuple[str, int],
        timeout_s: float = TIMEOUT_S,
        context: ssl.SSLContext | None = None,
        source: tuple[str, int] | None = None,
    ) -> None:
        """Over TLS with a `context`; from the address `source`."""
        self.socket = socket.create_connection(address, timeout_s, source)
        if context is not None:
            try:
                self.socket = context.wrap_socket(self.socket, server_hostname=address[0])
            except BaseException:
                self.socket.close()
                raise

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, request: Any, version: int) -> Any:
        self.send(frame_of(request, version))
        return self.response(api_key(request), version)

    def response(self, key: ApiKey, version: int) -> Any:
        frame = self.receive_exactly(int.from_bytes(self.receive_exactly(4), "big"))
        _, position = parse_response_header(frame, key, version)
        return decode(API_INFO[key].response_class(), frame[position:], version)

    def receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise EOFError(f"closed after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def is_closed(self) -> bool:
        """Read what there is until the broker closes the connection; False if it has not by the timeout."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True
