"""Which topic names are allowed, which are Kafka's own, and which would collide in metric names.

Kafka's ``org.apache.kafka.common.internals.Topic``; the error messages reach clients.
"""

from __future__ import annotations

import re

GROUP_METADATA_TOPIC_NAME = "__consumer_offsets"
TRANSACTION_STATE_TOPIC_NAME = "__transaction_state"
SHARE_GROUP_STATE_TOPIC_NAME = "__share_group_state"
CLUSTER_METADATA_TOPIC_NAME = "__cluster_metadata"

MAX_NAME_LENGTH = 249
PARTITIONS_MAX = 100_000
"""Of one topic: the directory of a partition with a higher index could have too long a name, and the assignment of more
is larger than a znode. One request for 2^31 of them must not take all memory."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")
_INTERNAL = frozenset((GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME, SHARE_GROUP_STATE_TOPIC_NAME))


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


def partition_invalid_reason(name: str, index: int) -> str | None:
    """Why no partition of that topic can have that index, nor a directory of its own; None where it can."""
    reason = invalid_reason(name)
    if reason is None and not 0 <= index < PARTITIONS_MAX:
        reason = f"Partition index is invalid: {index} is not between 0 and {PARTITIONS_MAX - 1}"
    return reason


def is_internal(name: str) -> bool:
    """Whether it is one of the topics that hold coordinators' state."""
    return name in _INTERNAL


def has_collision_chars(name: str) -> bool:
    """Whether the name needs `has_collision`: metric names do not distinguish '.' and '_'."""
    return "_" in name or "." in name


def has_collision(one: str, other: str) -> bool:
    """Whether two topics would have the same metric names."""
    return one.replace(".", "_") == other.replace(".", "_")
