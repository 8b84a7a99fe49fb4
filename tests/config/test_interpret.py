"""Every key that a user sets is used or reported."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.interpret import did_you_mean, forwarded_ports, interpret
from kpybroker.config.keys.own import GRAPHITE_REPORTER
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.replication import RACK_AWARE_SELECTOR
from kpybroker.config.keys.security import PER_MECHANISM_ONLY
from kpybroker.config.keys.status import HONOURED, SECURITY


def test_kraft_keys_without_a_kraft_file_are_reported() -> None:
    (note,) = interpret({"controller.quorum.voters": "1@h:1"}).notes
    assert note.text.startswith("controller.quorum.voters has no effect: ")


@pytest.mark.parametrize("name", sorted(BROKER_KEYS))
def test_a_known_key_is_reported_exactly_when_it_has_no_effect(name: str) -> None:
    value = {"process.roles": "broker,controller", "replica.selector.class": RACK_AWARE_SELECTOR}.get(name, "1")
    notes = interpret({name: value}).notes
    status = BROKER_KEYS[name].status
    # alone, without its prefix or a listener that uses it
    needs_more = name in {*PER_MECHANISM_ONLY, "sasl.enabled.mechanisms", "kafka.metrics.reporters"} or (
        name.startswith("ssl.") and status == HONOURED
    )
    assert [note.key for note in notes] == ([] if status == HONOURED and not needs_more else [name])
    restricts = status in SECURITY or name.endswith(".policy.class.name") or needs_more
    assert any(note.serious for note in notes) is restricts


def test_a_replica_selector_that_is_not_available_is_reported() -> None:
    (note,) = interpret({"replica.selector.class": "com.example.Selector"}).notes
    assert note.text.startswith("replica.selector.class=com.example.Selector has no effect: only ")
    assert note.serious


def test_only_limits_of_connections_have_an_effect_for_one_listener() -> None:
    (note,) = interpret({"listener.name.internal.queued.max.request.bytes": "5"}).notes
    assert note.text.startswith("listener.name.internal.queued.max.request.bytes has no effect: ")
    for key in ("max.connections", "max.connection.creation.rate"):
        assert interpret({key: "5"}).notes == interpret({f"listener.name.internal.{key}": "5"}).notes == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log.retention.hour", "did you mean log.retention.hours?"),
        ("log_retention_hours", "did you mean log.retention.hours?"),
        ("retention.ms", "retention.ms is a topic's key; did you mean log.retention.ms?"),
        ("remote.storage.enable", "is a topic's key, set it on topics"),
        ("zzz", "zzz is not a configuration key of Kafka 3.9 or 4.3 and has no effect"),
        ("confluent.balancer.enable", "is not a configuration key"),
    ],
)
def test_an_unknown_key_is_reported_with_a_guess(name: str, expected: str) -> None:
    (note,) = interpret({name: "1"}).notes
    assert expected in note.text
    assert note.serious


def test_a_name_like_no_key_has_no_guess() -> None:
    assert did_you_mean("zzz") is None


REPORTERS, SWITCH = "kafka.metrics.reporters", "kafka.graphite.metrics.reporter.enabled"


@pytest.mark.parametrize(
    ("props", "texts"),
    [
        ({REPORTERS: GRAPHITE_REPORTER, SWITCH: "true"}, []),
        (
            {REPORTERS: f"{GRAPHITE_REPORTER}, kafka.metrics.KafkaCSVMetricsReporter", SWITCH: "true"},
            [
                "kafka.metrics.reporters=kafka.metrics.KafkaCSVMetricsReporter has no effect: only "
                f"{GRAPHITE_REPORTER} is available"
            ],
        ),
        (
            {REPORTERS: GRAPHITE_REPORTER},
            [f"{REPORTERS}={GRAPHITE_REPORTER} has no effect: {SWITCH} is not true"],
        ),
        ({SWITCH: "true"}, [f"{SWITCH} has no effect: {REPORTERS} does not name {GRAPHITE_REPORTER}"]),
        ({SWITCH: "false"}, []),
    ],
)
def test_a_reporter_that_sends_nothing_is_reported(props: dict[str, str], texts: list[str]) -> None:
    notes = interpret(props).notes
    assert [note.text for note in notes] == texts
    assert all(note.serious for note in notes)


def test_a_key_that_kafka_4_removed_is_named_in_its_place() -> None:
    props = {"kpybroker.kafka.version": "4.3", "zookeeper.connect": "h:1", "log.message.format.version": "3.0"}
    texts = [note.text for note in interpret(props).notes]
    assert texts == [
        "log.message.format.version has no effect: as in Kafka since 3.0: records are always written in format v2",
        "zookeeper.connect is no key of Kafka 4.3, and has its effect here all the same",
    ]
    assert not interpret({"kpybroker.kafka.version": "3.9", "zookeeper.connect": "h:1"}).notes


@pytest.mark.parametrize(
    ("listeners", "advertised", "named"),
    [
        ("PLAINTEXT://:9092", "PLAINTEXT://localhost:29092", ["PLAINTEXT://localhost:29092"]),
        ("PLAINTEXT://:9092", "PLAINTEXT://localhost:9092", []),
        ("PLAINTEXT://:0", "PLAINTEXT://localhost:29092", []),
        ("PLAINTEXT://:9092", "", []),
    ],
)
def test_an_advertised_port_that_no_listener_has_is_named(listeners: str, advertised: str, named: list[str]) -> None:
    config = BrokerConfig({"listeners": listeners, "advertised.listeners": advertised})
    notes = forwarded_ports(config.listeners, config.advertised_listeners)
    assert [(note.text.split(" port of ")[1].split(": clients")[0], note.serious) for note in notes] == [
        (address, True) for address in named
    ]
