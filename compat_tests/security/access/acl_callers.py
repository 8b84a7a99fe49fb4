"""The callers of the matrix: each has an address of its own and ACLs for that address, so that none has to log in.

For every resource type and every operation on it there are four callers: one that may do only this, one that may do
it and everything with the other types, one that is denied only this, and one that may do everything but this.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kazoo.client import KazooClient

from compat_tests.support.services import START_DEADLINE_S
from kpybroker.core.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType
from kpybroker.core.security.acls import Binding, Entry, Pattern, PatternType, Permission
from kpybroker.wire import znodes

PRINCIPAL: Final = "User:ANONYMOUS"
ADMIN_HOST: Final = "127.0.0.1"
PREFIX: Final = "acl-"
TYPES: Final = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)


class Access(enum.Enum):
    """What a caller's ACLs say of its operation."""

    ONLY = 1
    ALLOWED = 2
    DENIED = 3
    ABSENT = 4


@dataclass(frozen=True, slots=True)
class Caller:
    """A client with the ACLs of one operation and one kind of access."""

    resource_type: ResourceType
    operation: Operation
    access: Access

    @property
    def host(self) -> str:
        """Its address."""
        return f"127.{self.resource_type + 1}.{self.operation}.{self.access.value}"

    def __str__(self) -> str:
        return f"{self.resource_type.name}-{self.operation.name}-{self.access.name}"

    def acls(self) -> Iterator[Binding]:
        """Its ACLs. What is for this operation alone is prefixed, the rest is for the wildcard."""
        this, kind = self.operation, self.resource_type
        if self.access is not Access.ONLY:
            for other in TYPES:
                if other is not kind:
                    yield self._acl(_wildcard(other), Operation.ALL, Permission.ALLOW)
        match self.access:
            case Access.ONLY | Access.ALLOWED:
                yield self._acl(_prefixed(kind), this, Permission.ALLOW)
            case Access.DENIED:
                yield self._acl(_wildcard(kind), Operation.ALL, Permission.ALLOW)
                yield self._acl(_prefixed(kind), this, Permission.DENY)
            case Access.ABSENT:
                for operation in SUPPORTED_OPERATIONS[kind]:
                    if operation is not this and this is not Operation.ALL:
                        yield self._acl(_wildcard(kind), operation, Permission.ALLOW)

    def _acl(self, pattern: Pattern, operation: Operation, permission: Permission) -> Binding:
        return Binding(pattern, Entry(PRINCIPAL, self.host, operation, permission))


_ADMIN: Final = Entry(PRINCIPAL, ADMIN_HOST, Operation.ALL, Permission.ALLOW)


def _wildcard(kind: ResourceType) -> Pattern:
    return Pattern(kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else "*")


def _prefixed(kind: ResourceType) -> Pattern:
    is_cluster = kind is ResourceType.CLUSTER
    return Pattern(kind, CLUSTER_NAME) if is_cluster else Pattern(kind, PREFIX, PatternType.PREFIXED)


CALLERS: Final = [
    Caller(kind, operation, access)
    for kind in TYPES
    for operation in (*SUPPORTED_OPERATIONS[kind], Operation.ALL)
    for access in Access
]


def creation(binding: Binding) -> dict[str, Any]:
    """An ACL as CreateAcls sends it."""
    pattern, entry = binding.pattern, binding.entry
    return {
        "resource_type": int(pattern.resource_type),
        "resource_name": pattern.name,
        "resource_pattern_type": int(pattern.pattern_type),
        "principal": entry.principal,
        "host": entry.host,
        "operation": int(entry.operation),
        "permission_type": int(entry.permission),
    }


def all_acls() -> list[Binding]:
    """Of every caller, and of the administrator, who may do everything."""
    admin = [Binding(_wildcard(kind), _ADMIN) for kind in TYPES]
    return [*admin, *(acl for caller in CALLERS for acl in caller.acls())]


def allow_admin(connect: str) -> None:
    """Let the administrator change the cluster, before a broker has started: in the tree, as Kafka keeps it."""
    address, _, chroot = connect.partition("/")
    client = KazooClient(address)
    client.start(START_DEADLINE_S)
    data = znodes.encode_acls([znodes.AclEntry(PRINCIPAL, "Allow", "All", ADMIN_HOST)])
    client.create(f"/{chroot}{znodes.acl_path('LITERAL', 'Cluster', CLUSTER_NAME)}", data, makepath=True)
    client.stop()
    client.close()
