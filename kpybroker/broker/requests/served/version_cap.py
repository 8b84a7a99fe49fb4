"""What a broker serves a client at most: the versions of another release of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.wire.api import ApiKey

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import ConnectionInfo


class VersionCap(NamedTuple):
    """What is served, (oldest, newest) by API; whether the range of ApiVersions is named to a client that asked with a
    newer version (KIP-511); and what is advertised instead, None for nothing, where that is not the same."""

    served: Mapping[ApiKey, tuple[int, int]]
    lists_own_range: bool = True
    advertised: Mapping[ApiKey, tuple[int, int] | None] = MappingProxyType({})

    @property
    def listed(self) -> dict[ApiKey, tuple[int, int]]:
        """What ApiVersions advertises."""
        both = {**self.served, **self.advertised}
        return {key: versions for key, versions in both.items() if versions is not None}


CapOf = Callable[["ConnectionInfo"], VersionCap | None]
"""The cap of a client; None: all of `SERVED`."""


def uncapped(connection: ConnectionInfo) -> None:
    """The `CapOf` of a broker that serves everything to everyone."""
