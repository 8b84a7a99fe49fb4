"""Patterns, filters and names: what matches what, as in Kafka's ``ResourcePatternFilter`` and ``SecurityUtils``."""

from __future__ import annotations

import pytest

from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.acls import (
    Entry,
    EntryFilter,
    Pattern,
    PatternFilter,
    PatternType,
    Permission,
    by_camel,
    by_code,
    camel,
    parse_principal,
    parse_super_users,
)

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL = Pattern(TOPIC, "orders")
PREFIXED = Pattern(TOPIC, "ord", PatternType.PREFIXED)
ALL = Pattern(TOPIC, "*")
OTHER = Pattern(GROUP, "orders")
EVERY = (LITERAL, PREFIXED, ALL, OTHER)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (PatternFilter(), EVERY),
        (PatternFilter(TOPIC), (LITERAL, PREFIXED, ALL)),
        (PatternFilter(TOPIC, None, PatternType.PREFIXED), (PREFIXED,)),
        (PatternFilter(TOPIC, "orders", PatternType.LITERAL), (LITERAL,)),
        (PatternFilter(TOPIC, "ord"), (PREFIXED,)),
        (PatternFilter(TOPIC, "orders"), (LITERAL,)),
        (PatternFilter(TOPIC, "orders", PatternType.MATCH), (LITERAL, PREFIXED, ALL)),
        (PatternFilter(TOPIC, "other", PatternType.MATCH), (ALL,)),
        (PatternFilter(ResourceType.ANY, "orders", PatternType.LITERAL), (LITERAL, OTHER)),
        (PatternFilter(TOPIC, "*", PatternType.LITERAL), (ALL,)),
    ],
)
def test_a_filter_finds_patterns(wanted: PatternFilter, found: tuple[Pattern, ...]) -> None:
    assert tuple(filter(wanted.matches, EVERY)) == found


@pytest.mark.parametrize(
    ("wanted", "patterns"),
    [
        (PatternFilter(TOPIC, "a", PatternType.LITERAL), (Pattern(TOPIC, "a"),)),
        (PatternFilter(TOPIC, "a"), (Pattern(TOPIC, "a"), Pattern(TOPIC, "a", PatternType.PREFIXED))),
        (PatternFilter(TOPIC, "a", PatternType.MATCH), ()),
        (PatternFilter(TOPIC, None), ()),
        (PatternFilter(ResourceType.ANY, "a"), ()),
    ],
)
def test_a_filter_that_can_only_find_known_patterns_names_them(
    wanted: PatternFilter, patterns: tuple[Pattern, ...]
) -> None:
    assert wanted.patterns == patterns


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (EntryFilter(), True),
        (EntryFilter("User:a", "*", Operation.READ, Permission.ALLOW), True),
        (EntryFilter("User:b"), False),
        (EntryFilter(None, "10.0.0.1"), False),
        (EntryFilter(None, None, Operation.ALL), False),
        (EntryFilter(None, None, Operation.ANY, Permission.DENY), False),
    ],
)
def test_a_filter_finds_entries(wanted: EntryFilter, fits: bool) -> None:
    assert wanted.matches(Entry("User:a", "*", Operation.READ, Permission.ALLOW)) is fits


def test_a_code_of_a_newer_kafka_is_unknown() -> None:
    assert by_code(Operation, 3) is Operation.READ
    assert by_code(Operation, 77) is Operation.UNKNOWN
    assert by_code(PatternType, -1) is PatternType.UNKNOWN


def test_names_are_those_of_the_tree_and_back() -> None:
    assert camel("TRANSACTIONAL_ID") == "TransactionalId"
    assert camel("IDEMPOTENT_WRITE") == "IdempotentWrite"
    find = by_camel(Operation)
    assert all(find(camel(one.name)) is one for one in Operation)
    with pytest.raises(ValueError, match="'read' is not a Operation"):
        find("read")


def test_principals() -> None:
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")
    assert parse_principal("User:") == Principal("User", "")
    with pytest.raises(ValueError, match="expected a string in format principalType:principalName but got alice"):
        parse_principal("alice")


def test_super_users() -> None:
    assert parse_super_users("") == parse_super_users(" ") == frozenset()
    assert parse_super_users("User:a; User:CN=b,O=c;") == {Principal("User", "a"), Principal("User", "CN=b,O=c")}
    with pytest.raises(ValueError, match="but got b"):
        parse_super_users("User:a;b")
