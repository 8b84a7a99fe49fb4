"""Entities as nodes, values as Kafka writes them, filters."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.security.quota_entities import (
    Component,
    Node,
    check_filter,
    check_props,
    entity_of,
    format_value,
    java_double,
    matches,
    parse_entity,
    quota_values,
)
from kpybroker.wire.errors import KafkaError

USER, CLIENT, BOTH, ADDRESS = (
    Node("users", "u"),
    Node("clients", "c"),
    Node("users", "u/clients/c"),
    Node("ips", "10.0.0.1"),
)


@pytest.mark.parametrize(
    ("entity", "node"),
    [
        ({"user": "u"}, USER),
        ({"user": None}, Node("users", "<default>")),
        ({"user": "<default>"}, Node("users", "%3Cdefault%3E")),
        ({"client-id": "c"}, CLIENT),
        ({"client-id": "a/b c*"}, Node("clients", "a%2Fb%20c%2A")),
        ({"client-id": "c", "user": "u"}, BOTH),
        ({"user": None, "client-id": None}, Node("users", "<default>/clients/<default>")),
        ({"ip": "10.0.0.1"}, ADDRESS),
    ],
)
def test_an_entity_is_a_node_and_back(entity: dict[str, str | None], node: Node) -> None:
    assert parse_entity(entity) == node
    assert entity_of(node) == entity


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"user": ""}, "Empty user not supported"),
        ({"planet": "x"}, "Unhandled client quota entity type: planet"),
        ({"ip": "x", "user": "u"}, "IP entity should not be used with user/client ID entity"),
    ],
)
def test_an_entity_that_there_is_not(entity: dict[str, str | None], reason: str) -> None:
    with pytest.raises(KafkaError, match=reason):
        parse_entity(entity)


# from jshell: String.valueOf(double)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (12.5, "12.5"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123456789.25, "-1.2345678925E8"),
        (1e22, "1.0E22"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_a_number_is_written_as_java_does(value: float, text: str) -> None:
    assert java_double(value) == text


def test_whole_numbers_are_checked_and_rounded() -> None:
    assert format_value(USER, "producer_byte_rate", 1000.0000001) == "1000"
    assert format_value(USER, "producer_byte_rate", 999.9999999) == "1000"
    assert format_value(USER, "request_percentage", 50) == "50.0"
    assert format_value(ADDRESS, "connection_creation_rate", 5) == "5"
    for value in (1.5, float("nan"), 1e30):
        with pytest.raises(KafkaError, match="must be a LONG value"):
            format_value(USER, "producer_byte_rate", value)
    with pytest.raises(KafkaError, match="must be a INT value"):
        format_value(ADDRESS, "connection_creation_rate", 3e9)


@pytest.mark.parametrize("node", [USER, CLIENT, BOTH])
def test_keys_of_other_entities_are_refused(node: Node) -> None:
    with pytest.raises(KafkaError, match="Invalid configuration key connection_creation_rate"):
        format_value(node, "connection_creation_rate", 1)
    with pytest.raises(KafkaError, match="Unknown Dynamic Configuration"):
        check_props(node, {"connection_creation_rate": "1"})


def test_a_rate_below_zero_is_not_written() -> None:
    with pytest.raises(KafkaError, match="must be a INT value"):
        format_value(ADDRESS, "connection_creation_rate", -1)
    with pytest.raises(KafkaError, match="Value must be at least 0"):
        check_props(ADDRESS, {"connection_creation_rate": "-1"})


def test_a_users_credentials_stay_and_others_have_none() -> None:
    check_props(USER, {"SCRAM-SHA-256": "salt=...", "producer_byte_rate": "1"})
    with pytest.raises(KafkaError, match="Unknown Dynamic Configuration"):
        check_props(BOTH, {"SCRAM-SHA-256": "salt=..."})


def test_values_are_those_of_quotas() -> None:
    assert quota_values(USER, {"SCRAM-SHA-256": "salt=...", "producer_byte_rate": "1"}) == {"producer_byte_rate": 1}
    assert quota_values(ADDRESS, {"producer_byte_rate": "1"}) == {}
    with pytest.raises(KafkaError, match="Unexpected client quota configuration value: producer_byte_rate -> much"):
        quota_values(USER, {"producer_byte_rate": "much"})


ANY = Component(is_any=True, name=None)
ENTITIES: list[dict[str, str | None]] = [
    {"user": "u"},
    {"user": None},
    {"client-id": "c"},
    {"user": "u", "client-id": "c"},
    {"user": None, "client-id": None},
    {"ip": "10.0.0.1"},
]


@pytest.mark.parametrize(
    ("wanted", "loose", "strict"),
    [
        ({}, [0, 1, 2, 3, 4, 5], []),
        ({"user": ANY}, [0, 1, 3, 4], [0, 1]),
        ({"user": Component(is_any=False, name="u")}, [0, 3], [0]),
        ({"user": Component(is_any=False, name=None)}, [1, 4], [1]),
        ({"client-id": ANY}, [2, 3, 4], [2]),
        ({"user": ANY, "client-id": ANY}, [3, 4], [3, 4]),
        ({"ip": ANY}, [5], [5]),
    ],
)
def test_a_filter_selects_entities(wanted: dict[str, Component], loose: list[int], strict: list[int]) -> None:
    checked = check_filter(list(wanted.items()))
    for is_strict, expected in ((False, loose), (True, strict)):
        found = [n for n, entity in enumerate(ENTITIES) if matches(checked, entity, is_strict=is_strict)]
        assert found == expected
