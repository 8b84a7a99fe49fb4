"""Three brokers, the same scenario on Kafka 3.9.1 and on kpybroker: at every stage the tree holds the same, values
and versions included, and `kafka-topics --describe` prints the same.

What chance decides is left out: every replica is placed by hand, the first broker is the controller, and
at its end only one can succeed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from kazoo.client import KazooClient

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import AS_KAFKA_3_9
from compat_tests.tree.scenario import Znode, differences, dump
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.metadata import MetadataRequest

FLAGS = (
    "--under-replicated-partitions",
    "--unavailable-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
    "--topics-with-overrides",
)
ALL = {1, 2, 3}
_TOPIC_ID = re.compile(r"TopicId: \S+")
# Nothing where DescribeTopicPartitions is served, which is ours beyond 3.9; "N/A" where it is not.
_ELR = re.compile(r"\tElr: (N/A)?\tLastKnownElr: (N/A)?$")
# A tool that sets a throttle asks every broker for its own at once.
_BROKER_CHANGED = re.compile(rb'"brokers/\d"')


LED_BY_THE_DEAD = "/brokers/topics/moved/partitions/0/state"
CONTROLLER_KILLED = ("the controller killed", "who was first in the ISR is last now")
"""Stages in which a new controller has elected: ours does so before it shrinks ISRs, with one epoch and one write less
(docs/reference/guarantees.md).
"""


class Moment(NamedTuple):
    """What there is to see at one stage of the scenario."""

    tree: dict[str, Znode]
    described: dict[str, list[str]]


class Scenario:
    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._cluster = cluster
        self._directory = directory

    def tell(self) -> Iterator[tuple[str, Moment]]:
        cluster = self._cluster
        cluster.start()
        yield "started", self._moment()
        self._create()
        yield "created", self._moment()
        self._configure()
        yield "configured", self._moment()
        self._reassign()
        yield "reassigned", self._moment()
        cluster.brokers[3].kill()
        self._await({"moved": [{1, 2}, {1}], "grown": [{1}, {2}, {1, 2}]})
        yield "one killed", self._moment(*FLAGS)
        cluster.brokers[3].start()
        self._await({"moved": [ALL, {1, 3}], "grown": [{1, 3}, {2, 3}, {1, 2}]})
        yield "it is back", self._moment()
        cluster.tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
        for topic, partition, leader in (("moved", 0, 3), ("moved", 1, 3), ("grown", 0, 3), ("grown", 1, 2)):
            cluster.wait_for_leader(topic, leader, partition)
        yield "preferred leaders lead", self._moment()
        cluster.tools.run("topics", "--delete", "--topic", "grown")
        cluster.wait(lambda: cluster.tree.get_children("/brokers/topics") == ["moved"], "the topic is gone")
        cluster.wait(lambda: not cluster.tree.get_children("/admin/delete_topics"), "the deletion has ended")
        yield "one topic deleted", self._moment()
        cluster.brokers[3].stop()
        yield "one stopped in order", self._moment()
        cluster.brokers[1].kill()
        cluster.wait(lambda: cluster.controller() == 2, "another controller")
        self._await({"moved": [{2}, {1}]})
        yield "the controller killed", self._moment(*FLAGS)
        cluster.brokers[1].start()
        self._await({"moved": [{1, 2}, {1}]})
        cluster.wait_for_leader("moved", 1, 1)
        yield "who was first in the ISR is last now", self._moment()

    def _create(self) -> None:
        cluster = self._cluster
        cluster.create("moved", "1:2,2:1", "--config", "min.insync.replicas=2")
        cluster.create("grown", "3:1,2:3")
        self._await({"moved": [{1, 2}, {1, 2}], "grown": [{1, 3}, {2, 3}]})
        self._await_metadata()
        grow = ("--partitions", "3", "--replica-assignment", "3:1,2:3,1:2")
        cluster.tools.run("topics", "--alter", "--topic", "grown", *grow)
        self._await({"moved": [{1, 2}, {1, 2}], "grown": [{1, 3}, {2, 3}, {1, 2}]})
        for topic, partition in (("moved", 0), ("moved", 1), ("grown", 0), ("grown", 1), ("grown", 2)):
            quick.fill(cluster.bootstrap, topic, ["value"], partition)

    def _configure(self) -> None:
        for entity, change in (
            (("topics", "--entity-name", "grown"), ("--add-config", "retention.ms=7")),
            (("topics", "--entity-name", "moved"), ("--add-config", "segment.ms=9000")),
            (("topics", "--entity-name", "moved"), ("--delete-config", "segment.ms")),
            (("brokers", "--entity-name", "2"), ("--add-config", "log.segment.bytes=100000000")),
            (("brokers", "--entity-default"), ("--add-config", "log.segment.bytes=100000000")),
        ):
            self._cluster.tools.run("configs", "--alter", "--entity-type", *entity, *change)
        ports = [broker.port for broker in self._cluster.brokers.values()]
        self._cluster.wait(
            lambda: {_segment_bytes(port, "grown") for port in ports} == {"100000000"}, "each has read it"
        )

    def _reassign(self) -> None:
        """One replica more, and one in place of another; throttled, and the throttle taken off again."""
        cluster = self._cluster
        plan = self._directory / "plan.json"
        for partition, replicas in ((0, [3, 1, 2]), (1, [3, 1])):
            wanted = {"topic": "moved", "partition": partition, "replicas": replicas}
            plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
            execute = ("--execute", "--throttle", "50000000")
            cluster.tools.run("reassign-partitions", "--reassignment-json-file", str(plan), *execute)
            cluster.wait(
                lambda: (
                    cluster.replicas("moved", partition) == replicas
                    and cluster.state("moved", partition).isr == set(replicas)
                ),
                "the move has ended",
            )
            cluster.tools.run("reassign-partitions", "--reassignment-json-file", str(plan), "--verify")

    def _await(self, isrs: dict[str, list[set[int]]]) -> None:
        for topic, expected in isrs.items():
            for partition, isr in enumerate(expected):
                self._cluster.wait_for_isr(topic, isr, partition)

    def _moment(self, *flags: str) -> Moment:
        cluster = self._cluster
        cluster.wait(lambda: not cluster.tree.get_children("/isr_change_notification"), "no notification left")
        self._await_metadata()
        described = {flag: self._described(flag) for flag in ("", *flags)}
        tree = dump(lambda: KazooClient(cluster.zookeeper))
        for path, znode in tree.items():
            if path.startswith("/config/changes/") and znode.data is not None:
                tree[path] = znode._replace(data=_BROKER_CHANGED.sub(b'"brokers/*"', znode.data))
        return Moment(tree, described)

    def _await_metadata(self) -> None:
        self._cluster.wait(self._are_metadata_current, "each broker has heard of each leader and ISR")

    def _are_metadata_current(self) -> bool:
        tree, state = self._cluster.tree, self._cluster.state
        written = {
            (topic, number): (state(topic, number).leader, state(topic, number).isr)
            for topic in tree.get_children("/brokers/topics")
            for number in map(int, tree.get_children(f"/brokers/topics/{topic}/partitions"))
        }
        alive = map(int, tree.get_children("/brokers/ids"))
        return all(_leaders_and_isrs(self._cluster.brokers[one].port) == written for one in alive)

    def _described(self, flag: str) -> list[str]:
        out = self._cluster.tools.run("topics", "--describe", *([flag] if flag else [])).out
        return sorted(_ELR.sub("", _TOPIC_ID.sub("TopicId: *", line)) for line in out.splitlines())


def _leaders_and_isrs(port: int) -> dict[tuple[str, int], tuple[int, set[int]]]:
    """Of each partition, as this broker knows them."""
    with Raw(("127.0.0.1", port)) as raw:
        topics = raw.ask(MetadataRequest(topics=None), 8).topics
    return {
        (topic.name, one.partition_index): (one.leader_id, set(one.isr_nodes))
        for topic in topics
        for one in topic.partitions
    }


def _segment_bytes(port: int, topic: str) -> str | None:
    """Of a topic, as this broker knows it."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=["segment.bytes"]
    )
    with Raw(("127.0.0.1", port)) as raw:
        (result,) = raw.ask(DescribeConfigsRequest(resources=[resource]), 1).results
    (entry,) = result.configs
    value: str | None = entry.value
    return value


