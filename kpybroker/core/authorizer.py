"""Operations, resource types and principals of ACLs, and the authorizer that dispatch and handlers call.

Numbers are Kafka's `AclOperation` and `ResourceType` codes, as they travel in ACL requests and in the
authorized-operations bit fields of Metadata and DescribeGroups. `AllowAll` is Kafka's behaviour without
`authorizer.class.name`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol


class Operation(IntEnum):
    """Kafka's `AclOperation`, with its codes."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class ResourceType(IntEnum):
    """Kafka's `ResourceType` of an ACL, with its codes."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"

# The operations that make sense on a resource: AclEntry.supportedOperations.
SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """`User:ANONYMOUS` on a plain listener, as Kafka prints it.

    `token_authenticated`: the client logged in with a delegation token; no part of who it is, so no part of equality.
    """

    type: str = "User"
    name: str = "ANONYMOUS"
    token_authenticated: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal()


class Action(NamedTuple):
    """An operation on a resource, as the audit log names it; a name of None is any resource of the type.

    `references` is how often the request names the resource.
    """

    operation: Operation
    resource_type: ResourceType
    name: str | None
    references: int = 1


class Requester(Protocol):
    """Who made a request, from where, and which; for the audit log."""

    api_key: int

    @property
    def principal(self) -> Principal:
        """The authenticated principal."""

    @property
    def client_host(self) -> str:
        """The client's address."""


class Authorizer(Protocol):
    """Decides whether a principal may perform an operation; Kafka's `Authorizer` plug-in."""

    @property
    def generation(self) -> int:
        """It grows whenever what is allowed may have changed."""

    @property
    def audits_allowed(self) -> bool:
        """Whether `audit` wants to know of what is allowed, too. Of what is denied it is always called."""

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether `principal`, connected from `host`, may perform `operation` on the resource `name`."""

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is or can be a resource of this type on which `principal` may perform `operation`."""

    def audit(self, request: Requester, action: Action, allowed: bool) -> None:
        """Log a decision."""


class AllowAll:
    """No `authorizer.class.name`: everything is allowed, and nothing is audited."""

    generation = 0
    audits_allowed = False

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Always True."""
        return True

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Always True."""
        return True

    def audit(self, request: Requester, action: Action, allowed: bool) -> None:
        """Nothing is logged."""


def authorized_operations(
    may: Callable[[Operation], bool], resource_type: ResourceType, more: Collection[Operation] = ()
) -> int:
    """The bit field of operations that `may` allows: bit N is set for operation code N. `more` are operations that not
    every Kafka has for this type.
    """
    return sum(1 << operation for operation in (*SUPPORTED_OPERATIONS[resource_type], *more) if may(operation))
