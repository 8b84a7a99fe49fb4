"""What followers do besides copying: serve the consumers of their rack (KIP-392), take messages of any size, and forget
what was deleted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from compat_tests.cluster.conftest import MakeCluster
from compat_tests.cluster.traffic import wait_for_equal_logs
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.records import digest
from compat_tests.support.security.logins import reach
from compat_tests.support.services import write_properties
from compat_tests.support.waiting import eventually

RACK_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LARGE = 10 * 1024 * 1024
LARGE_COUNT = 12


class RackConsumer:
    """librdkafka, which says how many bytes of the topic's records came from which broker."""

    def __init__(self, cluster: Cluster, rack: str, topic: str, **config: object) -> None:
        self._received: dict[int, int] = {}
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.consumer = Consumer(
            {
                **reach(cluster.bootstrap),
                "group.id": "none",
                "client.rack": rack,
                "statistics.interval.ms": 100,
                "stats_cb": self._count,
                "fetch.wait.max.ms": 50,
                "enable.auto.commit": False,
                **quick.QUIET,
                **keys,
            }
        )
        self.consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def _count(self, text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        self._received = {broker["nodeid"]: broker["rxbytes"] for broker in brokers if broker["nodeid"] >= 0}

    def read(self, count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            message = self.consumer.poll(quick.DEADLINE_S)
            assert message is not None, f"{len(found)} of {count}"
            assert message.error() is None, message.error()
            found.append(message.value().decode())
        return found

    def received(self) -> dict[int, int]:
        """Bytes by broker, as of now."""
        self._received = {}
        while not self._received:
            message = self.consumer.poll(0.2)
            assert message is None, "there is more to read"
        return self._received


@pytest.fixture
def racks(own_cluster: MakeCluster) -> Cluster:
    """Brokers 1 to 3, each in its rack: a, b, c."""
    cluster = own_cluster(replica_selector_class=RACK_SELECTOR)
    for broker, rack in zip(cluster.brokers.values(), "abc", strict=True):
        broker.properties["broker.rack"] = rack
        write_properties(broker.config_file, broker.properties)
    cluster.start()
    return cluster


@pytest.mark.parametrize("isolation", [pytest.param("read_uncommitted", marks=pytest.mark.wide), "read_committed"])
def test_a_consumer_reads_from_the_replica_of_its_rack(racks: Cluster, name: str, isolation: str) -> None:
    """The leader sends it there, and when that one dies it comes back to the leader."""
    racks.create(name, "1:2:3")
    consumer = RackConsumer(racks, "c", name, isolation_level=isolation)
    values = [f"{n} {'x' * 1000}" for n in range(500)]
    producer = Producer({**reach(racks.bootstrap), "transactional.id": name, **quick.QUIET})
    producer.init_transactions(quick.DEADLINE_S)
    for ended_by in ("abort_transaction", "commit_transaction"):
        producer.begin_transaction()
        for value in values:
            producer.produce(name, f"{ended_by} {value}", partition=0)
        assert producer.flush(quick.DEADLINE_S) == 0  # an abort forgets what is not sent yet
        getattr(producer, ended_by)(quick.DEADLINE_S)
    seen = [f"commit_transaction {value}" for value in values]
    if isolation == "read_uncommitted":
        seen = [f"abort_transaction {value}" for value in values] + seen
    assert consumer.read(len(seen)) == seen
    from_broker = consumer.received()
    assert from_broker[3] > 1000 * len(values) > 20 * from_broker[1]

    racks.brokers[3].kill()
    quick.fill(racks.bootstrap, name, ["after"])
    assert consumer.read(1) == ["after"]
    consumer.consumer.close()


def test_a_rack_with_no_replica_reads_from_the_leader(racks: Cluster, name: str) -> None:
    racks.create(name, "1:2")
    quick.fill(racks.bootstrap, name, [f"{n} {'x' * 1000}" for n in range(500)])
    consumer = RackConsumer(racks, "c", name)
    consumer.read(500)
    from_broker = consumer.received()
    assert from_broker[1] > 500_000 > 20 * from_broker.get(2, 0)
    consumer.consumer.close()


def _large(seed: int) -> bytes:
    return seed.to_bytes(4, "big") * (LARGE // 4)


@pytest.mark.wide
def test_messages_of_10_mb_replicate_and_no_session_ends(own_cluster: MakeCluster, name: str) -> None:
    """Far more than `replica.fetch.max.bytes`, which is 1 MiB; and ZooKeeper hears from every broker all along.

    How long a message takes, and a broker's silence between two of them, are for the machine to say: both may take
    minutes. A producer that is idempotent writes each message once, however often it has to send it.
    """
    patience_ms = str(round(quick.DEADLINE_S * 1000))
    cluster = own_cluster(
        message_max_bytes="11000000", replica_lag_time_max_ms=patience_ms, zookeeper_session_timeout_ms=patience_ms
    )
    cluster.start()
    cluster.create(name, "1:2:3", "--config", "min.insync.replicas=3")
    sessions = [cluster.registration(broker_id).czxid for broker_id in cluster.brokers]
    limits = {"message.max.bytes": 11_000_000, "queue.buffering.max.kbytes": 200_000, "message.timeout.ms": 0}
    patient = {"request.timeout.ms": patience_ms, "socket.timeout.ms": patience_ms}
    producer = Producer({**reach(cluster.bootstrap), "enable.idempotence": True, **limits, **patient, **quick.QUIET})
    for seed in range(LARGE_COUNT):
        producer.produce(name, _large(seed), partition=0)
    assert producer.flush(5 * quick.DEADLINE_S) == 0
    cluster.wait_for_isr(name, {1, 2, 3})
    assert cluster.state(name) == (1, {1, 2, 3}, 0)
    wait_for_equal_logs(list(cluster.brokers.values()), name, 0)
    found = [digest(message.value()) for message in quick.read(cluster.bootstrap, [(name, 0)], LARGE_COUNT)]
    assert found == [digest(_large(seed)) for seed in range(LARGE_COUNT)]
    assert [cluster.registration(broker_id).czxid for broker_id in cluster.brokers] == sessions


# --- DeleteRecords


def delete_records(cluster: Cluster, directory: Path, topic: str, offset: int) -> str:
    wanted = directory / "delete.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": offset}], "version": 1}))
    return cluster.tools.run("delete-records", "--offset-json-file", str(wanted)).out


