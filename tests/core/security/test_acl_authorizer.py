"""Decisions of the ACLs, and that the cache never shows: random ACLs against the rules written out plainly."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.acl_authorizer import DECISIONS_MAX, AclIndex, AuthorizerRules, VersionedAcls
from kpybroker.core.security.acls import (
    Binding,
    Entry,
    EntryFilter,
    Filter,
    Pattern,
    PatternFilter,
    PatternType,
    Permission,
)

ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALICE = Principal("User", "alice")
HOST = "10.0.0.1"


def acl(
    permission: Permission = ALLOW,
    operation: Operation = READ,
    on: str | Pattern = "orders",
    *,
    principal: str = "User:alice",
    host: str = "*",
) -> Binding:
    """A name is a topic's."""
    pattern = Pattern(TOPIC, on, PatternType.LITERAL) if isinstance(on, str) else on
    return Binding(pattern, Entry(principal, host, operation, permission))


def prefixed(name: str) -> Pattern:
    return Pattern(TOPIC, name, PatternType.PREFIXED)


OF_A_GROUP = Pattern(GROUP, "orders", PatternType.LITERAL)


def index_of(bindings: Iterable[Binding], rules: AuthorizerRules | None = None) -> AclIndex:
    index = AclIndex(rules or AuthorizerRules())
    by_pattern: dict[Pattern, list[Entry]] = {}
    for binding in bindings:
        by_pattern.setdefault(binding.pattern, []).append(binding.entry)
    for pattern, entries in by_pattern.items():
        index.update(pattern, VersionedAcls(tuple(entries), 0))
    return index


def may(index: AclIndex, operation: Operation = READ, name: str = "orders") -> bool:
    return index.authorize(ALICE, HOST, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("bindings", "operation", "allowed"),
    [
        ([], READ, False),
        ([acl()], READ, True),
        ([acl()], WRITE, False),
        ([acl(on="*")], READ, True),
        ([acl(on=prefixed("ord"))], READ, True),
        ([acl(on=prefixed("orders"))], READ, True),
        ([acl(on=prefixed("orders-1"))], READ, False),
        ([acl(on=prefixed("*"))], READ, False),
        ([acl(operation=Operation.ALL)], WRITE, True),
        ([acl(principal="User:*")], READ, True),
        ([acl(principal="Group:*")], READ, False),
        ([acl(principal="User:bob")], READ, False),
        ([acl(host=HOST)], READ, True),
        ([acl(host="10.0.0.2")], READ, False),
        ([acl(on=OF_A_GROUP)], READ, False),
        ([acl(), acl(DENY)], READ, False),
        ([acl(), acl(DENY, WRITE)], READ, True),
        ([acl(), acl(DENY, on="*")], READ, False),
        ([acl(), acl(DENY, on=prefixed("o"))], READ, False),
        ([acl(), acl(DENY, Operation.ALL)], READ, False),
        ([acl(DENY, host="10.0.0.2"), acl()], READ, True),
        ([acl(operation=Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS, True),
        ([acl(operation=Operation.DESCRIBE_CONFIGS)], Operation.ALTER_CONFIGS, False),
        ([acl(operation=Operation.CREATE)], DESCRIBE, False),
        ([acl(), acl(DENY, WRITE)], DESCRIBE, True),
        ([acl(), acl(DENY, DESCRIBE)], DESCRIBE, False),
        ([acl(), acl(DENY, DESCRIBE)], READ, True),
    ],
)
def test_a_decision(bindings: list[Binding], operation: Operation, allowed: bool) -> None:
    assert may(index_of(bindings), operation) is allowed


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_an_allowed_operation_implies_describe(operation: Operation) -> None:
    assert may(index_of([acl(operation=operation)]), DESCRIBE)


def test_super_users_may_do_everything() -> None:
    rules = AuthorizerRules(super_users=frozenset([ALICE]))
    assert may(index_of([acl(DENY)], rules))
    assert index_of([], rules).authorize_by_resource_type(ALICE, HOST, WRITE, TOPIC)
    assert not index_of([], rules).authorize(Principal("User", "bob"), HOST, READ, TOPIC, "orders")


def test_without_an_acl_everyone_may_if_it_is_configured() -> None:
    rules = AuthorizerRules(allow_without_acl=True)
    assert may(index_of([acl(on="other")], rules))
    assert not may(index_of([acl(principal="User:bob")], rules))


def test_a_change_is_seen_at_once() -> None:
    index = index_of([acl()])
    pattern = acl().pattern
    assert may(index)
    index.update(pattern, VersionedAcls((acl(DENY).entry,), 1))
    assert not may(index)
    index.update(pattern, None)
    assert not may(index)
    assert index.patterns() == []
    index.update(pattern, VersionedAcls((acl().entry,), 1))
    assert may(index)


def test_a_bad_principal_changes_nothing() -> None:
    index = index_of([acl()])
    with pytest.raises(ValueError, match="but got alice"):
        index.update(acl().pattern, VersionedAcls((acl(principal="alice").entry,), 1))
    assert may(index)


def test_decisions_are_bounded() -> None:
    index = index_of([acl(on=prefixed("t"))])
    for number in range(DECISIONS_MAX + 10):
        assert may(index, READ, f"t{number}")
    assert len(index._decisions) <= DECISIONS_MAX
    before = len(index._decisions)
    assert may(index, READ, "t" * 10_000)
    assert len(index._decisions) == before  # long names are not kept at all


def test_the_reason_has_the_words_of_kafkas_debug_log() -> None:
    index = index_of([acl(operation=WRITE)], AuthorizerRules(super_users=frozenset([Principal("User", "root")])))
    assert index.decide(ALICE, HOST, DESCRIBE, TOPIC, "orders") == (
        True,
        "operation = WRITE on resource = ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL) from "
        "host = 10.0.0.1 is ALLOW based on acl = (principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)",
    )
    assert index.decide(ALICE, HOST, READ, TOPIC, "x") == (
        False,
        "No acl found for resource ResourcePattern(resourceType=TOPIC, name=x, patternType=LITERAL), "
        "authorized = false",
    )
    assert index.decide(ALICE, HOST, READ, TOPIC, "orders") == (False, "")
    assert "is a super user" in index.decide(Principal("User", "root"), HOST, READ, TOPIC, "orders")[1]


# --- all resources of a type


@pytest.mark.parametrize(
    ("bindings", "allowed"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl(operation=WRITE, on=prefixed("orders"))], True),
        ([acl(operation=Operation.ALL, principal="User:*", host=HOST)], True),
        ([acl(operation=READ)], False),
        ([acl(operation=WRITE, on=OF_A_GROUP)], False),
        ([acl(operation=WRITE), acl(DENY, WRITE)], False),
        ([acl(operation=WRITE), acl(DENY, WRITE, on="*")], False),
        ([acl(operation=WRITE), acl(DENY, WRITE, on=prefixed("ord"))], False),
        ([acl(operation=WRITE), acl(DENY, WRITE, on=prefixed("orders-"))], True),
        ([acl(operation=WRITE, on="*"), acl(DENY, WRITE, on=prefixed("o"))], True),
        (
            [
                acl(operation=WRITE, on=prefixed("or")),
                acl(DENY, WRITE, on=prefixed("o")),
            ],
            False,
        ),
        ([acl(operation=WRITE, on=prefixed("orders")), acl(DENY, WRITE)], True),
        ([acl(operation=WRITE), acl(DENY, WRITE, on="other")], True),
        ([acl(operation=WRITE), acl(DENY, WRITE, on="*", host="10.0.0.2")], True),
    ],
)
def test_some_resource_of_a_type(bindings: list[Binding], allowed: bool) -> None:
    assert index_of(bindings).authorize_by_resource_type(ALICE, HOST, WRITE, TOPIC) is allowed


