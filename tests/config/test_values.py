"""Parsing, writing and checking of values, as Kafka's ConfigDef does."""

from __future__ import annotations

import pytest

from kpybroker.config import values as v
from kpybroker.config.values import ConfigError, check_value, java_double, parse_value, value_text


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        (v.INT, " 7 ", 7),
        (v.INT, "+7", 7),
        (v.LONG, "-9223372036854775808", -(2**63)),
        (v.SHORT, "32767", 32767),
        (v.BOOLEAN, "TRUE", True),
        (v.BOOLEAN, "false", False),
        (v.DOUBLE, "0.50", 0.5),
        (v.DOUBLE, "1e3", 1000.0),
        (v.DOUBLE, ".5f", 0.5),
        (v.LIST, "a , b,c", ("a", "b", "c")),
        (v.LIST, "", ()),
        (v.STRING, "  x y ", "x y"),
        (v.CLASS, "org.A", "org.A"),
        (v.PASSWORD, " p ", "p"),
        (v.INT, None, None),
    ],
)
def test_a_good_value_is_parsed(type_name: str, text: str | None, value: v.Value) -> None:
    assert parse_value("k", type_name, text) == value


@pytest.mark.parametrize(
    ("type_name", "text", "sentence"),
    [
        (v.INT, "x", "Invalid value x for configuration k: Not a number of type INT"),
        (v.INT, "2147483648", "Invalid value 2147483648 for configuration k: Not a number of type INT"),
        (v.INT, "1_000", "Invalid value 1_000 for configuration k: Not a number of type INT"),
        (v.INT, "", "Invalid value  for configuration k: Not a number of type INT"),
        (v.INT, " x ", "Invalid value  x  for configuration k: Not a number of type INT"),
        (v.LONG, "9" * 5000, f"Invalid value {'9' * 5000} for configuration k: Not a number of type LONG"),
        (v.DOUBLE, "0,5", "Invalid value 0,5 for configuration k: Not a number of type DOUBLE"),
        (v.BOOLEAN, "yes", "Invalid value yes for configuration k: Expected value to be either true or false"),
    ],
)
def test_a_bad_value_is_refused_with_kafkas_sentence(type_name: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("k", type_name, text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1234567890.5, "1.2345678905E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert java_double(number) == text


def test_a_value_is_written_as_kafka_shows_it() -> None:
    assert value_text(True, v.BOOLEAN) == "true"
    assert value_text(("a", "b"), v.LIST) == "a,b"
    assert value_text(5, v.LONG) == "5"
    assert value_text(None, v.STRING) is None


@pytest.mark.parametrize(
    ("value", "validator", "reason"),
    [
        (13, v.at_least(14), "Value must be at least 14"),
        (None, v.at_least(14), "Value must be non-null"),
        (18, v.between(1, 17), "Value must be no more than 17"),
        (1.5, v.between(0, 1), "Value must be no more than 1"),
        (0.7, v.between(0, 0.5), "Value must be no more than 0.5"),
        ("x", v.one_of("a", "b"), "String must be one of: a, b"),
        (("a", "x"), v.list_of("a", "b"), "String must be one of: a, b"),
        ("x", v.any_case_one_of("A"), "String must be one of (case insensitive): A"),
        ("", v.NON_EMPTY, "String must be non-empty"),
        (None, v.NON_NULL, "entry must be non null"),
        (0, v.POSITIVE_OR_MINUS_ONE, "Value can be -1 or greater than 0"),
        (10, v.GZIP_LEVEL, "Value must be between 1 and 9 or equal to -1"),
        ("5.0", v.METADATA_VERSION, "Version `5.0` is not a valid version"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused(value: v.Value, validator: v.Validator, reason: str) -> None:
    with pytest.raises(ConfigError, check=lambda error: error.reason == reason):
        check_value("k", value, validator)


@pytest.mark.parametrize(
    ("value", "validator"),
    [
        (14, v.at_least(14)),
        (-1, v.GZIP_LEVEL),
        (-1, v.POSITIVE_OR_MINUS_ONE),
        ("a", v.any_case_one_of("A")),
        ("3.9", v.METADATA_VERSION),
        (("*",), v.THROTTLED_REPLICAS),
        (("0:1", "1:2"), v.THROTTLED_REPLICAS),
        ((), v.THROTTLED_REPLICAS),
        (None, v.ANYTHING),
    ],
)
def test_a_value_within_its_rule_passes(value: v.Value, validator: v.Validator) -> None:
    check_value("k", value, validator)


def test_throttled_replicas_are_pairs_or_a_star() -> None:
    with pytest.raises(ConfigError, match="must be the literal"):
        check_value("leader.replication.throttled.replicas", ("0:1", "x"), v.THROTTLED_REPLICAS)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT1.5S", 1_500),
        ("pt1,5s", 1_500),
        ("P1DT2H3M4S", 93_784_000),
        ("+P+1D", 86_400_000),
        ("PT1H-30M", 1_800_000),
        ("-PT-1S", 1_000),
        ("PT1M-0.5S", 59_500),
        ("PT0S", 0),
        ("PT9223372036854775807S", 9_223_372_036_854_775_807_000),
    ],
)
def test_a_duration_is_what_java_makes_of_it(text: str, expected_ms: int) -> None:
    assert v.duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "P1Y", "P1W", "1D", "PT1S ", "-PT1S", "PT-1S", "PT9223372036854775808S", "P9" + "9" * 20],
)
def test_what_java_does_not_take_for_a_duration_from_now_on_back_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        v.duration_ms(text)