def earliest(cluster: Cluster, topic: str) -> int:
    """Asked again while the tool leaves the partition out: the broker that it asks does not know the new leader yet."""

    def offsets() -> str:
        return cluster.tools.run("get-offsets", "--topic", topic, "--time", "earliest").out.strip()

    return int(eventually(offsets, f"{topic} has a leader for get-offsets").rpartition(":")[2])


def test_what_was_deleted_is_gone_from_every_replica(cluster: Cluster, name: str, tmp_path: Path) -> None:
    """Of those that live when it is asked for, before the response; of others when they are back."""
    cluster.create(name, "1:2:3")
    quick.fill(cluster.bootstrap, name, [f"value {n}" for n in range(100)])
    cluster.wait_for_isr(name, {1, 2, 3})
    cluster.brokers[3].stop()
    assert f"partition: {name}-0\tlow_watermark: 40" in delete_records(cluster, tmp_path, name, 40)
    cluster.brokers[3].start()
    cluster.wait_for_isr(name, {1, 2, 3})
    # It is in sync before it learns where the log starts; asked once more, the leader waits for that.
    delete_records(cluster, tmp_path, name, 40)
    cluster.brokers[1].stop()
    cluster.wait_for_leader(name, 2)
    assert earliest(cluster, name) == 40
    cluster.brokers[2].stop()
    cluster.wait_for_leader(name, 3)
    assert earliest(cluster, name) == 40, "the one that was away knows"
    (message,) = quick.read(cluster.bootstrap, [(name, 0)], 1)
    assert (message.offset(), message.value()) == (40, b"value 40")
