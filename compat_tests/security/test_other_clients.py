"""Every client library at the doors of a locked broker: SASL_SSL with SCRAM-SHA-512, and SSL with its own certificate.

The authorizer lets one principal use a test's topic and group, so what is written and read shows who the client is.
Python's clients are in `make test`. Java's are `wide` because they take long, and those of Go and of Node because their
programs are built and fetched by `make compat`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.locked import DOORS, OTHER_USER, Caller, Locked, start_locked
from compat_tests.security.locked_clients import CLIENTS, PROGRAMS, PYTHON, Job, Refused
from compat_tests.support.quick import committed, create_topic, end_offset, read
from compat_tests.support.records import Record
from tests.support.network.certificates import Authority

PARTITIONS = 3
RECORDS = [
    Record(f"value {number} äöü {'x' * (number * 7 % 300)}", f"key-{number % 11}", (("number", str(number)),))
    for number in range(300)
]
EACH = [pytest.param(name, marks=[] if name in PYTHON else [pytest.mark.wide]) for name in CLIENTS]


@pytest.fixture(scope="module")
def locked(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    one = start_locked(launcher.unstarted, tmp_path_factory.mktemp("locked"))
    yield one
    one.broker.service.kill()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that did not sign the broker's certificate."""
    return Authority(tmp_path_factory.mktemp("stranger"))


def partitions(topic: str) -> list[tuple[str, int]]:
    return [(topic, partition) for partition in range(PARTITIONS)]


def stored(locked: Locked, topic: str) -> dict[tuple[int, int], Record]:
    """What the broker has, by partition and offset; librdkafka reads it on the plain listener."""
    found = {}
    for message in read(locked.plain, partitions(topic), len(RECORDS)):
        headers = tuple((name, data.decode()) for name, data in message.headers())
        record = Record(message.value().decode(), message.key().decode(), headers)
        found[message.partition(), message.offset()] = record
    return found


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("client", EACH)
def test_a_client_writes_and_reads_what_only_its_principal_may(
    locked: Locked, name: str, client: str, door: str
) -> None:
    caller = locked.caller(door)
    create_topic(locked.plain, name, PARTITIONS)
    locked.allow(caller.principal, name)
    done = CLIENTS[client](Job(caller, name, name, RECORDS))

    found = stored(locked, name)
    ends = [end_offset(locked.plain, *partition) for partition in partitions(name)]
    assert sum(ends) == len(found) == len(RECORDS)
    assert sorted(found.values(), key=number_of) == RECORDS
    assert not done.sent or [found[place] for place in done.sent] == RECORDS
    assert {(one.partition, one.offset): one for one in done.read} == found
    assert len(done.read) == len(RECORDS), "a record was read twice"
    assert sum(end > 0 for end in ends) > 1, "the keys chose several partitions"
    for partition in range(PARTITIONS):
        of_it = [one for one in done.read if one.partition == partition]
        assert [one.offset for one in of_it] == list(range(ends[partition]))
        for key in {one.key for one in of_it}:
            assert all(number_of(a) < number_of(b) for a, b in pairwise(one for one in of_it if one.key == key))
    assert [max(0, at) for at in committed(locked.plain, name, partitions(name))] == ends


def number_of(record: Record) -> int:
    return int(dict(record.headers)["number"])


UNAUTHORIZED = {
    "confluent": "Topic authorization failed",
    "kafka-python-3.0.12": "TopicAuthorizationFailedError",
    "aiokafka": "TopicAuthorizationFailedError",
    "java-3.9.1": "TopicAuthorizationException",
    "java-4.x": "TopicAuthorizationException",
    "franz-go": "TOPIC_AUTHORIZATION_FAILED",
    "kafka-go": "Unknown Topic Or Partition",  # it lists all topics, and does not see this one
    "sarama": "client is not authorized to access this topic",
    "kafkajs": "Not authorized to access topics: \\[Topic authorization failed\\]",
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("client", EACH)
def test_another_principal_at_the_same_door_is_not_authorized(
    locked: Locked, name: str, client: str, door: str
) -> None:
    create_topic(locked.plain, name, PARTITIONS)
    locked.allow(locked.caller(door).principal, name)
    refused(locked, client, locked.caller(door, OTHER_USER), name, UNAUTHORIZED[client])


WRONG_PASSWORD = {
    "franz-go": "SASL_AUTHENTICATION_FAILED.*SCRAM-SHA-512",
    "kafka-go": "SASL Authentication Failed",
    "sarama": "SASL Authentication failed|invalid credentials",
    "kafkajs": "KafkaJSSASLAuthenticationError: SASL SCRAM SHA512 authentication failed.*invalid credentials",
}
# OpenSSL's alert and Java's; it is lost where the client writes before it reads that the connection has ended
NO_CERTIFICATE_IN_GO = "tls: (certificate required|bad certificate)|EOF|connection reset"
NO_CERTIFICATE = {
    "franz-go": NO_CERTIFICATE_IN_GO,
    "kafka-go": NO_CERTIFICATE_IN_GO,
    "sarama": NO_CERTIFICATE_IN_GO,
    "kafkajs": "Connection error: .*(certificate required|bad certificate|ECONNRESET)|Closed connection",
}
UNKNOWN_AUTHORITY = {
    "franz-go": "x509: certificate signed by unknown authority",
    "kafka-go": "x509: certificate signed by unknown authority",
    "sarama": "x509: certificate signed by unknown authority",
    # the second where the broker sends its authority too, as OpenSSL does if its trust store is loaded
    "kafkajs": "Connection error: (unable to verify the first|self-signed certificate in)",
}


@pytest.mark.wide
@pytest.mark.parametrize("client", PROGRAMS)
def test_a_wrong_password_is_an_error_of_the_login(locked: Locked, name: str, client: str) -> None:
    create_topic(locked.plain, name, PARTITIONS)
    refused(locked, client, locked.caller("scram").but(password="wrong"), name, WRONG_PASSWORD[client])
    if locked.broker.kind == "kpybroker":
        assert "Failed authentication" in locked.broker.service.output()


@pytest.mark.wide
@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_without_a_certificate_is_refused(locked: Locked, name: str, client: str) -> None:
    create_topic(locked.plain, name, PARTITIONS)
    refused(locked, client, locked.caller("mtls").but(certificate="", key=""), name, NO_CERTIFICATE[client])
    if locked.broker.kind == "kpybroker":
        assert "the client shows no certificate" in locked.broker.service.output()


@pytest.mark.wide
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_refuses_a_broker_whose_authority_it_does_not_know(
    locked: Locked, stranger: Authority, name: str, client: str, door: str
) -> None:
    create_topic(locked.plain, name, PARTITIONS)
    refused(locked, client, locked.caller(door).but(ca=str(stranger.certificate)), name, UNKNOWN_AUTHORITY[client])


def refused(locked: Locked, client: str, caller: Caller, topic: str, text: str) -> None:
    """The client ends by itself, with that text (a client's own deadline has another), and nothing is stored."""
    with pytest.raises(Refused, match=text):
        CLIENTS[client](Job(caller, topic, topic, RECORDS[:5]))
    assert [end_offset(locked.plain, *partition) for partition in partitions(topic)] == [0] * PARTITIONS


def test_no_password_is_in_the_log(locked: Locked) -> None:
    """Last in this module."""
    log = locked.broker.service.output()
    assert "alice-secret" not in log
    assert "mallory-secret" not in log
