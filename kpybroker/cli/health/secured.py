"""`kpybroker ping --command-config`: the same question to a listener with TLS or logins."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from kpybroker.cli.exit_codes import fail
from kpybroker.cli.health.no_broker import NoBroker
from kpybroker.client.connect import sasl
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.connect.wire import WireBroker, connect, handshaken


class Reached(NamedTuple):
    """How many APIs a broker serves, and which mechanism it has accepted, if any."""

    apis: int
    mechanism: str | None


def asking(file: str, address: tuple[str, int] | None, timeout_s: float) -> tuple[str, Callable[[], Reached]]:
    """`HOST:PORT`, and what asks once, which raises NoBroker. None: the address is that of the file, or the default.

    Ends the process for a file that cannot be used.
    """
    try:
        settings = load(Connection(command_config=file, timeout_s=timeout_s))
        host, port = address or settings.addresses[0]
    except CommandError as error:
        _fail(error)
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return name, lambda: _ask((host, port), settings)


def reach(address: tuple[str, int], settings: Settings) -> Reached:
    """Ask once. Raises CommandError."""
    with _open(address, settings) as broker:
        return Reached(len(broker.versions), broker.mechanism)


def _ask(address: tuple[str, int], settings: Settings) -> Reached:
    try:
        return reach(address, settings)
    except CommandError as error:
        if error.exit_code != 1:
            _fail(error)
        raise NoBroker(error.cause, error.fix) from None


def _open(address: tuple[str, int], settings: Settings) -> WireBroker:
    """Logged in, where this program has the mechanism; the others are for clients with a library of their own."""
    can_log_in = not settings.protocol.startswith("SASL") or sasl.mechanism(settings.properties) in sasl.KNOWN
    return connect(address, settings) if can_log_in else handshaken(address, settings)


def _fail(error: CommandError) -> NoReturn:
    fail(error.cause, error.fix, error.exit_code)
