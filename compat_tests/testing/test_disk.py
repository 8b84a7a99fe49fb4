"""A disk that fails on command: what a stock producer receives, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from compat_tests.support.waiting import eventually
from kpybroker.testing import Broker, Cluster


@pytest.fixture
def own() -> Iterator[Broker]:
    with Broker(topics=["orders"]) as running:
        yield running


class Reports:
    """What became of each record, in the order of the reports."""

    def __init__(self, broker: Broker | Cluster, **settings: Any) -> None:
        self.producer: Producer = broker.producer(acks="all", retries=0, log_level=0, **settings)
        self.errors: list[int | None] = []

    def write(self, *values: str, topic: str = "orders") -> list[int | None]:
        """The error codes, None for those that are acknowledged."""

        def report(error: KafkaError | None, _message: object) -> None:
            self.errors.append(None if error is None else error.code())

        before = len(self.errors)
        for value in values:
            self.producer.produce(topic, value.encode(), on_delivery=report)
            assert self.producer.flush(60) == 0
        return self.errors[before:]


def values(broker: Broker | Cluster, topic: str = "orders") -> list[str | None]:
    return [record.text for record in broker.records(topic)]


def test_a_full_disk_is_reported_and_recovers(own: Broker) -> None:
    reports = Reports(own)
    assert reports.write("1") == [None]
    with own.faults.disk_full() as full:
        assert reports.write("2", "3") == [KafkaError.KAFKA_STORAGE_ERROR] * 2
        assert full.hits >= 2
        assert values(own) == ["1"]
    assert reports.write("4") == [None]
    assert values(own) == ["1", "4"]


def test_a_disk_that_fills_up_takes_what_fits(own: Broker) -> None:
    reports = Reports(own)
    own.faults.disk_full(after=10_000, path="orders-0/*")
    errors = reports.write(*["x" * 1_000] * 20)
    taken = errors.count(None)
    assert 5 < taken < 15
    assert set(errors[taken:]) == {KafkaError.KAFKA_STORAGE_ERROR}
    assert len(values(own)) == taken


def test_after_an_io_error_the_other_replicas_go_on() -> None:
    with Cluster(brokers=3, topics=["orders"], config={"replica.lag.time.max.ms": 1_000}) as cluster:
        reports = Reports(cluster, topic_metadata_refresh_interval_ms=100)
        assert reports.write("1") == [None]
        leader = cluster.topics()["orders"].partitions[0].leader
        assert leader is not None
        failure = cluster.faults.io_error("orders-0/*.log", operations=["write"], broker=leader, times=1)
        assert reports.write("2") == [KafkaError.KAFKA_STORAGE_ERROR]
        failure.wait()
        cluster.wait_for(lambda: not cluster[leader].is_up, what="the broker has no directory left, and ends")
        eventually(lambda: reports.write("3") == [None], "another replica leads")
        cluster[leader].start()
        cluster.wait_for(
            lambda: len(cluster.topics()["orders"].partitions[0].isr) == 3, timeout=60, what="all are in sync"
        )
        assert values(cluster)[0] == "1"
        assert values(cluster)[-1] == "3"
        assert "2" not in values(cluster)


def test_a_crash_before_the_fsync_loses_the_suffix_that_was_not_synced() -> None:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("orders", config={"flush.messages": 3})
        with cluster.faults.crash_before_fsync() as lossy:
            assert Reports(cluster).write("1", "2", "3", "4", "5") == [None] * 5
            cluster[0].kill()
            lossy.wait()
            cluster[0].start()
        kept = values(cluster)
        assert kept == ["1", "2", "3"]
        assert Reports(cluster).write("6") == [None]
        cluster[0].kill()  # without the rule, nothing that was written is lost
        cluster[0].start()
        assert values(cluster) == ["1", "2", "3", "6"]


def test_where_each_message_is_synced_no_crash_loses_an_acknowledged_one() -> None:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("orders", config={"flush.messages": 1})
        cluster.faults.crash_before_fsync(expect_unused=True)  # there is nothing that it could take
        for number in range(3):
            assert Reports(cluster).write(str(number)) == [None]
            cluster[0].kill()
            cluster[0].start()
        assert values(cluster) == ["0", "1", "2"]


def test_with_replicas_a_crash_of_one_loses_nothing() -> None:
    with Cluster(brokers=3, topics=["orders"]) as cluster:
        leader = cluster.topics()["orders"].partitions[0].leader
        assert leader is not None
        cluster.faults.crash_before_fsync(broker=leader)
        assert Reports(cluster).write("1", "2", "3") == [None] * 3
        cluster[leader].kill()
        # As in Kafka, a controller that is elected after the return of a leader does not know that it was gone.
        cluster.wait_for(lambda: cluster.topics()["orders"].partitions[0].leader != leader, what="another leader")
        cluster[leader].start()
        cluster.wait_for(lambda: len(cluster.topics()["orders"].partitions[0].isr) == 3, timeout=60, what="in sync")
        cluster.move_leader("orders", 0, to=leader)
        assert values(cluster) == ["1", "2", "3"]


def test_a_torn_write_is_cut_off() -> None:
    with Cluster(brokers=1, topics=["orders"]) as cluster:
        cluster.faults.torn_write("orders-0/*.log")
        assert Reports(cluster).write("1", "2") == [None] * 2
        cluster[0].kill()
        cluster[0].start()
        assert values(cluster) == ["1"]


def test_an_acknowledgement_takes_as_long_as_the_fsync(own: Broker) -> None:
    own.create_topic("synced", config={"flush.messages": 1})
    reports = Reports(own)
    slow = own.faults.slow_fsync(60_000, path="synced-0/*")
    reports.producer.produce("synced", b"1", on_delivery=lambda error, _: reports.errors.append(error))
    reports.producer.poll(0.1)
    slow.wait()
    assert reports.errors == []
    slow.remove()
    assert reports.producer.flush(60) == 0
    assert reports.errors == [None]
