"""What a broker serves a client at most: the versions of an older Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.wire.api import ApiKey

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import ConnectionInfo


class VersionCap(NamedTuple):
    """What is served, (oldest, newest) by API; and whether it names the range of ApiVersions to a client that asked
    with a newer version (KIP-511)."""

    served: Mapping[ApiKey, tuple[int, int]]
    lists_own_range: bool = True


CapOf = Callable[["ConnectionInfo"], VersionCap | None]
"""The cap of a client; None: all of `SERVED`."""


def uncapped(connection: ConnectionInfo) -> None:
    """The `CapOf` of a broker that serves everything to everyone."""
