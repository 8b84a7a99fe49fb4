"""The console clients of 0.8 and 0.10, SimpleConsumerShell and DumpLogSegments."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.field.era import VERSIONS, Era
from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.old_groups import Group
from kpybroker.wire.messages.fetch import FetchRequest

pytestmark = pytest.mark.wide

VALUES = [f"value {n}" for n in range(50)]
FETCH_VERSIONS = {"0.8.2.2": 0, "0.10.2.2": 2}
"""Of Fetch: what each release asks with, and what its records look like (magic 0 and 1)."""


def fetched(cluster: Cluster, topic: str, version: int) -> bytes:
    """The records of partition 0 as a Fetch of this version returns them."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=1000,
        min_bytes=1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    leader = cluster.state(topic).leader
    with Raw(("127.0.0.1", cluster.brokers[leader].port)) as raw:
        response = raw.ask(request, version)
    return bytes(response.responses[0].partitions[0].records)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_what_the_scala_producer_sends_arrives(cluster: Cluster, era: Era, name: str, codec: str, acks: str) -> None:
    """ConsoleProducer with the Scala producer of old (Produce 0 and 1, magic 0), and the consumer of today."""
    cluster.create(name, "1:2")
    old = [] if era.version == "0.8.2.2" else ["--old-producer"]
    how = ("--topic", name, "--compression-codec", codec, "--request-required-acks", acks, "--sync")
    era.run("ConsoleProducer", *old, *how, stdin="\n".join(VALUES) + "\n")
    read = quick.read(cluster.bootstrap, [(name, 0)], len(VALUES))
    assert [message.value().decode() for message in read] == VALUES
    assert {message.key() for message in read} == {None}


def test_what_the_new_producer_of_its_time_sends_arrives(cluster: Cluster, era: Era, name: str) -> None:
    """ConsoleProducer with the Java producer of 0.8.2 and 0.10.2, with keys."""
    cluster.create(name, "1:2")
    new = ["--new-producer"] if era.version == "0.8.2.2" else []
    keys = ("--property", "parse.key=true", "--property", "key.separator=:")
    lines = "".join(f"{n}:{value}\n" for n, value in enumerate(VALUES))
    era.run("ConsoleProducer", *new, "--topic", name, "--sync", *keys, stdin=lines)
    read = quick.read(cluster.bootstrap, [(name, 0)], len(VALUES))
    assert [(message.key().decode(), message.value().decode()) for message in read] == [
        (f"{n}", value) for n, value in enumerate(VALUES)
    ]


def test_simple_consumer_reads_from_an_offset(cluster: Cluster, era: Era, name: str) -> None:
    """SimpleConsumerShell: Fetch 0 or 2 of batches that are stored in format v2, from the leader.

    A broker since Kafka 2.4 serves these versions of Fetch as a leader only. The tool ignores the error that a follower
    responds with, and takes it for the end.
    """
    cluster.create(name, "1:2")
    quick.fill(cluster.bootstrap, name, VALUES)
    where = ("--topic", name, "--partition", "0", "--no-wait-at-logend")

    def read(*options: str) -> list[str]:
        return era.run("SimpleConsumerShell", *where, *options).lines

    def end(offset: int) -> str:
        return f"Terminating. Reached the end of partition ({name}, 0) at offset {offset}"

    assert read("--offset", "-2") == [*VALUES, end(50)]
    assert read("--offset", "45", "--replica", "1") == [*VALUES[45:], end(50)]
    assert read("--offset", "10", "--max-messages", "5") == VALUES[10:15]
    assert read("--offset", "-2", "--replica", "2") == [end(0)]


@pytest.mark.parametrize("version", VERSIONS)
def test_dump_log_segments_reads_what_a_fetch_of_its_time_returns(
    cluster: Cluster, version: str, name: str, tmp_path: Path
) -> None:
    """A broker of today stores format v2 only, which DumpLogSegments of old cannot read, Kafka's files no more than
    ours. What it sends a client of that time is a log of that time: each message is valid, offsets follow each other.
    """
    cluster.create(name, "1:2")
    quick.fill(cluster.bootstrap, name, VALUES)
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(fetched(cluster, name, FETCH_VERSIONS[version]))
    era = Era(version, cluster)
    said = era.run("DumpLogSegments", "--files", str(file), "--print-data-log", "--deep-iteration").lines
    rows = [line for line in said if line.startswith("offset: ")]
    assert [int(row.split()[1]) for row in rows] == list(range(len(VALUES)))
    assert all("isvalid: true" in row for row in rows)
    assert [row.partition("payload: ")[2] for row in rows] == VALUES
    assert all(f"magic: {0 if version == '0.8.2.2' else 1}" in row for row in rows)


def test_dump_log_segments_on_a_file_of_today(cluster: Cluster, era: Era, name: str) -> None:
    """It cannot read format v2, whichever broker wrote the file: most often it ends with an exception, and which one
    depends on the bytes. 0.10 finds the index of a closed segment in order; that of the active one has spare room."""
    cluster.create(name, "1", "--config", "index.interval.bytes=100", "--config", "segment.bytes=1500")
    for n in range(10):
        quick.fill(cluster.bootstrap, name, [f"{n}" * 200])
    log = cluster.brokers[1].data_dir / f"{name}-0" / "00000000000000000000.log"
    result = era.run("DumpLogSegments", "--files", str(log), check=False)
    assert "isvalid: true" not in result.out
    if era.version == "0.10.2.2":
        index = log.with_suffix(".index")
        said = era.run("DumpLogSegments", "--files", str(index), "--index-sanity-check").out
        assert f"{index} passed sanity check." in said


def test_a_consumer_of_old_leaves_its_offsets_where_its_release_keeps_them(
    cluster: Cluster, era: Era, name: str, tmp_path: Path
) -> None:
    """`offsets.storage=kafka` with ``dual.commit.enabled``: both places have them, and the next member finds them."""
    cluster.create(name, "1:2")
    quick.fill(cluster.bootstrap, name, VALUES)
    settings = tmp_path / "consumer.properties"
    settings.write_text(
        f"group.id={name}\nzookeeper.connect={cluster.zookeeper}\nconsumer.timeout.ms=90000\n"
        "offsets.storage=kafka\ndual.commit.enabled=true\n"
    )
    how = ("--topic", name, "--consumer.config", str(settings))
    first = era.run("ConsoleConsumer", *how, "--from-beginning", "--max-messages", "30").lines
    assert first == VALUES[:30]
    assert Group(cluster, name, name).offsets == {0: 30}
    assert quick.committed(cluster.bootstrap, name, [(name, 0)]) == [30]
    cluster.tree.delete(f"/consumers/{name}/offsets", recursive=True)  # those of the brokers are enough
    rest = era.run("ConsoleConsumer", *how, "--max-messages", "20").lines
    assert rest == VALUES[30:]
