"""What members of the group tell each other, as JSON, and how the leader is chosen.

The member that Kafka's coordinator makes the group's leader computes the assignment, which is the same for all: who
writes. A leader stays while it is a member; else the one with the smallest URL is chosen, so that all would agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
DUPLICATE_URLS: Final = 1


class Identity(NamedTuple):
    """An instance: where others reach it, whether it may lead, and whether it does."""

    scheme: str
    host: str
    port: int
    is_eligible: bool = True
    is_leader: bool = False

    @property
    def url(self) -> str:
        """Without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Assignment(NamedTuple):
    """The member id and the identity of the leader; both None where no member may lead."""

    error: int
    member_id: str | None
    leader: Identity | None


def encode_identity(identity: Identity) -> bytes:
    """The metadata of a member."""
    return json.dumps(_identity(identity)).encode()


def decode_identity(data: bytes) -> Identity | None:
    """None for bytes that are none: such a member cannot lead."""
    return _parsed_identity(_object(data))


def encode_assignment(assignment: Assignment) -> bytes:
    """What every member gets."""
    value: dict[str, Any] = {"version": 1, "error": assignment.error}
    if assignment.member_id is not None and assignment.leader is not None:
        value |= {"master": assignment.member_id, "master_identity": _identity(assignment.leader)}
    return json.dumps(value).encode()


def decode_assignment(data: bytes) -> Assignment:
    """Without a leader for bytes that are none."""
    value = _object(data)
    leader = value.get("master_identity")
    error = value.get("error")
    identity = _parsed_identity(leader) if isinstance(leader, dict) else None
    member_id = value.get("master")
    return Assignment(error if isinstance(error, int) else 0, member_id if identity else None, identity)


def choose(members: Mapping[str, Identity | None]) -> Assignment:
    """The assignment for members by their id. Two with one URL are an error: requests could not be forwarded."""
    known = {member_id: identity for member_id, identity in members.items() if identity is not None}
    urls = [identity.url for identity in known.values()]
    error = DUPLICATE_URLS if len(set(urls)) < len(urls) else 0
    eligible = {member_id: identity for member_id, identity in known.items() if identity.is_eligible}
    leading = [member_id for member_id, identity in eligible.items() if identity.is_leader]
    if not eligible:
        return Assignment(error, None, None)
    chosen = leading[0] if len(leading) == 1 else min(eligible, key=lambda member_id: eligible[member_id].url)
    return Assignment(error, chosen, eligible[chosen])


def _identity(identity: Identity) -> dict[str, Any]:
    return {
        "version": 1,
        "host": identity.host,
        "port": identity.port,
        "master_eligibility": identity.is_eligible,
        "scheme": identity.scheme,
        "leader": identity.is_leader,
    }


def _parsed_identity(value: Mapping[str, Any]) -> Identity | None:
    try:
        return Identity(
            str(value.get("scheme") or "http"),
            str(value["host"]),
            int(value["port"]),
            value.get("master_eligibility") is True,
            value.get("leader") is True,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
