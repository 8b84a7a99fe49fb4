"""Bearer tokens and their keys, and an HTTPS server of a JWKS document, or of tokens."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from joserfc import jwk, jws

from tests.support.network.certificates import Authority

Key = jwk.RSAKey | jwk.ECKey | jwk.OKPKey | jwk.OctKey


def encoded(values: Any) -> str:
    data = values if isinstance(values, bytes) else json.dumps(values).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsecured(**claims: Any) -> str:
    return f"{encoded({'alg': 'none'})}.{encoded(claims)}."


def rsa_key(key_id: str | None = "one", bits: int = 2048) -> jwk.RSAKey:
    return jwk.RSAKey.generate_key(bits, {"kid": key_id} if key_id else None, auto_kid=False)


@cache
def the_key() -> jwk.RSAKey:
    """One for all tests of this process, made by the first that needs it: it takes 0.15 s."""
    return rsa_key("one")


def signed(key: Key, claims: dict[str, Any], algorithm: str = "RS256", **header: Any) -> str:
    head = {"alg": algorithm, **({"kid": key.kid} if key.kid else {}), **header}
    return jws.serialize_compact(head, json.dumps(claims).encode(), key, algorithms=[algorithm])


def document(*keys: Key) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def message(token: str, authorization_id: str = "", **extensions: str) -> bytes:
    """The client's message."""
    authzid = f"a={authorization_id}" if authorization_id else ""
    more = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    return f"n,{authzid},\x01auth=Bearer {token}\x01{more}\x01".encode()


class JwksServer:
    """Serves `document` behind HTTPS at `url`; counts the requests. `status` other than 200: an error.

    `asked`: the credentials and the form of the last POST.
    """

    def __init__(self, document_: bytes, url: str, ca_file: Path) -> None:
        self.document = document_
        self.url = url
        self.ca_file = ca_file
        self.status = 200
        self.location: str | None = None
        self.requests = 0
        self.asked: tuple[str, str] | None = None


@contextmanager
def jwks_server(directory: Path, served: bytes, name: str = "localhost") -> Iterator[JwksServer]:
    """`name`: of the server's certificate."""
    authority = Authority(directory)
    pem = authority.issue(name, "127.0.0.9")[0]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests += 1
            self.send_response(state.status)
            if state.location is not None:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", str(len(state.document)))
            self.end_headers()
            self.wfile.write(state.document)

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            state.asked = (self.headers["Authorization"], form)
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    state = JwksServer(served, f"https://localhost:{server.server_address[1]}/keys", authority.certificate)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
