"""ListOffsets 10-11: special times of tiered storage, and how long to wait for it (KIP-1023, KIP-1075)."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.kafka_4.topics import OTHER, Probes, in_states
from compat_tests.differential.records import TIME
from compat_tests.differential.script import Ask, ask
from compat_tests.differential.scripts.offsets import LIST_OFFSETS, offsets

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)
SPECIAL = range(-1, -9, -1)
NAMED_STATES = ("empty", "filled", "compacted", "cut", "grown", "deleted", "renewed")


def waiting(timeout_ms: int, timestamp: int) -> Ask:
    places = [{"partition_index": 0, "timestamp": timestamp}]
    topics = [{"name": "{t}", "partitions": places}]
    return ask(LIST_OFFSETS, replica_id=-1, topics=topics, timeout_ms=timeout_ms)


def several(*topics: tuple[str, list[tuple[int, int]]], **options: Any) -> Ask:
    """(name, [(partition, timestamp)])."""
    entries = [
        {
            "name": name,
            "partitions": [{"partition_index": index, "timestamp": timestamp} for index, timestamp in places],
        }
        for name, places in topics
    ]
    return ask(LIST_OFFSETS, **{"replica_id": -1, **options}, topics=entries)


OFFSETS_PROBES: Probes = {
    "times": [
        *(offsets(special) for special in SPECIAL),
        *(offsets(special, 1) for special in SPECIAL),
        *(offsets(TIME + after) for after in (-1, 0, 5, 6, 10, 11)),
        *(offsets(special, 7) for special in (-1, -6, TIME)),
    ],
    "timeouts": [
        *(waiting(timeout, special) for timeout in (0, 1, -1, INT_MAX, INT_MIN) for special in (-1, -5, -6, TIME)),
    ],
    "readers": [
        *(offsets(special, isolation_level=1) for special in SPECIAL),
        *(offsets(special, replica_id=replica) for replica in (-2, 5) for special in (-1, -4, -5, -6)),
        *(offsets(special, current_leader_epoch=epoch) for epoch in (0, 1) for special in (-1, -5, -6)),
        several(("{t}", [(0, -1), (1, -2), (0, -2)]), (OTHER, [(0, -6)]), ("{t}-missing", [(0, -6)])),
        several(("{t}", [(0, -1)]), (OTHER, [(0, -1)]), ("{t}", [(1, -6)])),
    ],
}

SCRIPTS = in_states("later-offsets", LIST_OFFSETS, OFFSETS_PROBES, states=NAMED_STATES, versions=(10, 11))
