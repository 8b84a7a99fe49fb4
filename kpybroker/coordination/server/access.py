"""What a client may do: its identities against a node's ACL (ZooKeeperServer.checkACL, PrepRequestProcessor.fixupACL).

Schemes: `world`, `ip` and `digest`. Each client has its address as an identity, and those that it proves with a name
and a password. There is no `super`: the broker itself, in its own process, is not subject to ACLs.
"""

from __future__ import annotations

from base64 import b64encode

from kpybroker.core import tree as t
from kpybroker.core.tree import Acl

IDENTITIES_MAX = 100
"""Of one client: it may prove one after the other."""

_ANYONE = ("world", "anyone")


class ClientAccess:
    """The identities of one client, as (scheme, id)."""

    def __init__(self, address: str) -> None:
        self.identities: list[tuple[str, str]] = [("ip", address)]

    def prove(self, scheme: str, credentials: bytes) -> bool:
        """Add an identity; False if the scheme or the credentials are refused."""
        if scheme == "ip":
            return True
        if scheme != "digest":
            return False
        identity = ("digest", digest(credentials))
        if identity not in self.identities:
            if len(self.identities) >= IDENTITIES_MAX:
                return False
            self.identities.append(identity)
        return True

    def may(self, acl: tuple[Acl, ...], permissions: int) -> bool:
        """Whether the ACL gives this client one of `permissions`."""
        return any(entry.permissions & permissions and self._is(entry) for entry in acl)

    def require(self, acl: tuple[Acl, ...], permissions: int, path: str) -> None:
        """Raise `NoAuth` if the ACL gives this client none of `permissions`."""
        if not self.may(acl, permissions):
            raise t.NoAuth(path)

    def complete(self, acl: tuple[Acl, ...], path: str) -> tuple[Acl, ...]:
        """The ACL to keep: without duplicates, and with the client's identities for `auth`. Raises `InvalidAcl`."""
        kept: dict[Acl, None] = {}
        for entry in acl:
            if entry.scheme == "auth":
                proved = [one for one in self.identities if one[0] == "digest"]
                if not proved:
                    raise t.InvalidAcl(path)
                kept.update((Acl(entry.permissions, *identity), None) for identity in proved)
            elif is_valid(entry.scheme, entry.identity):
                kept[entry] = None
            else:
                raise t.InvalidAcl(path)
        return tuple(kept)

    def _is(self, entry: Acl) -> bool:
        if (entry.scheme, entry.identity) == _ANYONE:
            return True
        if entry.scheme == "ip":
            return _contains(entry.identity, self.identities[0][1])
        return entry.scheme == "digest" and ("digest", entry.identity) in self.identities


def digest(credentials: bytes) -> str:
    """`user:password` as ACLs name it: `user:<SHA-1 of both in base64>` (DigestAuthenticationProvider)."""
    from hashlib import sha1

    user = credentials.partition(b":")[0].decode("utf-8", "replace")
    return f"{user}:{b64encode(sha1(credentials, usedforsecurity=False).digest()).decode()}"


def hidden(acl: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """An ACL for a client that may not change it: without the hashes of passwords."""
    return tuple(
        entry._replace(identity=entry.identity.partition(":")[0] + ":x") if entry.scheme == "digest" else entry
        for entry in acl
    )


def is_valid(scheme: str, identity: str) -> bool:
    """Whether an entry of an ACL may name it."""
    if scheme == "world":
        return identity == "anyone"
    if scheme == "digest":
        return len(identity.rstrip(":").split(":")) == 2
    return scheme == "ip" and _network(identity) is not None


def _network(expression: str) -> object:
    """An address, or one with the number of bits that count."""
    from ipaddress import ip_network

    try:
        return ip_network(expression, strict=False)
    except ValueError:
        return None


def _contains(expression: str, address: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(address) in ip_network(expression, strict=False)
    except ValueError:
        return False
