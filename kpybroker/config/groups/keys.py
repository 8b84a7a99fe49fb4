"""The keys that a group may set for itself, as Kafka 4.3's ``GroupConfig``; all are INT.

Kafka also has `share.*` and `streams.*`, which belong to groups that are not served.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kpybroker.config.values import Validator, at_least

SESSION_TIMEOUT_MS: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL_MS: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL_MS: Final = "consumer.assignment.interval.ms"


class GroupKey(NamedTuple):
    """A key of a group: the broker's key that gives its default, and those that bound it."""

    validator: Validator
    default: str
    lowest: str
    highest: str


GROUP_KEYS: Final[dict[str, GroupKey]] = {
    SESSION_TIMEOUT_MS: GroupKey(
        at_least(1),
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    HEARTBEAT_INTERVAL_MS: GroupKey(
        at_least(1),
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    ASSIGNMENT_INTERVAL_MS: GroupKey(
        at_least(0),
        "group.consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
}
"""In the order in which Kafka parses them."""
