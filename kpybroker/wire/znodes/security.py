"""ACLs and delegation tokens: bytes <-> values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kpybroker.wire.map_order import java_hash_map_order
from kpybroker.wire.znodes.jackson import (
    ZnodeError,
    immutable,
    integer,
    ordered,
    parse,
    string,
    to_json,
)
from kpybroker.wire.znodes.paths import desanitize, sanitize


@dataclass(frozen=True, slots=True)
class AclEntry:
    """One entry of an ACL node, in the words of the tree: "User:alice", "Allow", "Read", "*"."""

    principal: str
    permission_type: str
    operation: str
    host: str


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """The value of an ACL node."""
    acls = [
        ordered(
            {
                "principal": entry.principal,
                "permissionType": entry.permission_type,
                "operation": entry.operation,
                "host": entry.host,
            },
            java_hash_map_order,
        )
        for entry in entries
    ]
    return to_json(ordered({"version": 1, "acls": acls}, java_hash_map_order))


def decode_acls(data: bytes | None) -> list[AclEntry]:
    """Empty for an empty node."""
    return parse("an ACL", data, _acls) if data else []


def _acls(values: dict[str, Any]) -> list[AclEntry]:
    if values["version"] != 1:
        raise ValueError(f"unsupported version {values['version']}")
    return [
        AclEntry(string(e["principal"]), string(e["permissionType"]), string(e["operation"]), string(e["host"]))
        for e in values["acls"]
    ]


def encode_acl_change(pattern_type: str, resource_type: str, name: str) -> bytes:
    """`resource_type` is the enum's name ("TOPIC"); literal patterns have their own, older form."""
    if pattern_type == "LITERAL":
        return f"{resource_type}:{name}".encode()
    return to_json({"version": 1, "resourceType": resource_type, "name": name, "patternType": pattern_type})


def decode_acl_change(extended: bool, data: bytes | None) -> tuple[str, str, str]:
    """(pattern type, resource type, resource name)."""
    if extended:
        return parse("an ACL change", data, _extended_acl_change)
    resource_type, separator, name = (data or b"").decode("utf-8", "replace").partition(":")
    if not separator:
        raise ZnodeError(f"an ACL change cannot be read: {data!r}")
    return "LITERAL", resource_type.upper(), name


def _extended_acl_change(values: dict[str, Any]) -> tuple[str, str, str]:
    if integer(values["version"]) > 1:
        raise ValueError(f"unsupported version {values['version']}")
    return (
        string(values["patternType"]).upper(),
        string(values["resourceType"]).upper(),
        string(values["name"]),
    )


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """`/delegation_token/tokens/<id>`: principals as "User:alice"."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiry_timestamp_ms: int


def encode_delegation_token(token: DelegationToken) -> bytes:
    """The value of `/delegation_token/tokens/<id>`, version 3."""
    values = {
        "version": 3,
        "owner": sanitize(token.owner),
        "tokenRequester": sanitize(token.requester),
        "renewers": [sanitize(renewer) for renewer in token.renewers],
        "issueTimestamp": token.issue_timestamp_ms,
        "maxTimestamp": token.max_timestamp_ms,
        "expiryTimestamp": token.expiry_timestamp_ms,
        "tokenId": token.token_id,
    }
    return to_json(immutable(values))


def decode_delegation_token(data: bytes | None) -> DelegationToken:
    """A token of version 1 to 3. Raises ZnodeError."""
    return parse("a delegation token", data, _delegation_token)


def _delegation_token(values: dict[str, Any]) -> DelegationToken:
    version = integer(values["version"])
    if not 1 <= version <= 3:
        raise ValueError(f"unsupported version {version}")
    owner = desanitize(string(values["owner"]))
    requester = values.get("tokenRequester")  # from version 3 on
    expiry = values.get("expiryTimestamp", values.get("expiryTimstamp"))  # the older spelling is Kafka's
    return DelegationToken(
        string(values["tokenId"]),
        owner,
        owner if requester is None else desanitize(string(requester)),
        tuple(desanitize(string(renewer)) for renewer in values["renewers"]),
        integer(values["issueTimestamp"]),
        integer(values["maxTimestamp"]),
        integer(expiry),
    )
