"""The same tools of old, one after the other, against kpybroker and against Kafka 3.9.1: line by line the same output.

Nothing here depends on `--broker`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.field.conftest import MakeCluster
from compat_tests.field.era import VERSIONS, Era, plain
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster

TOPIC, GROUP = "orders", "readers"
COUNT = 20


def played(cluster: Cluster, version: str, directory: Path) -> list[tuple[str, list[str]]]:
    """What each tool says, in order, without times; files that it writes too."""
    era = Era(version, cluster)
    directory.mkdir()
    settings, offsets, plan = (directory / name for name in ("consumer.properties", "offsets", "plan.json"))
    settings.write_text(f"group.id={GROUP}\nzookeeper.connect={cluster.zookeeper}\nconsumer.timeout.ms=90000\n")
    moves = ", ".join(f'{{"topic": "{TOPIC}", "partition": {n}, "replicas": [{n + 1}]}}' for n in (0, 1))
    plan.write_text(f'{{"version": 1, "partitions": [{moves}]}}')
    topic = ("--topic", TOPIC)
    heard: list[tuple[str, list[str]]] = []

    def tell(tool: str, *arguments: str, stdin: str | None = None, check: bool = True) -> None:
        result = era.run(tool, *arguments, stdin=stdin, check=check)
        said = [line.replace(str(directory), "DIRECTORY") for line in plain(result.out)]
        heard.append((" ".join([tool, *arguments]).replace(str(directory), "DIRECTORY"), [str(result.code), *said]))

    tell("TopicCommand", "--create", *topic, "--replica-assignment", "1:2,2:1")
    cluster.wait(lambda: TOPIC in cluster.metadata(1).topics, "the brokers know it")
    quick.fill(cluster.bootstrap, TOPIC, ["0:a"] * COUNT, 0)
    quick.fill(cluster.bootstrap, TOPIC, ["1:a"] * COUNT, 1)
    tell("TopicCommand", "--create", *topic, "--partitions", "1", "--replication-factor", "1", check=False)
    tell("TopicCommand", "--describe", *topic)
    tell("GetOffsetShell", *topic, "--time", "-1", "--partitions", "0")
    tell("GetOffsetShell", *topic, "--time", "-2", "--partitions", "1")
    tell("SimpleConsumerShell", *topic, "--partition", "1", "--offset", "15", "--no-wait-at-logend")
    tell("ConsoleProducer", *topic, "--sync", stdin="more\n")
    limits = ("--max-messages", str(2 * COUNT + 1), "--from-beginning", "--consumer.config", str(settings))
    read = era.run("ConsoleConsumer", *topic, *limits).lines
    heard.append(("ConsoleConsumer", sorted(read)))
    checked = era.run("ConsumerOffsetChecker", "--group", GROUP, *topic).out
    # where the one record went, its producer chose by chance
    heard.append(("ConsumerOffsetChecker", [str(sum(int(line.split()[3]) for line in plain(checked)[1:]))]))
    tell("VerifyConsumerRebalance", "--group", GROUP)
    tell("UpdateOffsetsInZK", "earliest", str(settings), TOPIC)
    tell("ExportZkOffsets", "--group", GROUP, "--output-file", str(offsets))
    heard.append(("the file", sorted(offsets.read_text().split())))
    tell("ImportZkOffsets", "--input-file", str(offsets))
    tell("TopicCommand", "--alter", *topic, "--config", "retention.ms=7777777")
    tell("ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--execute")
    cluster.wait(lambda: cluster.tree.exists("/admin/reassign_partitions") is None, "the replicas have moved")
    tell("ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--verify")
    tell("PreferredReplicaLeaderElectionCommand")
    tell("TopicCommand", "--describe", *topic)
    return heard


@pytest.mark.wide
@pytest.mark.parametrize("version", VERSIONS)
def test_both_brokers_give_the_same_output(make_cluster: MakeCluster, version: str, tmp_path: Path) -> None:
    """Some twenty runs of tools each: exit codes, standard output without times, files."""
    ours, kafkas = (played(make_cluster(kind), version, tmp_path / kind) for kind in ("kpybroker", "kafka"))
    for mine, theirs in zip(ours, kafkas, strict=True):
        assert mine == theirs
