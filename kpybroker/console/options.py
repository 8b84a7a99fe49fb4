"""What `kpybroker console` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple

from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.settings import Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")

Network = IPv4Network | IPv6Network
OWN_MACHINE: Final = (ip_network("127.0.0.0/8"), ip_network("::1"))


class ConsoleOptions(NamedTuple):
    """The cluster and how the console is protected.

    `password` or `user_header` ask for a login; without one, the console serves this machine only. `hosts` are names
    under which browsers may reach it, besides the one that it binds and those of loopback. What a proxy says in its
    headers counts from `proxies` only. `registry` is the address of a schema registry. `metrics` are addresses of
    brokers' metrics; with `control`, those of its brokers are asked for.
    """

    settings: Settings
    host: str = "127.0.0.1"
    port: int = 8080
    allow_changes: bool = False
    password: str | None = None
    user_header: str | None = None
    hosts: Sequence[str] = ()
    control: str | None = None
    metrics: Sequence[str] = ()
    registry: str | None = None
    proxies: Sequence[Network] = OWN_MACHINE

    @property
    def has_login(self) -> bool:
        """Whether a browser must log in."""
        return self.password is not None or self.user_header is not None


def parse_proxies(texts: Sequence[str]) -> Sequence[Network]:
    """The addresses and networks of `--trusted-proxy`; without one, this machine. Raises CommandError."""
    try:
        return tuple(ip_network(text) for text in texts) or OWN_MACHINE
    except ValueError as error:
        raise usage(f"--trusted-proxy: {error}", "write an address or a network, as in 10.0.0.0/8") from None
