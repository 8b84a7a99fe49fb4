"""MirrorMaker 2's connectors in a distributed Connect cluster, whose workers are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from compat_tests.conftest import Launcher
from compat_tests.connect.mirror.mirrors import QUICK, new_broker
from compat_tests.connect.workers import DEADLINE_S, Place, Worker
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.topics.origin import Origin, topics
from compat_tests.support.waiting import eventually

TOPIC, GROUP = "shop.orders", "readers"
MIRRORED = f"near.{TOPIC}"
PACKAGE = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Workers(NamedTuple):
    """Two workers on `far`, which keep their own topics there too."""

    near: Broker
    far: Broker
    both: list[Worker]


@pytest.fixture(params=["to-kafka", "from-kafka"])
def workers(request: pytest.FixtureRequest, launcher: Launcher, tmp_path: Path) -> Iterator[Workers]:
    kinds = ["kafka", launcher.kind] if request.param == "from-kafka" else [launcher.kind, "kafka"]
    near, far = (new_broker(launcher, kind, f"{at}-{tmp_path.name}") for kind, at in zip(kinds, "nf", strict=True))
    made = Workers(near, far, [])
    try:
        for broker in (near, far):
            broker.start()
        place = Place(far.bootstrap, tmp_path, "mirror")
        made.both.extend(Worker(f"worker-{n}", place) for n in range(2))
        for worker in made.both:
            worker.start()
        yield made
    finally:
        for worker in made.both:
            worker.service.kill()
        for broker in (near, far):
            broker.service.kill()


def configure(workers: Workers) -> None:
    """The three connectors, as MirrorMaker's own process would run them."""
    common = {
        "source.cluster.alias": "near",
        "target.cluster.alias": "far",
        "source.cluster.bootstrap.servers": workers.near.bootstrap,
        "target.cluster.bootstrap.servers": workers.far.bootstrap,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        "tasks.max": "1",
        **QUICK,
    }
    factor = "topic.replication.factor"
    own = {
        "Source": {
            "topics": r"shop\..*",
            "replication.factor": "1",
            f"offset-syncs.{factor}": "1",
            "source.consumer.isolation.level": "read_committed",
            "source.consumer.max.poll.records": "100",
            "exactly.once.support": "required",
        },
        "Checkpoint": {"groups": GROUP, f"checkpoints.{factor}": "1", f"offset-syncs.{factor}": "1"},
        "Heartbeat": {f"heartbeats.{factor}": "1"},
    }
    for name, keys in own.items():
        config = common | keys | {"connector.class": f"{PACKAGE}.Mirror{name}Connector"}
        workers.both[0].insist("PUT", f"connectors/mirror-{name.lower()}/config", config)


def test_each_record_once_while_workers_die(workers: Workers) -> None:
    """Each worker that runs the source's task is killed while it copies; the group is translated in the end."""
    origin = Origin(workers.near, TOPIC, 2)
    configure(workers)
    origin.write(50)
    origin.arrived(workers.far, MIRRORED)
    for _ in workers.both:
        runner = running(workers)
        origin.write(150)
        origin.write_in_transactions(50)
        origin.arrived(workers.far, MIRRORED, share=0.7)
        runner.service.kill()
        found = origin.arrived(workers.far, MIRRORED)
        runner.start()
    quick.read(workers.near.bootstrap, [(TOPIC, 0)], 1, group=GROUP)  # Kafka makes the topic of groups
    ends = [quick.end_offset(workers.near.bootstrap, TOPIC, number) for number in range(2)]
    parts = [TopicPartition(TOPIC, number, end) for number, end in enumerate(ends)]
    admin = quick.admin_client(workers.near.bootstrap)
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, parts)])[GROUP].result(DEADLINE_S)
    has_read = [len(messages) for messages in found]
    origin.write(1)
    copies = origin.arrived(workers.far, MIRRORED)

    def translated() -> bool:
        """Which offset that is depends on the markers of transactions; which record is next does not."""
        there = quick.committed(workers.far.bootstrap, GROUP, [(MIRRORED, number) for number in range(2)])
        before = [sum(one.offset() < at for one in part) for part, at in zip(copies, there, strict=True)]
        assert before == has_read, f"{there} is after {before} records, not {has_read}"
        return True

    eventually(translated, f"{GROUP} is translated", DEADLINE_S)
    assert {"heartbeats", "near.checkpoints.internal", MIRRORED} <= set(topics(workers.far.bootstrap))
    origin.arrived(workers.far, MIRRORED)


def running(workers: Workers) -> Worker:
    """The one that has the task of the source connector."""
    alive = next(worker for worker in workers.both if worker.service.running)
    found = alive.where("mirror-source")
    return next(worker for worker in workers.both if worker.id == found)
