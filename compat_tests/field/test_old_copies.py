"""The tools of 0.8 and 0.10 that copy records: ReplayLogProducer, MirrorMaker, KafkaMigrationTool."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.field import stand_in_07
from compat_tests.field.era import Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.old_groups import Group

pytestmark = pytest.mark.wide

VALUES = [f"value {n}" for n in range(50)]
MIRRORS = [
    ("0.8.2.2", "old", "scala"),
    ("0.8.2.2", "old", "java"),
    ("0.10.2.2", "old", "java"),
    ("0.10.2.2", "new", "java"),
]
"""Release, and MirrorMaker's consumer (of ZooKeeper, or of the brokers) and producer."""


def test_a_log_is_replayed(cluster: Cluster, era: Era, name: str) -> None:
    """ReplayLogProducer copies a topic by a consumer of old and a producer, and it forgets its group.

    It ends when no message has arrived for ten seconds, with an exception that it reports and exit code 0.
    """
    copy = f"{name}-copy"
    for topic in (name, copy):
        cluster.create(topic, "1:2")
    quick.fill(cluster.bootstrap, name, VALUES)
    era.run("ReplayLogProducer", "--inputtopic", name, "--outputtopic", copy, "--sync", check=False)
    read = quick.read(cluster.bootstrap, [(copy, 0)], len(VALUES))
    assert [message.value().decode() for message in read] == VALUES
    assert quick.end_offset(cluster.bootstrap, copy, 0) == len(VALUES)


@pytest.mark.parametrize("kind", MIRRORS, ids="-".join)
def test_a_topic_is_mirrored(
    cluster: Cluster, other_cluster: Cluster, kind: tuple[str, str, str], name: str, tmp_path: Path
) -> None:
    """MirrorMaker with each consumer and producer of its time. Stopped in order, it has committed: the next run goes
    on there, and nothing arrives twice."""
    version, consumer, producer = kind
    cluster.create(name, "1:2")
    other_cluster.create(name, "1")
    reader, writer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
    place = {
        "old": f"zookeeper.connect={cluster.zookeeper}\nauto.offset.reset=smallest\n",
        "new": f"bootstrap.servers={cluster.bootstrap}\nauto.offset.reset=earliest\n",
    }
    target = {
        "scala": f"metadata.broker.list={other_cluster.bootstrap}\nrequest.required.acks=-1\n",
        "java": f"bootstrap.servers={other_cluster.bootstrap}\nacks=-1\n",
    }
    reader.write_text(f"group.id={name}\n{place[consumer]}")
    writer.write_text(target[producer])
    era = Era(version, cluster)
    # 0.10 has the Java producer only
    options = ["--new.producer"] if (version, producer) == ("0.8.2.2", "java") else []
    files = ("--consumer.config", str(reader), "--producer.config", str(writer))
    for part in (VALUES[:30], VALUES[30:]):
        quick.fill(cluster.bootstrap, name, part)
        done = VALUES.index(part[-1]) + 1
        with era.running(tmp_path, "MirrorMaker", *options, *files, "--whitelist", name) as mirror:
            mirror.wait_until(
                lambda done=done: quick.end_offset(other_cluster.bootstrap, name, 0) >= done,  # type: ignore[misc]
                f"the mirror has {done}",
            )
            mirror.stop()
    read = quick.read(other_cluster.bootstrap, [(name, 0)], len(VALUES))
    assert [message.value().decode() for message in read] == VALUES
    assert quick.end_offset(other_cluster.bootstrap, name, 0) == len(VALUES)


def migration(cluster: Cluster, name: str, directory: Path, jar: Path, reading: str) -> tuple[str, ...]:
    """The arguments of KafkaMigrationTool, with `reading` as settings of its consumer of 0.7. 0.10 has no such tool."""
    reader, writer = directory / "consumer", directory / "producer"
    reader.write_text(reading)
    writer.write_text(f"metadata.broker.list={cluster.bootstrap}\nrequest.required.acks=-1\n")
    jars = ("--kafka.07.jar", str(jar), "--zkclient.01.jar", str(directory / "zkclient-0.1.jar"))
    return (*jars, "--consumer.config", str(reader), "--producer.config", str(writer), "--whitelist", name)


def test_the_migration_tool_writes_what_its_consumer_reads(cluster: Cluster, name: str, tmp_path: Path) -> None:
    """KafkaMigrationTool: its producer of 0.8 with all that a consumer with the classes of 0.7's returns."""
    cluster.create(name, "1:2")
    records = tmp_path / "records"
    records.write_text("\n".join(VALUES) + "\n")
    words = migration(
        cluster, name, tmp_path, stand_in_07.compile_to(tmp_path), f"{stand_in_07.RECORDS_KEY}={records}\n"
    )
    with Era("0.8.2.2", cluster).running(tmp_path, "KafkaMigrationTool", *words) as tool:
        tool.wait_until(lambda: quick.end_offset(cluster.bootstrap, name, 0) >= len(VALUES), "all are there")
        tool.stop()
        assert "Exception" not in tool.said
    assert [message.value().decode() for message in quick.read(cluster.bootstrap, [(name, 0)], 50)] == VALUES
    assert quick.end_offset(cluster.bootstrap, name, 0) == len(VALUES)


def test_the_migration_tool_needs_kafka_07(cluster: Cluster, name: str, tmp_path: Path) -> None:
    """Without its jar the loader falls back to the classes of 0.8.2.2 around it. That consumer reads from the broker,
    and the tool does not understand its first message: it copies nothing, and goes on as a process."""
    cluster.create(name, "1:2")
    quick.fill(cluster.bootstrap, name, ["one"])
    reading = f"group.id={name}\nzookeeper.connect={cluster.zookeeper}\nauto.offset.reset=smallest\n"
    words = migration(cluster, name, tmp_path, tmp_path / "kafka-0.7.jar", reading)
    with Era("0.8.2.2", cluster).running(tmp_path, "KafkaMigrationTool", *words) as tool:
        said = tool.wait_for("java.lang.IllegalArgumentException")
        assert "FATAL Migration thread failure due to" in said
        assert len(Group(cluster, name, name).members) == 1
    assert quick.end_offset(cluster.bootstrap, name, 0) == 1
