"""What a broker serves a client at most: the versions of another release of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.wire.api import ApiKey

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import ConnectionInfo


class VersionCap(NamedTuple):
    """What is served, (oldest, newest) by API; whether the range of ApiVersions is named to a client that asked with a
    newer version (KIP-511); and which of the APIs are not advertised."""

    served: Mapping[ApiKey, tuple[int, int]]
    lists_own_range: bool = True
    hidden: Collection[ApiKey] = ()

    @property
    def listed(self) -> Mapping[ApiKey, tuple[int, int]]:
        """What ApiVersions advertises."""
        return {key: versions for key, versions in self.served.items() if key not in self.hidden}


CapOf = Callable[["ConnectionInfo"], VersionCap | None]
"""The cap of a client; None: all of `SERVED`."""


def uncapped(connection: ConnectionInfo) -> None:
    """The `CapOf` of a broker that serves everything to everyone."""
