"""`kpybroker ping`: does a broker respond? For health checks, and for scripts that wait until one is ready.

It sends ApiVersions 0, which every Kafka broker serves before authentication. Nothing but click is imported until the
command runs, and then only the codec: a container runs this every few seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

import click

from kpybroker.cli.exit_codes import EXIT_FAILED, fail
from kpybroker.cli.health.no_broker import NoBroker
from kpybroker.cli.param_types import CheckedCommand, Seconds

if TYPE_CHECKING:
    import socket

T = TypeVar("T")

DEFAULT_ADDRESS: Final = "127.0.0.1:9092"
RESPONSE_BYTES_MAX: Final = 64 * 1024
PAUSE_S: Final = 0.1
"""Between two attempts of `--wait`."""

EXIT_CODES: Final = """\b
Exit codes:
  0  the broker responds
  1  it does not
  2  a bad option or address
"""


@click.command(cls=CheckedCommand, epilog=EXIT_CODES)
@click.argument("address", metavar="[HOST:PORT]", required=False)
@click.option(
    "--command-config",
    "config_file",
    type=click.Path(),
    metavar="FILE",
    help="A client's .properties file: the listener has TLS, or the login is to be tried too.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.001),
    default=5.0,
    metavar="SECONDS",
    help="How long one attempt may take. [default: 5]",
)
@click.option(
    "--wait",
    "wait_s",
    type=Seconds(0),
    default=0.0,
    metavar="SECONDS",
    help="Try again for so long, until the broker responds. [default: 0]",
)
def ping(address: str | None, config_file: str | None, timeout_s: float, wait_s: float) -> None:
    """Check that a broker responds at HOST:PORT (127.0.0.1:9092 unless given).

    It works with any Kafka broker, and needs no credentials; a listener with TLS needs --command-config, whose user and
    password are tried too. A broker that is still starting does not respond, so that a success means that it is ready.
    """
    given = None if address is None else parse_address(address)
    try:
        if config_file is not None:
            from kpybroker.cli.health.secured import asking

            name, ask = asking(config_file, given, timeout_s)
            reached = wait_until(ask, wait_s)
            apis, login = reached.apis, f"; {reached.mechanism} is accepted" if reached.mechanism else ""
        else:
            name, login = address or DEFAULT_ADDRESS, ""
            host, port = given or parse_address(DEFAULT_ADDRESS)
            apis = wait_until(lambda: count_apis(host, port, timeout_s), wait_s)
    except NoBroker as error:
        fail(error.cause, error.fix, EXIT_FAILED)
    click.echo(f"{name} responds and serves {apis} APIs{login}")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; an IPv6 host is in brackets. Raises click.BadParameter."""
    host, colon, digits = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not digits.isascii() or not digits.isdigit() or not 0 < int(digits) < 1 << 16:
        raise click.BadParameter(f"{text} is not HOST:PORT, such as {DEFAULT_ADDRESS}")
    return host, int(digits)


def wait_until(
    attempt: Callable[[], T],
    wait_s: float,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """What the first successful attempt returns. Raises the last attempt's NoBroker after `wait_s`."""
    deadline = now() + wait_s
    while True:
        try:
            return attempt()
        except NoBroker:
            if now() >= deadline:
                raise
        pause(PAUSE_S)


def count_apis(host: str, port: int, timeout_s: float) -> int:
    """How many APIs the broker serves, by one request on a connection of its own. Raises NoBroker."""
    import socket

    from kpybroker.wire.errors import ProtocolError

    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    deadline = time.monotonic() + timeout_s
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            return _ask(connection, deadline)
    except ProtocolError as error:
        raise NoBroker(f"{where} does not respond as a Kafka broker does: {error}", _OTHER_LISTENER) from None
    except socket.gaierror as error:
        raise NoBroker(f"the name {host} cannot be resolved: {error.strerror}", "give a name or an address") from None
    except ConnectionRefusedError:
        raise NoBroker(f"{where} refuses connections", "start the broker, or give the address that it prints") from None
    except TimeoutError:
        raise NoBroker(
            f"{where} did not respond within {timeout_s:g} s",
            "look into the broker's log: it may still be starting (--wait SECONDS waits for it)",
        ) from None
    except (ConnectionError, EOFError):
        raise NoBroker(f"{where} closed the connection without a response", _OTHER_LISTENER) from None
    except OSError as error:
        raise NoBroker(f"{where} cannot be reached: {error.strerror or error}", "check address and network") from None


_OTHER_PROTOCOLS: Final = {b"HTTP": "HTTP", b"\x15\x03": "TLS"}  # a response line; an alert record
_OTHER_LISTENER: Final = (
    "give --command-config FILE with security.protocol for a listener with TLS, or the address of one without"
)


def _ask(connection: socket.socket, deadline: float) -> int:
    """One ApiVersions 0. Raises ProtocolError, EOFError, OSError."""
    from kpybroker.wire.api import ApiKey
    from kpybroker.wire.codec import decode
    from kpybroker.wire.errors import ProtocolError
    from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
    from kpybroker.wire.messages.api_versions import ApiVersionsResponse

    frame = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "kpybroker-ping"))
    connection.sendall(len(frame).to_bytes(4, "big") + frame)
    prefix = _receive(connection, 4, deadline)
    for start, name in _OTHER_PROTOCOLS.items():
        if prefix.startswith(start):
            raise ProtocolError(f"it speaks {name}")
    size = int.from_bytes(prefix, "big")
    if size > RESPONSE_BYTES_MAX:
        raise ProtocolError(f"a response of {size} bytes")
    body = _receive(connection, size, deadline)
    _, position = parse_response_header(body, ApiKey.API_VERSIONS, 0)
    response = decode(ApiVersionsResponse, body[position:], 0)
    if response.error_code or not response.api_keys:
        raise ProtocolError(f"error code {response.error_code}, {len(response.api_keys)} APIs")
    return len(response.api_keys)


def _receive(connection: socket.socket, size: int, deadline: float) -> bytes:
    """Exactly `size` bytes. Raises EOFError, TimeoutError."""
    received = b""
    while len(received) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        data = connection.recv(size - len(received))
        if not data:
            raise EOFError
        received += data
    return received
