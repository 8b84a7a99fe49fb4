"""What `kpybroker console` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpybroker.client.connect.settings import Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ConsoleOptions(NamedTuple):
    """The cluster and how the console is protected.

    `password` or `user_header` ask for a login; without one, the console serves this machine only. `hosts` are names
    under which browsers may reach it, besides the one that it binds and those of loopback. `registry` is the address
    of a schema registry. `metrics` are addresses of brokers' metrics; with `control`, those of its brokers are asked
    for.
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

    @property
    def has_login(self) -> bool:
        """Whether a browser must log in."""
        return self.password is not None or self.user_header is not None
