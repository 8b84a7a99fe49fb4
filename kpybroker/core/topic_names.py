"""Which topic names are allowed, which are Kafka's own, and which would collide in metric names.

Kafka's `org.apache.kafka.common.internals.Topic`; the error messages reach clients.
"""

from __future__ import annotations

import re

GROUP_METADATA_TOPIC_NAME = "__consumer_offsets"
TRANSACTION_STATE_TOPIC_NAME = "__transaction_state"
CLUSTER_METADATA_TOPIC_NAME = "__cluster_metadata"

MAX_NAME_LENGTH = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")
_INTERNAL = frozenset((GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME))


def invalid_reason(name: str) -> str | None:
    """Kafka's error message for an invalid name, None for a valid one."""
    if _LEGAL.match(name) and len(name) <= MAX_NAME_LENGTH and name not in (".", ".."):
        return None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    else:
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {reason}"


def is_valid(name: str) -> bool:
    """Whether a topic may have this name."""
    return invalid_reason(name) is None


def is_internal(name: str) -> bool:
    """Whether it is one of the two topics that hold coordinators' state."""
    return name in _INTERNAL


def has_collision_chars(name: str) -> bool:
    """Whether the name needs `has_collision`: metric names do not distinguish '.' and '_'."""
    return "_" in name or "." in name


def has_collision(one: str, other: str) -> bool:
    """Whether two topics would have the same metric names."""
    return one.replace(".", "_") == other.replace(".", "_")
