"""Which Kafka a broker looks like, by the versions of the APIs it serves.

A broker does not say its version. `MARKERS` names, for each release, an API version that the release before did not
have (Kafka's own `apiVersionsResponse` of each; a test compares it with ranges recorded from real brokers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kpybroker.wire.api import ApiKey

MARKERS: Final = (
    ("4.3", ApiKey.DESCRIBE_LOG_DIRS, 5),
    ("4.2", ApiKey.LIST_OFFSETS, 11),
    ("4.1", ApiKey.PRODUCE, 13),
    ("4.0", ApiKey.METADATA, 13),
    ("3.9", ApiKey.FETCH, 17),
    ("3.8", ApiKey.PRODUCE, 11),
    ("3.7", ApiKey.PRODUCE, 10),
    ("3.6", ApiKey.ADD_PARTITIONS_TO_TXN, 4),
    ("3.5", ApiKey.FETCH, 15),
    ("3.4", ApiKey.LEADER_AND_ISR, 7),
    ("3.3", ApiKey.DESCRIBE_LOG_DIRS, 4),
    ("3.2", ApiKey.JOIN_GROUP, 9),
    ("3.1", ApiKey.FETCH, 13),
    ("3.0", ApiKey.LIST_OFFSETS, 7),
    ("2.8", ApiKey.PRODUCE, 9),
    ("2.7", ApiKey.FETCH, 12),
    ("2.6", ApiKey.LIST_GROUPS, 4),
    ("2.5", ApiKey.INIT_PRODUCER_ID, 3),
    ("2.4", ApiKey.PRODUCE, 8),
    ("2.3", ApiKey.FETCH, 11),
    ("2.2", ApiKey.LIST_OFFSETS, 5),
    ("2.1", ApiKey.FETCH, 10),
    ("2.0", ApiKey.FETCH, 8),
    ("1.1", ApiKey.FETCH, 7),
    ("1.0", ApiKey.PRODUCE, 5),
    ("0.11", ApiKey.PRODUCE, 3),
    ("0.10.2", ApiKey.OFFSET_FETCH, 2),
    ("0.10.1", ApiKey.FETCH, 3),
)
"""(release, API, version), newest first."""

OLDEST: Final = "0.10.0"
"""The first release that has ApiVersions at all."""


def looks_like(ranges: Mapping[int, tuple[int, int]]) -> str:
    """The newest release whose marker is within the served ranges."""
    for release, key, version in MARKERS:
        served = ranges.get(key)
        if served is not None and served[0] <= version <= served[1]:
            return release
    return OLDEST


def is_controller_only(ranges: Mapping[int, tuple[int, int]]) -> bool:
    """A KRaft controller's listener: votes, and no produce."""
    vote = 52
    return vote in ranges and ApiKey.PRODUCE not in ranges
