"""What groups cost in memory: estimates in bytes, measured with CPython 3.11 and rounded up."""

from __future__ import annotations

from typing import Final

from kpybroker.core.group.records import StoredGroup
from kpybroker.core.group.values import Protocols

GROUP_BYTES: Final = 2_000
MEMBER_BYTES: Final = 900
"""A member without protocols: its objects, entries of tables, its timer."""
PROTOCOL_BYTES: Final = 250
"""One protocol of a member: name and metadata as objects, and the count of its members."""
PENDING_MEMBER_BYTES: Final = 600
STORED_MEMBER_BYTES: Final = 600


def member_bytes(names: tuple[str | None, ...], protocols_size: int) -> int:
    """A member with these ids and hosts, and what it supports."""
    return MEMBER_BYTES + sum(2 * len(name or "") for name in names) + protocols_size


def protocols_bytes(protocols: Protocols) -> int:
    """What a member supports."""
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)


def stored_bytes(stored: StoredGroup | None) -> int:
    """A generation as the log has it, which stays in memory until the next one."""
    if stored is None:
        return 0
    return sum(
        STORED_MEMBER_BYTES + len(member.member_id) + len(member.subscription) + len(member.assignment)
        for member in stored.members
    )
