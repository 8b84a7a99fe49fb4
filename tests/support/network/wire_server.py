"""A server that responds as a test says: Kafka's requests by API, or any bytes with fixed ones."""

from __future__ import annotations

import contextlib
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import encode_response_header, parse_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsResponse

Respond = Callable[[Any, int], Any]
"""From a request and its version the response: a message, bytes as they are, or None to close the connection."""


def versions(ranges: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    """The response to ApiVersions with these APIs."""
    apis = [ApiVersionsResponse.ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in ranges.items()]
    return ApiVersionsResponse(api_keys=apis)


@contextlib.contextmanager
def kafka_server(
    responses: Mapping[ApiKey, Respond], context: ssl.SSLContext | None = None
) -> Iterator[tuple[str, int]]:
    """Serves `responses`, and ApiVersions with their APIs in all our versions if it is not among them.

    With a `context`, over TLS.
    """
    ranges = {int(key): API_INFO[key].valid_versions for key in (*responses, ApiKey.API_VERSIONS)}
    served = {ApiKey.API_VERSIONS: lambda request, version: versions(ranges), **responses}

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while size := self.rfile.read(4):
                frame = self.rfile.read(int.from_bytes(size, "big"))
                header = parse_request_header(frame)
                key = ApiKey(header.api_key)
                request = decode(API_INFO[key].request_class(), frame[header.body_offset :], header.api_version)
                response = served[key](request, header.api_version)
                if response is None:
                    return
                if not isinstance(response, bytes):
                    head = encode_response_header(key, header.api_version, header.correlation_id)
                    body = head + encode(response, header.api_version)
                    response = len(body).to_bytes(4, "big") + body
                self.wfile.write(response)

    with _serving(Handler, context) as address:
        yield address


@contextlib.contextmanager
def bytes_server(respond: Callable[[bytes], bytes | None]) -> Iterator[tuple[str, int]]:
    """Responds to the first bytes of a connection and closes it; with None, it stays open and silent."""
    stop = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            said = respond(self.request.recv(4096))
            if said is None:
                stop.wait()
            else:
                self.request.sendall(said)

    with _serving(Handler) as address:
        try:
            yield address
        finally:
            stop.set()


@contextlib.contextmanager
def _serving(
    handler: type[socketserver.BaseRequestHandler], context: ssl.SSLContext | None = None
) -> Iterator[tuple[str, int]]:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            if context is not None:
                request = context.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is no error here."""

    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield "127.0.0.1", server.server_address[1]
        finally:
            server.shutdown()
