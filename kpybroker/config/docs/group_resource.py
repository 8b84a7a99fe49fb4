"""The sentence on each key that a group may set for itself."""

from __future__ import annotations

from typing import Final

DOCS: Final[dict[str, str]] = {
    "consumer.session.timeout.ms": (
        "After this time without a heartbeat a member of this group is removed, under the consumer group protocol."
    ),
    "consumer.heartbeat.interval.ms": (
        "How often members of this group send a heartbeat, under the consumer group protocol. Each response to a "
        "heartbeat has it."
    ),
    "consumer.assignment.interval.ms": (
        "Shortest time between two assignments of this group, under the consumer group protocol."
    ),
}
