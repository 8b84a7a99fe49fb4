"""Waiting, the clock, a schema registry, errors, several brokers."""

from pathlib import Path

import pytest

from kpybroker.testing import (
    Broker,
    BrokerGone,
    Cluster,
    SchemaRegistry,
    StartError,
    TestingError,
    UsageError,
    WaitTimeout,
    wait_for,
)


def test_waiting(broker: Broker) -> None:
    consumer = broker.consumer("billing", "orders")
    consumer.poll(0)
    # Brokers.wait_group
    group = broker.wait_group("billing", "Stable", members=1)
    assert group.members[0].subscription == ("orders",)

    # Brokers.wait_assigned
    group = broker.wait_assigned("billing", "orders")
    assert group.members[0].assignment == {"orders": (0, 1, 2)}

    # Brokers.wait_for
    requests = broker.wait_for(lambda: broker.requests("SyncGroup"), timeout=30, what="an assignment")
    assert requests[0].api == "SyncGroup"

    # wait_for
    with Broker() as other:
        wait_for(lambda: [broker.is_running, other.is_running] == [True, True], timeout=10)
    consumer.close()


def test_the_clock(broker: Broker) -> None:
    # BrokerClock
    # BrokerClock.advance
    # Brokers.clock
    broker.create_topic("short", config={"retention.ms": 3_600_000, "segment.bytes": 1_048_576})
    broker.produce("short", ["old"])
    broker.clock.advance(days=8)
    assert broker.records("short") == []

    # BrokerClock.ahead_ms
    assert broker.clock.ahead_ms > 7 * 24 * 3_600_000

    # BrokerClock.now
    # BrokerClock.now_ms
    assert round(broker.clock.now().timestamp() * 1000) <= broker.clock.now_ms()


def test_a_registry(broker: Broker) -> None:
    # SchemaRegistry
    # SchemaRegistry.url
    # SchemaRegistry.start
    # SchemaRegistry.stop
    with SchemaRegistry(broker) as registry:
        settings = {"schema.registry.url": registry.url}  # of a serializer
        assert settings["schema.registry.url"].startswith("http://127.0.0.1:")

    # SchemaRegistry.kill
    # SchemaRegistry.log
    registry = SchemaRegistry(broker).start()
    assert registry.log() == ""  # no warning
    registry.kill()


def test_errors(broker: Broker, tmp_path: Path) -> None:
    # TestingError
    # UsageError
    with pytest.raises(UsageError) as caught:
        broker.records("orders", start=5, end=3)
    assert isinstance(caught.value, TestingError)
    assert caught.value.cause == "records(start=5, end=3)"
    assert caught.value.fix == "give a start that is not behind the end"

    # StartError
    with pytest.raises(StartError, match=r"num\.partitions"):
        Broker(config={"num.partitions": "many"}).start()

    # BrokerGone
    with pytest.raises(BrokerGone):
        Broker().bootstrap_servers  # noqa: B018 -- it is not started

    # WaitTimeout
    with pytest.raises(WaitTimeout, match="group billing"):
        broker.wait_group("billing", timeout=0.1)


def test_several_brokers() -> None:
    # Cluster
    with Cluster(brokers=3, topics={"orders": 3}) as cluster:
        cluster[1].kill()
        producer = cluster.producer(library="confluent-kafka")
        producer.produce("orders", b"written by the two others")
        assert producer.flush(60) == 0
        cluster[1].start()
