"""ACLs as values: resource patterns, entries, filters, and which of them match. Kafka's `AclBinding` and its parts.

Resource and pattern types, operations and permissions have Kafka's codes. A literal pattern named `*` matches every
resource of its type; a prefixed one matches every name that begins with its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from kpybroker.core.authorizer import Operation, Principal, ResourceType

WILDCARD: Final = "*"
"""As the name of a literal pattern, as a host, and as the name of a principal: any."""


class PatternType(IntEnum):
    """Kafka's `PatternType`, with its codes. ANY and MATCH occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Kafka's `AclPermissionType`, with its codes. ANY occurs in filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


Code = TypeVar("Code", Operation, ResourceType, PatternType, Permission)


def by_code(kind: type[Code], code: int) -> Code:
    """The member with this code; UNKNOWN for a code that Kafka 3.9 does not define."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def parse_principal(text: str) -> Principal:
    """`User:alice`, split at the first colon. Raises ValueError, as ``SecurityUtils.parseKafkaPrincipal`` does."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def parse_super_users(text: str) -> frozenset[Principal]:
    """`User:admin;User:CN=a,O=b` as principals. Raises ValueError."""
    return (
        frozenset(parse_principal(one.strip()) for one in text.rstrip("; ").split(";")) if text.strip() else frozenset()
    )


@dataclass(frozen=True, slots=True)
class Pattern:
    """The resources that an ACL is about; `pattern_type` is LITERAL or PREFIXED."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.resource_type.name}, name={self.name}, "
            f"patternType={self.pattern_type.name})"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """Who may or may not do what, and from where. `principal` is text: `User:alice`, `User:*`."""

    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name})"
        )


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Kafka's ``ResourcePatternFilter``; a name of None fits all."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY

    def matches(self, pattern: Pattern) -> bool:
        """Whether the pattern fits. With MATCH, whether it is about the resource `name`."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, WILDCARD)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The one or two patterns that can fit; empty where the filter is open."""
        is_open = self.resource_type in (ResourceType.ANY, ResourceType.UNKNOWN) or self.name is None
        if is_open or self.pattern_type in (PatternType.MATCH, PatternType.UNKNOWN):
            return ()
        is_any = self.pattern_type is PatternType.ANY
        types = (PatternType.LITERAL, PatternType.PREFIXED) if is_any else (self.pattern_type,)
        return tuple(Pattern(self.resource_type, self.name or "", kind) for kind in types)


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Kafka's ``AccessControlEntryFilter``; None and ANY fit all."""

    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, entry: Entry) -> bool:
        """Whether the entry fits."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )


@dataclass(frozen=True, slots=True)
class Filter:
    """Which ACLs are meant: Kafka's `AclBindingFilter`."""

    pattern: PatternFilter
    entry: EntryFilter


@dataclass(frozen=True, slots=True)
class Binding:
    """One ACL: an entry of a pattern."""

    pattern: Pattern
    entry: Entry


# --- names in the tree and in logs


def camel(name: str) -> str:
    """`TRANSACTIONAL_ID` as `TransactionalId`: the spelling of the tree and of the audit log."""
    return "".join(word.capitalize() for word in name.split("_"))


def by_camel(kind: type[Code]) -> Callable[[str], Code]:
    """The inverse of `camel` for one enum; the function raises ValueError for an unknown name."""
    names = {camel(one.name): one for one in kind}

    def find(name: str) -> Code:
        if name not in names:
            raise ValueError(f"{name!r} is not a {kind.__name__}")
        return names[name]

    return find