def recorded_with(kind: str, launcher: Launcher, directory: Path) -> dict[str, Moment]:
    directory.mkdir()
    keys = {"replica.lag.time.max.ms": "30000"}  # who lags is another scenario
    keys |= {} if kind == "kafka" else AS_KAFKA_3_9
    cluster = Cluster(directory / "brokers", launcher.zookeeper(f"scenario-{directory.name}"), [kind] * 3, keys)
    try:
        return dict(Scenario(cluster, directory).tell())
    finally:
        cluster.close()


@pytest.mark.wide
def test_tree_and_descriptions_are_kafkas_at_every_stage(
    request: pytest.FixtureRequest, launcher: Launcher, tmp_path: Path
) -> None:
    reference = recorded_with("kafka", launcher, tmp_path / "reference")
    compared = recorded_with(request.config.getoption("--broker"), launcher, tmp_path / "compared")
    assert len(reference) == 11
    if request.config.getoption("--broker") != "kafka":
        for stage in CONTROLLER_KILLED:
            compared[stage].tree[LED_BY_THE_DEAD] = _with_an_epoch_more(compared[stage].tree[LED_BY_THE_DEAD])
    found = []
    for stage, moment in reference.items():
        found += [f"{stage}: {difference}" for difference in differences(moment.tree, compared[stage].tree)]
        for flag, lines in moment.described.items():
            if compared[stage].described[flag] != lines:
                found.append(f"{stage}: describe {flag}: Kafka {lines}, ours {compared[stage].described[flag]}")
    assert not found, "\n".join(found)


def _with_an_epoch_more(znode: Znode) -> Znode:
    assert znode.data is not None
    state = json.loads(znode.data)
    state["leader_epoch"] += 1
    return znode._replace(data=json.dumps(state, separators=(",", ":")).encode(), version=znode.version + 1)