def test_without_an_acl_everyone_may_write_some_topic_if_not_all_are_denied() -> None:
    rules = AuthorizerRules(allow_without_acl=True)
    assert index_of([acl(DENY, WRITE)], rules).authorize_by_resource_type(ALICE, HOST, WRITE, TOPIC)
    denied = index_of([acl(DENY, WRITE, on="*")], rules)
    assert not denied.authorize_by_resource_type(ALICE, HOST, WRITE, TOPIC)


# --- looking at ACLs


def test_matching_finds_by_name_or_by_search() -> None:
    bindings = [acl(), acl(DENY, WRITE), acl(on=prefixed("ord")), acl(on=OF_A_GROUP)]
    index = index_of(bindings)
    everything = Filter(PatternFilter(), EntryFilter())
    assert set(index.matching(everything)) == set(bindings)
    named = Filter(PatternFilter(TOPIC, "orders", PatternType.LITERAL), EntryFilter(permission=DENY))
    assert list(index.matching(named)) == [bindings[1]]
    about = Filter(PatternFilter(TOPIC, "orders", PatternType.MATCH), EntryFilter())
    assert set(index.matching(about)) == set(bindings[:3])


# --- against the rules written out


def plain_decision(bindings: list[Binding], principal: Principal, host: str, operation: Operation, name: str) -> bool:
    """The same rules without an index: every ACL is looked at."""
    match = PatternFilter(TOPIC, name, PatternType.MATCH)
    entries = [binding.entry for binding in bindings if match.matches(binding.pattern)]

    def some(permission: Permission, operations: set[Operation]) -> bool:
        return any(
            entry.permission is permission
            and entry.operation in operations | {Operation.ALL}
            and entry.principal in (str(principal), "User:*")
            and entry.host in (host, "*")
            for entry in entries
        )

    implied = {operation}
    if operation is DESCRIBE:
        implied |= {READ, WRITE, Operation.DELETE, Operation.ALTER}
    return not some(DENY, {operation}) and some(ALLOW, implied)


@pytest.mark.parametrize("seed", range(20))
def test_random_acls_decide_as_the_plain_rules(seed: int) -> None:
    rng = random.Random(seed)
    names = ["a", "ab", "abc", "b", "*"]
    operations = [READ, WRITE, DESCRIBE, Operation.ALL]

    def some_acl() -> Binding:
        return acl(
            rng.choice([ALLOW, ALLOW, DENY]),
            rng.choice(operations),
            Pattern(TOPIC, rng.choice(names), rng.choice([PatternType.LITERAL, PatternType.PREFIXED])),
            principal=rng.choice(["User:alice", "User:bob", "User:*"]),
            host=rng.choice(["*", HOST, "10.0.0.2"]),
        )

    bindings = list(dict.fromkeys(some_acl() for _ in range(rng.randrange(12))))
    index = index_of(bindings)
    for _ in range(200):
        if rng.random() < 0.1 and bindings:
            gone = bindings.pop(rng.randrange(len(bindings)))
            left = tuple(one.entry for one in bindings if one.pattern == gone.pattern)
            index.update(gone.pattern, VersionedAcls(left, 0) if left else None)
        who = rng.choice([ALICE, Principal("User", "bob")])
        question = (who, rng.choice([HOST, "10.0.0.2"]), rng.choice(operations[:3]))
        name = rng.choice(["a", "ab", "abcd", "b", "c"])
        expected = plain_decision(bindings, *question, name)
        assert index.authorize(*question, TOPIC, name) is expected, (bindings, question, name)
