"""What a subscription may be. That Kafka 4.3.1 says the same: tests/broker/handlers/configuration."""

from __future__ import annotations

import pytest

from kpybroker.core.client_metrics.configs import INTERVAL_MS_DEFAULT, parse
from kpybroker.wire.errors import ErrorCode, KafkaError


def refusal(name: str, **props: str) -> tuple[ErrorCode, str | None]:
    with pytest.raises(KafkaError) as raised:
        parse(name, {key.replace("_", "."): value for key, value in props.items()})
    return raised.value.code, raised.value.message


def test_a_subscription_has_prefixes_an_interval_and_patterns_of_clients() -> None:
    found = parse("s", {"metrics": " a. , b.,a. ", "interval.ms": " 100 ", "match": "client_id = app-.* ,client_id=x"})
    assert found.metrics == ("a.", "b.")
    assert found.interval_ms == 100
    assert list(found.match) == ["client_id"]
    assert found.match["client_id"].text == "x"  # as in Kafka, the last of an attribute counts


def test_what_is_not_set_has_its_default() -> None:
    found = parse("s", {"metrics": ""})
    assert (found.metrics, found.interval_ms, found.match) == ((), INTERVAL_MS_DEFAULT, {})


def test_names_and_intervals_that_are_refused_are_an_invalid_request() -> None:
    assert refusal("", metrics="a") == (ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    assert refusal("s", nope="a") == (ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope")
    for value in ("99", "3600001", "-1"):
        text = f"Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        assert refusal("s", interval_ms=value) == (ErrorCode.INVALID_REQUEST, text)


def test_texts_that_are_no_values_are_an_invalid_configuration() -> None:
    text = "Invalid value x for configuration interval.ms: Not a number of type INT"
    assert refusal("s", interval_ms="x") == (ErrorCode.INVALID_CONFIG, text)
    assert refusal("s", metrics="a,,b") == (
        ErrorCode.INVALID_CONFIG,
        "Configuration 'metrics' values must not be empty.",
    )


@pytest.mark.parametrize(
    "pattern",
    ["client_id", "client_id=", "=x", "=", "client_id=a=b", "nope=a", "client_id=(", "client_id=a(?!b)", "client_id=*"],
)
def test_a_match_that_is_none_is_refused_by_its_text(pattern: str) -> None:
    assert refusal("s", match=pattern) == (
        ErrorCode.INVALID_CONFIG,
        f"Illegal client matching pattern: {pattern}",
    )


def test_equals_signs_at_the_end_are_dropped_as_by_java() -> None:
    assert parse("s", {"match": "client_id=a=="}).match["client_id"].matches("a")
