"""Every key that a user sets is used or reported."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.fix import fix_for
from kpybroker.config.interpret import OtherNodes, did_you_mean, interpret
from kpybroker.config.keys.own import GRAPHITE_REPORTER
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.replication import RACK_AWARE_SELECTOR
from kpybroker.config.keys.security import PER_MECHANISM_ONLY
from kpybroker.config.keys.status import HONOURED, SECURITY
from kpybroker.config.values import ConfigTextError

KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "2001",
    "controller.quorum.voters": "2001@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    "inter.broker.listener.name": "PLAINTEXT",
}


def test_a_kraft_file_becomes_a_broker() -> None:
    config = BrokerConfig(interpret(KRAFT).props)
    assert config.get_int("broker.id") == 2001
    assert [str(endpoint) for endpoint in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(endpoint) for endpoint in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]


def test_each_kraft_key_is_accounted_for() -> None:
    texts = "\n".join(note.text for note in interpret(KRAFT).notes)
    for name in ("process.roles", "node.id=2001", "controller.listener.names", "controller.quorum.voters"):
        assert name in texts
    assert "CONTROLLER://:9093 is a controller's listener, not opened" in texts


def test_a_controller_without_a_broker_is_refused() -> None:
    with pytest.raises(ConfigTextError, match="describes a KRaft controller"):
        interpret({"process.roles": "controller"})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"process.roles": "broker"}, "process.roles=broker has its controller in another process"),
        ({"controller.quorum.voters": "1@a:1,2@b:1,3@c:1"}, "controller.quorum.voters names 3 controllers"),
        ({"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": "a:1,b:1"}, "names 2 controllers"),
        ({"controller.quorum.voters": "3000@a:1"}, "names another node than 2001"),
    ],
)
def test_a_node_of_a_kraft_cluster_is_refused_unless_it_is_said_with_whom(changes: dict[str, str], named: str) -> None:
    with pytest.raises(OtherNodes, match=named) as caught:
        interpret({**KRAFT, **changes})
    assert "--processes N" in fix_for(caught.value)
    for where in ("", "zookeeper:2181"):
        assert interpret({**KRAFT, **changes, "zookeeper.connect": where}).props["zookeeper.connect"] == where


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
        ("zzz", "zzz is not a configuration key of Kafka 3.9 and has no effect"),
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
