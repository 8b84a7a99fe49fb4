"""A consumer group moves from one cluster to the other behind MirrorMaker 2: nothing is lost, little is read twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from compat_tests.conftest import Launcher
from compat_tests.connect.mirror.mirrors import MirrorMaker, mirror_properties, new_broker
from compat_tests.connect.workers import DEADLINE_S
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.topics.origin import Content, Origin, content, topics
from compat_tests.support.waiting import eventually

TOPIC, PARTITIONS = "shop.orders", 2
GROUP, PROBE = "readers", "probe"
LAG_MAX = 10
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
COMMIT_EVERY = 50


class Way(NamedTuple):
    """MirrorMaker brings `TOPIC` of `old` into `mirrored` of `new`."""

    old: Broker
    new: Broker
    mirrored: str
    maker: MirrorMaker


@pytest.fixture(params=["renamed", "same-names"])
def policy(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=["to-kafka", "from-kafka"])
def way(request: pytest.FixtureRequest, policy: str, launcher: Launcher, tmp_path: Path) -> Iterator[Way]:
    kinds = ["kafka", launcher.kind] if request.param == "from-kafka" else [launcher.kind, "kafka"]
    old = new_broker(launcher, kinds[0], f"old-{tmp_path.name}")
    new = new_broker(launcher, kinds[1], f"new-{tmp_path.name}")
    keys = {"topics": r"shop\..*", "groups": f"{GROUP}|{PROBE}.*", "offset.lag.max": str(LAG_MAX)}
    addresses = {"old": old.bootstrap, "new": new.bootstrap}
    properties = mirror_properties(addresses, [("old", "new")], keys)
    if policy == "same-names":
        properties["replication.policy.class"] = IDENTITY
    maker = MirrorMaker("3.9.1", tmp_path, properties)
    try:
        for broker in (old, new):
            broker.start()
        yield Way(old, new, TOPIC if policy == "same-names" else f"old.{TOPIC}", maker)
    finally:
        maker.close()
        for broker in (old, new):
            broker.service.kill()


def test_a_group_goes_on_in_the_other_cluster(way: Way) -> None:
    """It has all records, and those again that its last translated position is behind; members are not moved."""
    origin = Origin(way.old, TOPIC, PARTITIONS)
    origin.write(100)
    way.maker.start()
    origin.arrived(way.new, way.mirrored)
    here = read_as(way.old, TOPIC, origin.count // 4)
    origin.write(100)
    here += read_as(way.old, TOPIC, origin.count // 8)
    origin.write_in_transactions(20)

    copies = origin.arrived(way.new, way.mirrored)
    seen = by_partition(here)
    # it compares with what it read of the group a second ago: a group that has moved since is moved back, by any broker
    for probe in (f"{PROBE}-1", f"{PROBE}-2"):
        look(way, origin, probe)
    again = eventually(lambda: repeated(way, copies, seen), f"{GROUP} is translated", DEADLINE_S)
    there = read_as(way.new, way.mirrored)
    moved = by_partition(there)
    for number, expected in enumerate(origin.expected):
        assert seen[number] == expected[: len(seen[number])]
        assert seen[number][: len(seen[number]) - again[number]] + moved[number] == expected

    # A look that had begun before that may still move the group back, on a busy machine: then it reads on from there.
    # What it read of the group and what it translates have schedules of their own: two probes, as above.
    for probe in (f"{PROBE}-3", f"{PROBE}-4"):
        look(way, origin, probe)
    read_as(way.new, way.mirrored)
    origin.write(10)
    origin.arrived(way.new, way.mirrored)
    assert by_partition(read_as(way.new, way.mirrored)) == [part[-50:] for part in origin.expected]
    check_it_is_not_moved_back(way, origin)


def repeated(way: Way, copies: list[list[Message]], seen: list[list[Content]]) -> list[int] | None:
    """How many records the group would see again in each partition, once that is as few as it must be.

    What Kafka promises (``OffsetSyncStore``): positions are remembered in distances that double, so what is repeated is
    at most what the group had left unread, and OFFSET.LAG.MAX. A list is true in itself, also of zeros.
    """
    positions = quick.committed(way.new.bootstrap, GROUP, [(way.mirrored, number) for number in range(PARTITIONS)])
    found = []
    for number, position in enumerate(positions):
        assert position >= 0, f"nothing is committed: {positions}"
        before = sum(message.offset() < position for message in copies[number])
        behind = len(seen[number]) - before
        unread = len(copies[number]) - len(seen[number])
        assert behind >= 0, f"partition {number}: {-behind} records would be lost"
        assert behind <= unread + LAG_MAX + COMMIT_EVERY, f"partition {number}: {behind} again, {unread} unread"
        found.append(behind)
    return found


def check_it_is_not_moved_back(way: Way, origin: Origin) -> None:
    """In the old cluster the group is behind."""
    places = [(way.mirrored, number) for number in range(PARTITIONS)]
    stands = quick.committed(way.new.bootstrap, GROUP, places)
    ends = look(way, origin, f"{PROBE}-5")
    assert quick.committed(way.new.bootstrap, GROUP, places) == stands
    assert all(end <= one for one, end in zip(stands, ends, strict=True)), f"{stands}, {ends}"
    shop = {name for name in topics(way.new.bootstrap) if "shop." in name}
    assert shop == {way.mirrored}


def look(way: Way, origin: Origin, probe: str) -> list[int]:
    """Another group, translated now, shows that all groups were looked at; the ends of the partitions."""
    places = [(way.mirrored, number) for number in range(PARTITIONS)]
    quick.read(way.old.bootstrap, [(TOPIC, number) for number in range(PARTITIONS)], origin.count, group=probe)
    ends = [messages[-1].offset() + 1 for messages in origin.arrived(way.new, way.mirrored)]

    def translated() -> bool:
        found = quick.committed(way.new.bootstrap, probe, places)
        assert all(end - LAG_MAX <= one <= end for one, end in zip(found, ends, strict=True)), f"{found}, {ends}"
        return True

    eventually(translated, f"{probe} is translated", DEADLINE_S)
    return ends


def by_partition(messages: list[Message]) -> list[list[Content]]:
    return [[content(one) for one in messages if one.partition() == number] for number in range(PARTITIONS)]


def read_as(broker: Broker, topic: str, each: int | None = None) -> list[Message]:
    """What a member of the group reads: `each` records of each partition, or all; it commits every COMMIT_EVERY."""
    settings = {
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings, **quick.QUIET})
    consumer.subscribe([topic])
    messages: list[Message] = []
    done: set[int | None] = set()
    count = [0] * PARTITIONS
    pending = 0
    try:
        while len(done) < PARTITIONS:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{len(messages)} records of {topic}"
            partition, error = message.partition(), message.error()
            assert partition is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                done |= {partition} if each is None else set()
                continue
            messages.append(message)
            count[partition] += 1
            pending += 1
            if count[partition] == each:
                done.add(partition)
                consumer.pause([TopicPartition(topic, partition)])
            if pending == COMMIT_EVERY:
                consumer.commit(asynchronous=False)
                pending = 0
        if pending:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return messages
