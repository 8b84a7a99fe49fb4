"""Replication factors that the brokers of an embedded cluster can meet.

Kafka's defaults, and every production file, want three brokers. With embedded coordination the number of brokers is
known at start and never grows: a factor above it would keep `__consumer_offsets`, `__transaction_state` and
`__share_group_state` from ever being created, so that no group and no transaction works. With ZooKeeper other brokers
may still join, and nothing is changed, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kpybroker.config.keys.registry import BROKER_KEYS

COUNTS_OF_BROKERS: Final = (
    "default.replication.factor",
    "min.insync.replicas",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)
"""The keys that count brokers."""


class Lowered(NamedTuple):
    """A key that is set, the value it was set to, and the value that it has."""

    key: str
    given: int
    used: int


def out_of_reach(props: Mapping[str, str], brokers: int) -> list[Lowered]:
    """What `brokers` brokers can never meet, of what is set in `props` and of Kafka's defaults for what is not."""
    found = []
    for name in COUNTS_OF_BROKERS:
        key = BROKER_KEYS[name]
        given = key.parse(props.get(name, key.default))
        if given > brokers:
            found.append(Lowered(name, given, brokers))
    return found


def describe(lowered: Sequence[Lowered], brokers: int) -> str:
    """One sentence for the log, with both values of each key."""
    changes = ", ".join(f"{key} from {given} to {used}" for key, given, used in lowered)
    count = f"{brokers} broker{'s' if brokers > 1 else ''}"
    return f"This cluster has {count}, so that these settings could never be met and are lowered: {changes}"
