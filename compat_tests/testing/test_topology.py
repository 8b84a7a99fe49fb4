"""A cluster that fails on command, under a stock producer and consumer: nothing is lost and nothing is there twice.

The levers are those of `kpybroker.testing.Cluster`; the clients are confluent-kafka's.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.cluster.traffic import Reader, Writer, verify
from compat_tests.support.waiting import eventually
from kpybroker.testing import Cluster, Partition

TOPIC, PARTITIONS = "orders", 2
CONFIG = {
    "min.insync.replicas": 2,
    "replica.lag.time.max.ms": 4_000,
    "zookeeper.session.timeout.ms": 2_000,
    "replica.fetch.wait.max.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
}
IMPATIENT = {"retry_backoff_ms": 50, "socket_timeout_ms": 2_000, "request_timeout_ms": 2_000}
"""A paused broker responds to nothing; by default a producer waits for it for half a minute."""
ENOUGH = 50


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, topics={TOPIC: PARTITIONS}, config=CONFIG) as running:
        yield running


class Traffic:
    """A producer and a consumer that receive no notice of what happens; `stop` compares what they have seen."""

    def __init__(self, cluster: Cluster) -> None:
        self._bootstrap = cluster.bootstrap_servers
        self.writer = Writer(self._bootstrap, TOPIC, PARTITIONS, **IMPATIENT)
        self.reader = Reader(self._bootstrap, TOPIC, "readers")
        self.reader.start()
        self.writer.start()
        self.writer.wait_for_more(ENOUGH)

    def wait_for_more(self) -> None:
        """The producer gets on, and the consumer too."""
        self.writer.wait_for_more(ENOUGH)
        goal = len(self.reader.seen) + ENOUGH
        eventually(lambda: len(self.reader.seen) >= goal, "the consumer reads on")

    def stop(self) -> None:
        self.writer.stop()
        eventually(lambda: len(self.reader.seen) >= self.writer.acked_count, "the consumer has read everything")
        self.reader.stop()
        verify(self._bootstrap, self.writer, self.reader)


def partition(cluster: Cluster, index: int = 0) -> Partition:
    return cluster.topics()[TOPIC].partitions[index]


def wait_in_sync(cluster: Cluster) -> None:
    def in_sync() -> bool:
        return all(set(one.isr) == {0, 1, 2} for one in cluster.topics()[TOPIC].partitions)

    cluster.wait_for(in_sync, timeout=60, what="all replicas in sync")


def test_a_leader_that_moves_under_its_clients_costs_nothing(cluster: Cluster) -> None:
    traffic = Traffic(cluster)
    for round_number in range(6):
        for index in range(PARTITIONS):
            to = (round_number + index) % 3
            cluster.move_leader(TOPIC, index, to=to)
            assert partition(cluster, index).leader == to
        traffic.wait_for_more()
    assert partition(cluster).leader_epoch >= 5
    cluster.move_leader(TOPIC, 0, to=None)
    assert partition(cluster).leader is None
    cluster.move_leader(TOPIC, 0, to=1)
    traffic.wait_for_more()
    cluster.shuffle_leaders(TOPIC, seed=3)
    traffic.wait_for_more()
    traffic.stop()


@pytest.mark.parametrize("how", ["kill", pytest.param("stop", marks=pytest.mark.wide)])
def test_a_broker_that_ends_and_returns_loses_nothing_that_all_had(cluster: Cluster, how: str) -> None:
    traffic = Traffic(cluster)
    for broker in (0, 1, 2):
        getattr(cluster[broker], how)()
        traffic.wait_for_more()
        cluster[broker].start()
        wait_in_sync(cluster)
    traffic.wait_for_more()
    traffic.stop()


@pytest.mark.wide
def test_a_paused_broker_leaves_the_isr_and_returns(cluster: Cluster) -> None:
    traffic = Traffic(cluster)
    leader = partition(cluster).leader
    assert leader is not None
    cluster[leader].pause()
    traffic.wait_for_more()  # after its session has ended, another one leads
    cluster.wait_for(lambda: leader not in partition(cluster).isr, timeout=60, what="it is out of the ISR")
    cluster[leader].resume()
    wait_in_sync(cluster)
    follower = next(broker for broker in cluster.ids if broker != partition(cluster).leader)
    cluster[follower].pause()
    cluster.wait_for(lambda: follower not in partition(cluster).isr, timeout=60, what="it is out of the ISR")
    traffic.wait_for_more()
    cluster[follower].resume()
    wait_in_sync(cluster)
    traffic.stop()


def test_a_leader_that_is_cut_off_from_everything_but_clients_acknowledges_nothing(cluster: Cluster) -> None:
    traffic = Traffic(cluster)
    leader = partition(cluster).leader
    assert leader is not None
    others = [broker for broker in cluster.ids if broker != leader]
    cluster.partition([leader], others, coordination=others)
    traffic.wait_for_more()
    assert partition(cluster).leader in others
    cluster.heal()
    wait_in_sync(cluster)
    traffic.wait_for_more()
    traffic.stop()


@pytest.mark.wide
def test_brokers_that_cannot_reach_each_other_stop_writes_and_nothing_else(cluster: Cluster) -> None:
    traffic = Traffic(cluster)
    cluster.partition([0], [1], [2])
    cluster.heal()
    traffic.wait_for_more()
    wait_in_sync(cluster)
    traffic.stop()


@pytest.mark.wide
def test_the_controllers_session_ends(cluster: Cluster) -> None:
    traffic = Traffic(cluster)
    for _ in range(3):
        controller = cluster.controller
        assert controller is not None
        controller.expire_session()
        assert cluster.controller is not None
        traffic.wait_for_more()
        wait_in_sync(cluster)
    traffic.stop()


def test_a_coordinator_that_moves_keeps_its_group_and_its_offsets(cluster: Cluster) -> None:
    cluster.produce(TOPIC, [f"{number}" for number in range(20)])
    consumer = cluster.consumer("billing", TOPIC)
    first = consumer.consume(10, 60)
    consumer.commit(asynchronous=False)
    assert len(first) == 10
    for to in (0, 1, 2):
        cluster.move_coordinator(group="billing", to=to)
        group = cluster.wait_group("billing", state="Stable", members=1, timeout=60)
        assert group.coordinator == to
    cluster.move_coordinator(group="billing", to=None)
    cluster.move_coordinator(group="billing", to=1)
    values = {message.value() for message in first}

    def has_all() -> bool:
        values.update(message.value() for message in consumer.consume(20, 1) if message.error() is None)
        return len(values) == 20

    eventually(has_all, "every record has been read")
    eventually(lambda: consumer.commit(asynchronous=False), "the offsets are committed")
    assert sum(cluster.committed("billing")[TOPIC].values()) == 20
    consumer.close()


def test_acks_all_waits_for_the_isr_and_for_a_follower_that_lags(cluster: Cluster) -> None:
    cluster.create_topic("payments", replication_factor=3)
    leader = cluster.topics()["payments"].partitions[0].leader
    follower = next(broker for broker in cluster.ids if broker != leader)
    producer = cluster.producer(acks="all", retries=0, message_timeout_ms=60_000)
    reports: list[str | None] = []

    def report(error: object, _message: object) -> None:
        reports.append(None if error is None else str(error))

    with cluster.lag_follower("payments", broker=follower):
        producer.produce("payments", b"1", on_delivery=report)
        producer.poll(0.2)
        assert cluster.topics()["payments"].partitions[0].high_watermark == 0
    assert producer.flush(60) == 0
    assert reports == [None]
    with cluster.shrink_isr("payments", to=[leader]):  # type: ignore[list-item]
        assert cluster.topics()["payments"].partitions[0].isr == (leader,)
        producer.produce("payments", b"2", on_delivery=report)
        assert producer.flush(60) == 0
    assert "Not enough in-sync replicas" in str(reports[1])
    producer.produce("payments", b"2", on_delivery=report)
    assert producer.flush(60) == 0


@pytest.mark.wide
def test_a_broker_is_added_and_another_one_removed_under_way(cluster: Cluster) -> None:
    traffic = Traffic(cluster)
    node = cluster.add_broker()
    cluster.create_topic("wide", replication_factor=4)
    cluster.produce("wide", ["1"])
    assert node.id in cluster.topics()["wide"].partitions[0].isr
    cluster.remove_broker(0)
    traffic.wait_for_more()
    assert cluster.ids == [1, 2, 3]
    traffic.stop()
