"""What `kpybroker registry` is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpybroker.client.connect.settings import Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class RegistryOptions(NamedTuple):
    """The cluster, and how the registry is reached and protected.

    `users` are names with their hashed passwords; None lets everybody in, which other hosts than loopback need
    `is_open` for. `advertised_url` is where other instances reach this one. `cert_file` and `key_file` are PEM, for
    TLS; `ca_file` has the authorities with which the leader's certificate is checked. `hosts` are names by which
    clients reach it, besides those of this machine. `proxies` are addresses whose word counts on whom they forward.
    """

    settings: Settings
    host: str = "127.0.0.1"
    port: int = 8081
    topic: str = "_schemas"
    group: str = "schema-registry"
    is_eligible: bool = True
    advertised_url: str | None = None
    users: Mapping[str, str] | None = None
    is_open: bool = False
    cert_file: str | None = None
    key_file: str | None = None
    ca_file: str | None = None
    hosts: Sequence[str] = ()
    proxies: Sequence[str] = ()
