"""What a broker serves a client at most: the versions of another release of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.core.features import Levels, Ranges, levels_of_release, of_release
from kpybroker.wire.api import ApiKey

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import ConnectionInfo


class VersionCap(NamedTuple):
    """What is served, (oldest, newest) by API; whether the range of ApiVersions is named to a client that asked with a
    newer version (KIP-511); what is advertised instead, None for nothing, where that is not the same; and the newest
    levels of features, None for all."""

    served: Mapping[ApiKey, tuple[int, int]]
    lists_own_range: bool = True
    advertised: Mapping[ApiKey, tuple[int, int] | None] = MappingProxyType({})
    levels: Levels | None = None

    @property
    def listed(self) -> dict[ApiKey, tuple[int, int]]:
        """What ApiVersions advertises."""
        both = {**self.served, **self.advertised}
        return {key: versions for key, versions in both.items() if versions is not None}

    def supported(self, features: Ranges) -> Ranges:
        """The part of a broker's features that a client learns of."""
        return features if self.levels is None else of_release(features, self.levels)

    def finalized(self, levels: Levels) -> Levels:
        """The part of the finalized levels that counts for a client."""
        return levels if self.levels is None else levels_of_release(levels, self.levels)


CapOf = Callable[["ConnectionInfo"], VersionCap | None]
"""The cap of a client; None: all of `SERVED`."""


def uncapped(connection: ConnectionInfo) -> None:
    """The `CapOf` of a broker that serves everything to everyone."""
