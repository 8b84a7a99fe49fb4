"""Where a Jolokia is: `HOST:PORT`, or an URL. And the login, which comes from a file, never from the command line."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from kpybroker.client.connect.errors import CommandError, keep_secret, usage

DEFAULT: Final = "127.0.0.1:9404"
PATH: Final = "/jolokia"
PORTS: Final = {"http": 80, "https": 443}
AUTH_BYTES_MAX: Final = 4096
EXAMPLE: Final = "give HOST:PORT, or an URL such as http://broker.example.com:8778/jolokia"


class Address(NamedTuple):
    """`path` begins with a slash and does not end with one."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def text(self) -> str:
        """As an URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def parse_address(text: str) -> Address:
    """Raises CommandError. An URL without a path is one of `/jolokia`."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise usage(f"{text!r} is no address", EXAMPLE)
    is_url = "://" in text
    try:
        parts = urlsplit(text if is_url else f"http://{text}")
        port = parts.port
    except ValueError:
        raise _no_address(text) from None
    if "@" in parts.netloc:  # not repeated here: it may be a password
        raise usage("the address has a user name in it", "write USER:PASSWORD into a file, and give --auth-file FILE")
    if parts.scheme not in PORTS or not parts.hostname or parts.query or parts.fragment:
        raise _no_address(text)
    if port is None and is_url:
        port = PORTS[parts.scheme]
    if not port:
        raise _no_address(text)
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/") or PATH)


def read_login(file: str | None) -> str | None:
    """The header `Authorization` for the `USER:PASSWORD` in a file. Raises CommandError."""
    if file is None:
        return None
    try:
        with Path(file).open("rb") as opened:
            login = opened.read(AUTH_BYTES_MAX).partition(b"\n")[0].rstrip(b"\r")
    except OSError as error:
        raise usage(f"--auth-file {file} cannot be read: {error.strerror or error}", "name a readable file") from None
    user, colon, password = login.partition(b":")
    if not colon or not user:
        raise usage(f"the first line of --auth-file {file} is not USER:PASSWORD", "write both into it, with a colon")
    keep_secret([password.decode(errors="replace")])
    return f"Basic {b64encode(login).decode()}"


def _no_address(text: str) -> CommandError:
    return usage(f"{text} is no address", EXAMPLE)
