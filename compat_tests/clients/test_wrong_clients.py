"""Clients that ask for what is not here fail soon, with a reason, and the log says once what to set in which client.

They ask for a group protocol that is not served (no level of `group.version` is finalized), or speak another protocol
to this port. Real Kafka is left out: it leaves librdkafka's clients waiting, and says nothing in its log.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, ShareConsumer

from compat_tests.conftest import Launcher
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

SOON_S = 120.0
CLASSIC = "group.protocol=classic in the client"
SHARED = "kpybroker feature upgrade share.version=1"


@pytest.fixture(autouse=True)
def _only_ours(broker: Broker) -> None:
    if broker.kind == "kafka":
        pytest.skip("Kafka does not say it")


@pytest.fixture
def said(broker: Broker) -> Callable[..., list[str]]:
    """The lines of the broker's log that have all these texts."""
    return partial(lines, broker)


def lines(broker: Broker, *texts: str) -> list[str]:
    return [line for line in broker.service.output().splitlines() if all(text in line for text in texts)]


def settings(broker: Broker, name: str, **more: str) -> dict[str, str | int]:
    return {"bootstrap.servers": broker.bootstrap, "group.id": name, "client.id": name, "log_level": 0, **more}


@pytest.fixture(scope="module")
def classic_broker(launcher: Launcher, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One whose cluster has not finalized `group.version`."""
    if request.config.getoption("--kafka-version"):
        pytest.skip("in the place of a release the broker offers what that offered, and librdkafka waits")
    broker = launcher.broker(kpybroker_new_cluster_features="none")
    yield broker
    broker.service.kill()


def test_confluent_consumer_of_the_new_protocol(classic_broker: Broker, name: str) -> None:
    create_topic(classic_broker.bootstrap, name)
    consumer = Consumer(settings(classic_broker, name, **{"group.protocol": "consumer"}))
    consumer.subscribe([name])
    try:

        def error() -> KafkaError | None:
            message = consumer.poll(0.1)
            return message and message.error()

        reported = eventually(error, "an error", SOON_S)
        assert reported.fatal() or reported.code() == KafkaError._FATAL
        assert "API version not supported" in reported.str()
    finally:
        consumer.close()
    (line,) = lines(classic_broker, f"client_id={name}", CLASSIC)
    assert "software=confluent-kafka-python-" in line
    assert f"group={name}" in line


def test_confluent_share_consumer(classic_broker: Broker, name: str) -> None:
    create_topic(classic_broker.bootstrap, name)
    consumer = ShareConsumer(settings(classic_broker, name))
    consumer.subscribe([name])
    try:

        def error() -> KafkaError | None:
            try:
                consumer.poll(0.1)
            except KafkaException as raised:
                found: KafkaError = raised.args[0]
                return found
            return None

        assert eventually(error, "an error", SOON_S).code() == KafkaError.UNSUPPORTED_VERSION
    finally:
        consumer.close()
    (line,) = lines(classic_broker, f"client_id={name}", "share groups (KIP-932) are not served", SHARED)
    assert "software=confluent-kafka-python-" in line


@pytest.mark.parametrize(
    ("command", "error", "fix"),
    [
        (["console-consumer", "--consumer-property", "group.protocol=consumer"], "Set group.protocol=classic", CLASSIC),
        (["console-share-consumer"], "does not support the share group protocol", SHARED),
    ],
    ids=["consumer", "share"],
)
def test_java_consumers_of_new_protocols(
    classic_broker: Broker, name: str, command: list[str], error: str, fix: str
) -> None:
    create_topic(classic_broker.bootstrap, name)
    tools = Tools("4.x", classic_broker.bootstrap)
    asked = ("--topic", name, "--group", name, "--consumer-property", f"client.id={name}", "--timeout-ms", "3000")
    result = tools.run(*command, *asked, check=False)
    assert error in result.out + result.err, str(result)
    (line,) = lines(classic_broker, f"client_id={name}", fix)
    assert "software=apache-kafka-java-4." in line


def test_a_classic_consumer_of_the_same_clients_is_served(made: str, broker: Broker, name: str) -> None:
    """Advertising what is refused keeps no client from what is served."""
    consumer = Consumer(settings(broker, name))
    try:
        consumer.subscribe([made])
        eventually(lambda: consumer.poll(0.1) is None and consumer.assignment(), "an assignment", SOON_S)
    finally:
        consumer.close()


def test_a_tls_client(broker: Broker, name: str, said: Callable[..., list[str]]) -> None:
    before = len(said("TLS handshake"))
    consumer = Consumer(settings(broker, name, **{"security.protocol": "ssl", "ssl.ca.location": "probe"}))
    try:
        with pytest.raises(KafkaException):
            consumer.list_topics(timeout=2)
    finally:
        consumer.close()
    assert before == 0
    (line,) = eventually(lambda: said("TLS handshake"), "the log", SOON_S)
    assert "TLS handshake on a PLAINTEXT listener: set security.protocol=PLAINTEXT in the client" in line


def test_an_http_client(broker: Broker, said: Callable[..., list[str]]) -> None:
    host, port = broker.bootstrap.split(":")
    for _ in range(3):
        connection = http.client.HTTPConnection(host, int(port), timeout=SOON_S)
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 400
        assert b"Kafka" in response.read()
        connection.close()
    (line,) = said("HTTP request on a Kafka port")
    assert "connect with a Kafka client" in line
