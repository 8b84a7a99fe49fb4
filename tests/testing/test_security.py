"""Brokers for tests with TLS, logins and ACLs: each library gets settings that work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kpybroker.testing import Broker, Brokers, Cluster, StartError, UsageError
from tests.support.programs.leftovers import Trace

in_both = pytest.mark.parametrize("in_thread", [False, True], ids=["process", "thread"])
WAIT_S = 120.0
WAYS: list[dict[str, Any]] = [
    {"tls": True},
    {"sasl": "plain"},
    {"tls": True, "sasl": "scram"},
    {"tls": True, "sasl": "oauthbearer"},
]


def produce(broker: Brokers, value: str, **options: Any) -> Any:
    """By confluent-kafka; the error of the record, None if it has arrived."""
    errors: list[Any] = []
    producer = broker.producer(library="confluent-kafka", **options)
    producer.produce("t", value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return errors[0]


def produce_by_kafka_python(broker: Brokers, value: str) -> None:
    producer = broker.producer(library="kafka-python")
    producer.send("t", value.encode()).get(WAIT_S)
    producer.close()


async def produce_by_aiokafka(broker: Brokers, value: str) -> None:
    async with broker.aio_producer() as producer:
        await producer.send_and_wait("t", value.encode())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
@in_both
def test_each_library_logs_in(way: dict[str, Any], in_thread: bool) -> None:
    with Broker(topics=["t"], in_thread=in_thread, **way) as broker:
        assert produce(broker, "confluent-kafka") is None
        produce_by_kafka_python(broker, "kafka-python")
        asyncio.run(produce_by_aiokafka(broker, "aiokafka"))
        consumer = broker.consumer("g", "t")
        assert consumer.poll(WAIT_S).value() == b"confluent-kafka"
        consumer.close()
        assert [record.text for record in broker.records("t")] == ["confluent-kafka", "kafka-python", "aiokafka"]
        trace = Trace(broker)
    trace.assert_gone()


@in_both
def test_a_client_without_the_settings_gets_nowhere(in_thread: bool) -> None:
    from confluent_kafka import Producer

    with Broker(topics=["t"], tls=True, sasl="scram", in_thread=in_thread) as broker:
        failed: list[Any] = []
        plain = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "error_cb": failed.append, "message.timeout.ms": 500}
        )
        plain.produce("t", "lost", on_delivery=lambda error, _: failed.append(error))
        assert plain.flush(WAIT_S) == 0
        assert failed[-1] is not None
        wrong = broker.config("confluent-kafka", sasl_password="wrong", message_timeout_ms=500)
        assert wrong["sasl.username"] == "alice"
        producer = Producer(wrong)
        producer.produce("t", "lost", on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(WAIT_S) == 0
        assert failed[-1] is not None
        assert broker.records("t") == []


@in_both
def test_acls_are_those_of_the_admin(in_thread: bool) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    with Broker(topics=["t"], acl=True, in_thread=in_thread) as broker:
        assert list(broker.users) == ["alice", "bob", "admin"]
        assert produce(broker, "not yet").name() == "TOPIC_AUTHORIZATION_FAILED"
        assert produce(broker, "admin", user="admin") is None
        allowed = AclBinding(
            ResourceType.TOPIC,
            "t",
            ResourcePatternType.LITERAL,
            "User:bob",
            "*",
            AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )
        admin = broker.admin()
        (created,) = admin.create_acls([allowed]).values()
        created.result(WAIT_S)
        assert produce(broker, "bob", user="bob") is None
        assert produce(broker, "alice").name() == "TOPIC_AUTHORIZATION_FAILED"
        assert [record.text for record in broker.records("t")] == ["admin", "bob"]


@in_both
def test_brokers_of_a_cluster_log_in_to_each_other(in_thread: bool) -> None:
    with Cluster(3, topics={"t": 3}, tls=True, sasl="scram", acl=True, in_thread=in_thread) as cluster:
        assert produce(cluster, "one", user="admin", acks="all") is None
        cluster[1].kill()
        assert produce(cluster, "two", user="admin", acks="all") is None
        cluster[1].start()
        cluster.add_broker()
        cluster.wait_for(lambda: all(sorted(one.isr) == [0, 1, 2] for one in cluster.topics()["t"].partitions))
        assert sorted(record.text or "" for record in cluster.records("t")) == ["one", "two"]


def test_a_kept_directory_keeps_its_certificates(tmp_path: Path) -> None:
    found: list[str] = []
    for in_thread in (False, True):
        with Broker(data_dir=tmp_path / "data", tls=True, topics=() if found else ["t"], in_thread=in_thread) as broker:
            assert produce(broker, "x") is None
            found.append(Path(broker.config("java")["ssl.truststore.location"]).read_text())
    assert found[0] == found[1]
    assert (tmp_path / "data-tls").is_dir()


def test_what_java_and_spark_get() -> None:
    with Broker(sasl="plain") as broker:
        java = broker.config("java", user="bob", group_id="g")
        assert java["group.id"] == "g"
        assert 'username="bob" password="bob-secret";' in java["sasl.jaas.config"]
        spark = broker.config("spark", subscribe="t")
        assert spark["kafka.security.protocol"] == "SASL_PLAINTEXT"
        assert spark["subscribe"] == "t"
        assert broker.config("java", security_protocol="PLAINTEXT")["security.protocol"] == "PLAINTEXT"


# --- wrong use


def test_a_user_that_does_not_exist_is_named_with_those_that_do() -> None:
    with Broker(sasl="plain") as broker, pytest.raises(UsageError, match=r"no user 'eve'\nfix: the users are alice"):
        broker.producer(user="eve")


def test_a_library_that_is_not_known_is_named() -> None:
    with (
        Broker(sasl="plain") as broker,
        pytest.raises(UsageError, match=r"library='librdkafka'\)\nfix: give one of 'confluent"),
    ):
        broker.config("librdkafka")


def test_a_user_without_logins_is_a_mistake() -> None:
    for tls in (False, True):
        with Broker(in_thread=True, tls=tls) as broker:
            assert broker.users == {}
            with pytest.raises(UsageError, match=r"user='alice', but the broker has no logins\nfix: give it sasl="):
                broker.config("java", user="alice")


def test_a_way_to_log_in_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"sasl='kerberos'\)\nfix: give one of 'plain', 'scram'"):
        Broker(sasl="kerberos")  # type: ignore[arg-type]


@in_both
def test_certificates_that_cannot_be_written_end_the_start(tmp_path: Path, in_thread: bool) -> None:
    (tmp_path / "data-tls").write_text("a file")
    with pytest.raises(StartError, match=r"certificates of TLS, .*, cannot be used: .*\nfix: .*choose another"):
        Broker(data_dir=tmp_path / "data", tls=True, in_thread=in_thread).start()
