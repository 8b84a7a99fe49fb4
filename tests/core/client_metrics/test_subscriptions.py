"""Which subscriptions apply to a client, and what they ask for together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kpybroker.core.budget import UNOWNED
from kpybroker.core.client_metrics.configs import INTERVAL_MS_DEFAULT, parse
from kpybroker.core.client_metrics.subscriptions import NOTHING, Client, MergedSubscription, applying, merge, uuid_text

INSTANCE = bytes(range(16))
CLIENT = Client("app-1", "apache-kafka-java", "4.3.1", "10.0.0.7", 40_001, UNOWNED)


def applies(match: str, client: Client = CLIENT) -> bool:
    return names_of({"s": match}, client) == ["s"]


def names_of(matches: Mapping[str, str], client: Client = CLIENT) -> list[str]:
    subscriptions = {name: parse(name, {"match": match}) for name, match in matches.items()}
    steps = applying(subscriptions.items(), client.attributes(INSTANCE))
    try:
        while True:
            next(steps)
    except StopIteration as end:
        found: list[str] = end.value
        return found


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("", True),
        ("client_id=app-.*", True),
        ("client_id=app", False),  # the whole value must match
        ("client_software_name=apache-kafka-java,client_software_version=4\\..*", True),
        ("client_software_name=apache-kafka-java,client_software_version=3\\..*", False),
        ("client_source_address=10\\.0\\.0\\.\\d+", True),
        ("client_source_port=4000[1-9]", True),
        (f"client_instance_id={uuid_text(INSTANCE)}", True),
        ("client_instance_id=x", False),
    ],
)
def test_a_subscription_applies_to_clients_that_match_all_its_patterns(match: str, expected: bool) -> None:
    assert applies(match) is expected


def test_a_client_id_may_have_any_characters() -> None:
    client = CLIENT._replace(client_id="Zo\u00eb")
    assert applies("client_id=Zo\u00eb|x", client)
    assert applies("client_id=\\p{L}+", client)
    assert not applies("client_id=[a-zA-Z]+", client)


@pytest.mark.parametrize("client_id", [None, "x" * 250])
def test_no_pattern_matches_a_client_id_that_is_null_or_too_long(client_id: str | None) -> None:
    client = CLIENT._replace(client_id=client_id)
    assert not applies("client_id=.*", client)
    assert applies("client_source_port=.*", client)


def test_every_subscription_that_applies_is_named() -> None:
    assert names_of({"a": "", "b": "client_id=x", "c": "client_id=.*"}) == ["a", "c"]


def test_matching_lets_others_run() -> None:
    subscriptions = {str(n): parse("s", {"match": "client_id=(a|b|c)*d"}) for n in range(1000)}
    steps = applying(subscriptions.items(), CLIENT.attributes(INSTANCE))
    assert sum(1 for _ in steps) > 1


def merged(*props: Mapping[str, str]) -> MergedSubscription:
    return merge(parse("s", one) for one in props)


def test_a_client_gets_all_metrics_at_the_shortest_interval() -> None:
    both = merged({"metrics": "b,a", "interval.ms": "2000"}, {"metrics": "a,c", "interval.ms": "1000"})
    assert (sorted(both.metrics), both.interval_ms) == (["a", "b", "c"], 1000)
    assert merged({"metrics": "a", "interval.ms": "3600000"}).interval_ms == INTERVAL_MS_DEFAULT
    assert merged({"metrics": "a"}, {"metrics": "*"}).metrics == ("*",)
    assert merged() == NOTHING


@pytest.mark.parametrize(
    ("instance_id", "props", "expected"),
    [
        ("3e47b75000b0924b6c9ba5759a7cf15d", None, 483_863_277),
        (
            "9bf39d7734eec78dbf1303eb89e97f4b",
            {"metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.,org.apache.kafka.admin."},
            1_593_592_020,
        ),
    ],
)
def test_the_subscription_id_is_that_of_kafka(instance_id: str, props: dict[str, str] | None, expected: int) -> None:
    # as Kafka 4.3.1 responded
    subscription = NOTHING if props is None else merged(props)
    assert subscription.subscription_id(bytes.fromhex(instance_id)) == expected


def test_another_interval_or_other_metrics_have_another_id() -> None:
    ids = {
        MergedSubscription(metrics, interval_ms).subscription_id(INSTANCE)
        for metrics in ((), ("*",), ("a",))
        for interval_ms in (100, 300_000)
    }
    assert len(ids) == 6
    assert all(-(1 << 31) <= one < 1 << 31 for one in ids)
