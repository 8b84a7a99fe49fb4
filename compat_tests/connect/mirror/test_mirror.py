"""MirrorMaker 2, exactly once, from one broker to another: records, topics, configurations and where groups stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from compat_tests.conftest import StartBroker
from compat_tests.connect.mirror.mirrors import QUICK
from compat_tests.connect.workers import DEADLINE_S, connect_service
from compat_tests.support import quick
from compat_tests.support.services import Broker, Service
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

TOPIC, PARTITIONS, RECORDS_AT_ONCE = "shop.orders", 2, 300
MIRRORED = f"near.{TOPIC}"
GROUP = "readers"


class Mirror:
    """Brokers `near` and `far`, and a MirrorMaker that brings to `far` what `near` has."""

    def __init__(self, near: Broker, far: Broker, directory: Path) -> None:
        self.near, self.far = near, far
        self.written = [0] * PARTITIONS
        flow = {
            "enabled": "true",
            "topics": r"shop\..*",
            "groups": GROUP,
            **QUICK,
            "offset.lag.max": "0",
        }
        common = {
            "clusters": "near, far",
            "near.bootstrap.servers": near.bootstrap,
            "far.bootstrap.servers": far.bootstrap,
            "far.exactly.once.source.support": "enabled",
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": f"http://127.0.0.1:{free_port()}",
            "far->near.enabled": "false",
            "far->near.emit.heartbeats.enabled": "false",
            "tasks.max": "2",
            "far.scheduled.rebalance.max.delay.ms": "0",
            "far.offset.flush.interval.ms": "500",
            "far.session.timeout.ms": "6000",
            "far.heartbeat.interval.ms": "500",
            # a mirror starts when what the one before it left open is aborted
            "far.producer.transaction.timeout.ms": "3000",
        }
        made = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
        kept = ("config.storage", "offset.storage", "status.storage")
        factors = {f"{topic}.replication.factor": "1" for topic in (*made, *kept)}
        properties = common | factors | {"replication.factor": "1"} | {f"near->far.{key}": flow[key] for key in flow}
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        self.maker: Service = connect_service("mirror-maker", main, directory, properties)

    def start(self) -> None:
        """It says nothing when it is ready; what it mirrors is waited for."""
        self.maker.start(lambda _: True)

    def write(self) -> None:
        """More records for each partition, with keys, headers, timestamps and a null now and then; in two codecs."""
        for codec in ("none", "zstd"):
            producer = Producer({"bootstrap.servers": self.near.bootstrap, "compression.codec": codec, **quick.QUIET})
            for partition in range(len(self.written)):
                for _ in range(RECORDS_AT_ONCE // 2):
                    number = self.written[partition]
                    value = None if number % 10 == 9 else f"order {number}".encode()
                    headers = [("n", str(number).encode()), ("null", None)]
                    stamp = 1_700_000_000_000 + number
                    producer.produce(TOPIC, value, f"k{number}", partition, timestamp=stamp, headers=headers)
                    self.written[partition] += 1
            assert producer.flush(DEADLINE_S) == 0

    def copies(self) -> list[Message]:
        """The committed records of far, once they are what near has: each once and in order."""
        parts, count = range(len(self.written)), sum(self.written)
        eventually(lambda: self.far_partitions() == len(parts), f"{MIRRORED} is made", DEADLINE_S)
        here = quick.read(self.near.bootstrap, [(TOPIC, part) for part in parts], count)
        mirrored = [(MIRRORED, part) for part in parts]
        there = eventually(lambda: quick.read(self.far.bootstrap, mirrored, count), "all is mirrored", DEADLINE_S)
        assert [content(message) for message in by_partition(there)] == [content(m) for m in by_partition(here)]
        return by_partition(there)

    def far_partitions(self) -> int:
        found = quick.admin_client(self.far.bootstrap).list_topics(timeout=DEADLINE_S).topics
        return len(found[MIRRORED].partitions) if MIRRORED in found else 0

    def grow(self) -> None:
        """One partition more."""
        partitions = len(self.written) + 1
        admin = quick.admin_client(self.near.bootstrap)
        admin.create_partitions([NewPartitions(TOPIC, partitions)])[TOPIC].result(DEADLINE_S)
        eventually(lambda: self.far_partitions() == partitions, f"{MIRRORED} has grown", DEADLINE_S)
        self.written.append(0)


def by_partition(messages: list[Message]) -> list[Message]:
    """In the order they were read, which is that of their offsets."""
    return sorted(messages, key=Message.partition)


def content(message: Message) -> tuple[object, ...]:
    return (message.partition(), message.key(), message.value(), message.timestamp(), message.headers())


@pytest.fixture
def mirror(own_broker: StartBroker, tmp_path: Path) -> Iterator[Mirror]:
    far = own_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    made = Mirror(own_broker(), far, tmp_path)
    quick.create_topic(made.near.bootstrap, TOPIC, PARTITIONS, retention_ms=-1, max_message_bytes=2_000_000)
    try:
        yield made
    finally:
        made.maker.kill()


def test_a_mirror_while_it_and_its_brokers_die(mirror: Mirror) -> None:
    """All records once, in order and as they were; settings and new partitions follow; a group goes on where it was."""
    mirror.write()
    mirror.start()
    first = mirror.copies()
    commit_to_the_end(mirror)
    ends = {message.partition(): message.offset() + 1 for message in first}
    stands_at(mirror, [ends[partition] for partition in range(PARTITIONS)])

    for death in ("mirror maker", "near", "far"):
        mirror.write()
        if death == "mirror maker":
            mirror.maker.kill()
            mirror.start()
        else:
            broker = mirror.near if death == "near" else mirror.far
            broker.kill()
            broker.start()
        mirror.copies()

    change_retention(mirror.near)
    mirror.grow()
    mirror.write()
    last = mirror.copies()
    eventually(lambda: settings(mirror.far) == ("123456789", "2000000"), "the settings are mirrored", DEADLINE_S)
    mirror.maker.kill()  # what a group does over there is its own from now on
    new = [content(message) for message in last if message.offset() >= ends.get(message.partition() or 0, 0)]
    assert [content(message) for message in by_partition(resume(mirror.far, len(new)))] == new
    internal = {f"mm2-{what}.near.internal" for what in ("configs", "offsets", "status")}
    topics = quick.admin_client(mirror.far.bootstrap).list_topics(timeout=DEADLINE_S).topics
    assert set(topics) >= internal | {MIRRORED, "heartbeats", "near.checkpoints.internal"}


def commit_to_the_end(mirror: Mirror) -> None:
    partitions = [(TOPIC, partition) for partition in range(PARTITIONS)]
    quick.read(mirror.near.bootstrap, partitions, sum(mirror.written), GROUP)


def stands_at(mirror: Mirror, offsets: list[int]) -> None:
    """The end there is not the end here: transactions leave markers between the copies."""
    partitions = [(MIRRORED, partition) for partition in range(PARTITIONS)]

    def translated() -> bool:
        found = quick.committed(mirror.far.bootstrap, GROUP, partitions)
        assert found == offsets, found
        return True

    eventually(translated, f"{GROUP} stands at {offsets} in {MIRRORED}", DEADLINE_S)


def resume(broker: Broker, count: int) -> list[Message]:
    """What the group reads where it has come to, and that it is no more than that."""
    settings = {
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 50,
        "enable.partition.eof": True,
    }
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings, **quick.QUIET})
    consumer.subscribe([MIRRORED])
    messages: list[Message] = []
    ends: set[int | None] = set()
    try:
        while len(ends) < PARTITIONS + 1:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{len(messages)} of {count} records"
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends.add(message.partition())
    finally:
        consumer.close()
    return messages


def change_retention(broker: Broker) -> None:
    operation = ConfigEntry("retention.ms", "123456789", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[operation])
    admin = quick.admin_client(broker.bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)


def settings(broker: Broker) -> tuple[str, str]:
    """The mirrored topic's retention and largest batch."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, MIRRORED)
    admin = quick.admin_client(broker.bootstrap)
    found = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    return found["retention.ms"].value, found["max.message.bytes"].value
