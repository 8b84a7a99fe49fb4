"""What the ACLs say: decisions for single resources and for all of a type. The rules of Kafka's `AclAuthorizer`.

- A super user may do everything.
- Where no ACL is about a resource, `allow.everyone.if.no.acl.found` decides.
- Else a matching deny decides, and without one a matching allow is needed.
- READ, WRITE, DELETE and ALTER that are allowed imply DESCRIBE; ALTER_CONFIGS implies DESCRIBE_CONFIGS. A deny implies
  nothing.

Decisions are kept until an ACL changes, at most `DECISIONS_MAX` of them. An index of names and prefixes makes a new
decision cost the same with ten ACLs or 10 000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.acls import (
    WILDCARD,
    Binding,
    Entry,
    Filter,
    Pattern,
    PatternType,
    Permission,
    parse_principal,
)

DECISIONS_MAX: Final = 20_000
NAME_LENGTH_MAX: Final = 255
"""Of a resource whose decisions are kept: a client may make up names of any length."""

IMPLIED_BY: Final[dict[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (
        Operation.DESCRIBE,
        Operation.READ,
        Operation.WRITE,
        Operation.DELETE,
        Operation.ALTER,
    ),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}
"""Operation -> the allowed operations that include it."""

ANYONE: Final = Principal("User", WILDCARD)

_Rule = tuple[Permission, Operation, Principal, str]
_Names = list[frozenset[str]]


@dataclass(frozen=True, slots=True)
class VersionedAcls:
    """The entries of a pattern, in the order of the tree, and the version of its node."""

    entries: tuple[Entry, ...]
    version: int


@dataclass(frozen=True, slots=True)
class AuthorizerRules:
    """What the configuration says."""

    super_users: frozenset[Principal] = frozenset()
    allow_without_acl: bool = False


class AclIndex:
    """All ACLs, by resource. `update` is the only change, and forgets every decision."""

    def __init__(self, rules: AuthorizerRules) -> None:
        self.rules = rules
        self.generation = 1
        self._acls: dict[Pattern, VersionedAcls] = {}
        self._by_name: dict[PatternType, dict[tuple[ResourceType, str], tuple[_Rule, ...]]] = {
            PatternType.LITERAL: {},
            PatternType.PREFIXED: {},
        }
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}
        self._decisions: dict[tuple[Principal, str, Operation, ResourceType, str], bool] = {}
        self._names: dict[tuple[str, str, Operation, Permission, ResourceType, PatternType], frozenset[str]] | None
        self._names = None

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether `principal`, connected from `host`, may perform `operation` on the resource `name`."""
        key = (principal, host, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self.decide(principal, host, operation, resource_type, name)[0]
            if len(self._decisions) >= DECISIONS_MAX:
                self._decisions.clear()
            if len(name) <= NAME_LENGTH_MAX:
                self._decisions[key] = decision
        return decision

    def decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> tuple[bool, str]:
        """The decision and, in the words of Kafka's debug log, its reason; an empty one where no ACL fits."""
        if principal in self.rules.super_users:
            return True, f"principal = {principal} is a super user, allowing operation without checking acls."
        rules = self._rules_about(resource_type, name)
        resource = Pattern(resource_type, name)
        if not rules:
            allowed = self.rules.allow_without_acl
            return allowed, f"No acl found for resource {resource}, authorized = {str(allowed).lower()}"
        wanted = ((Permission.DENY, operation), *((Permission.ALLOW, one) for one in _included_in(operation)))
        for permission, one in wanted:
            rule = _first_match(rules, permission, one, principal, host)
            if rule is not None:
                entry = Entry(str(rule[2]), rule[3], rule[1], permission)
                words = f"operation = {one.name} on resource = {resource} from host = {host} is {permission.name}"
                return permission is Permission.ALLOW, f"{words} based on acl = {entry}"
        return False, ""

    def _rules_about(self, resource_type: ResourceType, name: str) -> tuple[_Rule, ...]:
        """Of the wildcard, of the name itself, and of each prefix of it."""
        literals, prefixes = self._by_name[PatternType.LITERAL], self._by_name[PatternType.PREFIXED]
        found = literals.get((resource_type, WILDCARD), ())
        if name != WILDCARD:
            found += literals.get((resource_type, name), ())
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                found += prefixes.get((resource_type, name[:length]), ())
        return found

    # --- all resources of a type

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there can be a resource of this type on which the principal may perform the operation (KIP-679).

        No operation is implied by another here.
        """
        if principal in self.rules.super_users:
            return True

        def names(permission: Permission, pattern_type: PatternType) -> _Names:
            return self._names_of(principal, host, operation, permission, resource_type, pattern_type)

        denied_literals = names(Permission.DENY, PatternType.LITERAL)
        if any(WILDCARD in one for one in denied_literals):
            return False
        if self.rules.allow_without_acl:
            return True
        denied_prefixes = names(Permission.DENY, PatternType.PREFIXED)
        allowed_prefixes = names(Permission.ALLOW, PatternType.PREFIXED)
        allowed_literals = names(Permission.ALLOW, PatternType.LITERAL)
        if not denied_literals and not denied_prefixes:
            return bool(allowed_prefixes or allowed_literals)
        return any(
            not _has_prefix(prefix, denied_prefixes) for allowed in allowed_prefixes for prefix in allowed
        ) or any(
            literal == WILDCARD
            or not (any(literal in one for one in denied_literals) or _has_prefix(literal, denied_prefixes))
            for allowed in allowed_literals
            for literal in allowed
        )

    def _names_of(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        permission: Permission,
        resource_type: ResourceType,
        pattern_type: PatternType,
    ) -> _Names:
        if self._names is None:
            self._names = self._index_names()
        found = (
            self._names.get((who, where, what, permission, resource_type, pattern_type))
            for who in dict.fromkeys((str(principal), str(ANYONE)))
            for where in dict.fromkeys((host, WILDCARD))
            for what in dict.fromkeys((operation, Operation.ALL))
        )
        return [names for names in found if names]

    def _index_names(
        self,
    ) -> dict[tuple[str, str, Operation, Permission, ResourceType, PatternType], frozenset[str]]:
        names: dict[tuple[str, str, Operation, Permission, ResourceType, PatternType], set[str]] = {}
        for pattern, acls in self._acls.items():
            for entry in acls.entries:
                key = (
                    entry.principal,
                    entry.host,
                    entry.operation,
                    entry.permission,
                    pattern.resource_type,
                    pattern.pattern_type,
                )
                names.setdefault(key, set()).add(pattern.name)
        return {key: frozenset(found) for key, found in names.items()}

    # --- the ACLs themselves

    def acls_of(self, pattern: Pattern) -> VersionedAcls | None:
        """The entries of a pattern; None if there are none."""
        return self._acls.get(pattern)

    def patterns(self) -> list[Pattern]:
        """Every pattern that has ACLs."""
        return list(self._acls)

    def matching(self, wanted: Filter) -> Iterator[Binding]:
        """The ACLs that fit, in no particular order; they may change while the caller iterates."""
        for pattern in wanted.pattern.patterns or tuple(self._acls):
            acls = self._acls.get(pattern)
            if acls is not None and wanted.pattern.matches(pattern):
                yield from (Binding(pattern, entry) for entry in acls.entries if wanted.entry.matches(entry))

    def update(self, pattern: Pattern, acls: VersionedAcls | None) -> None:
        """The pattern has these ACLs now; None or no entries: it has none. Raises ValueError for a bad principal."""
        rules = () if acls is None else tuple(map(_rule, acls.entries))
        before = self._acls.pop(pattern, None)
        key = (pattern.resource_type, pattern.name)
        if acls is not None and rules:
            self._acls[pattern] = acls
            self._by_name[pattern.pattern_type][key] = rules
        else:
            self._by_name[pattern.pattern_type].pop(key, None)
        if pattern.pattern_type is PatternType.PREFIXED:
            self._count_prefix(pattern, bool(rules) - (before is not None))
        self._decisions.clear()
        self._names = None
        self.generation += 1

    def _count_prefix(self, pattern: Pattern, change: int) -> None:
        lengths = self._prefix_lengths.setdefault(pattern.resource_type, {})
        length = len(pattern.name)
        lengths[length] = lengths.get(length, 0) + change
        if not lengths[length]:
            del lengths[length]


def _rule(entry: Entry) -> _Rule:
    return entry.permission, entry.operation, parse_principal(entry.principal), entry.host


def _included_in(operation: Operation) -> tuple[Operation, ...]:
    return IMPLIED_BY.get(operation, (operation,))


def _first_match(
    rules: tuple[_Rule, ...], permission: Permission, operation: Operation, principal: Principal, host: str
) -> _Rule | None:
    for rule in rules:
        if (
            rule[0] is permission
            and rule[1] in (operation, Operation.ALL)
            and rule[2] in (principal, ANYONE)
            and rule[3] in (host, WILDCARD)
        ):
            return rule
    return None


def _has_prefix(name: str, prefixes: _Names) -> bool:
    return any(name[:length] in one for length in range(len(name) + 1) for one in prefixes)
