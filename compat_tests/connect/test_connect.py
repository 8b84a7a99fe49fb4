"""Two workers of Kafka Connect, a file into a topic exactly once, the topic into a file, while what can die dies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource

from compat_tests.conftest import Launcher, StartBroker
from compat_tests.connect.workers import DEADLINE_S, JARS, Place, Worker
from compat_tests.eos.transaction_log import newest_at, used
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import Broker, started
from compat_tests.support.waiting import eventually

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
LINES_AT_ONCE = 500
TOPIC = "lines"


class Scenario:
    """Two workers, the file that is read and the file that is written."""

    def __init__(self, place: Place) -> None:
        self.bootstrap, self.replicas = place.bootstrap, place.replicas
        self.source, self.sink = place.directory / "source.txt", place.directory / "sink.txt"
        self.workers = [Worker(f"worker-{n}", place) for n in range(2)]
        self.lines: list[str] = []
        self.source.touch()
        self.sink.touch()

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        quick.create_topic(self.bootstrap, TOPIC, replicas=self.replicas)
        asker = self.workers[1]
        once = {"exactly_once_support": "required", "batch_size": "100000"}
        asker.configure("source", FILE_SOURCE, file=str(self.source), topic=TOPIC, **once)
        asker.configure(
            "sink", FILE_SINK, file=str(self.sink), topics=TOPIC, consumer_override_auto_offset_reset="earliest"
        )

    def close(self) -> None:
        for worker in self.workers:
            worker.service.kill()

    def write(self) -> None:
        """Some more lines."""
        new = [f"line {len(self.lines) + n}" for n in range(LINES_AT_ONCE)]
        self.lines += new
        with self.source.open("a") as source:
            source.writelines(f"{line}\n" for line in new)

    def arrived(self) -> None:
        """Wait until the sink has written all lines, whatever it wrote twice."""

        def all_there() -> bool:
            missing = set(self.lines) - set(self.sunk())
            assert not missing, f"{len(missing)} of {len(self.lines)} lines"
            return True

        eventually(all_there, "all lines in the sink's file", DEADLINE_S)

    def sunk(self) -> list[str]:
        return self.sink.read_text().splitlines()

    def topic(self, count: int) -> list[str]:
        """The first `count` committed lines."""
        return [message.value().decode() for message in quick.read(self.bootstrap, [(TOPIC, 0)], count)]

    def runner(self, connector: str) -> tuple[Worker, Worker]:
        """Who runs the connector's task, and who does not."""
        alive = next(worker for worker in self.workers if worker.service.running)
        found = alive.where(connector)
        first, second = self.workers
        return (first, second) if first.id == found else (second, first)


@pytest.mark.parametrize("jars", JARS)
def test_a_file_through_a_topic_while_workers_and_the_broker_die(
    own_broker: StartBroker, tmp_path: Path, jars: str
) -> None:
    """The topic has each line once and in order, and the sink has all; a worker that was away finds itself fenced."""
    broker = own_broker()
    with started(Scenario(Place(broker.bootstrap, tmp_path, jars=jars))) as scenario:
        _tell(scenario, broker)
        assert scenario.topic(len(scenario.lines)) == scenario.lines
        assert used(broker.bootstrap) == {newest_at(broker.bootstrap) if "4.3.1" in jars else 0}
        _check_internal_topics(broker)
        _check_offsets(scenario, scenario.workers[0])


@pytest.mark.parametrize("jars", JARS)
def test_a_file_through_a_topic_while_each_of_three_brokers_dies(launcher: Launcher, tmp_path: Path, jars: str) -> None:
    """Leaders and coordinators move; the topic has each line once and in order."""
    cluster = Cluster(launcher.directory / jars, launcher.zookeeper(jars), [launcher.kind] * 3)
    try:
        cluster.start()
        with started(Scenario(Place(cluster.bootstrap, tmp_path, replicas=3, jars=jars))) as scenario:
            for broker in cluster.brokers.values():
                scenario.write()
                broker.kill()
                scenario.arrived()
                broker.start()
                cluster.wait(lambda: _all_in_sync(cluster), "all replicas are in sync")
            assert scenario.topic(len(scenario.lines)) == scenario.lines
    finally:
        cluster.close()


def _all_in_sync(cluster: Cluster) -> bool:
    for topic in cluster.tree.get_children("/brokers/topics"):
        for partition, replicas in cluster.json(f"/brokers/topics/{topic}")["partitions"].items():
            assert cluster.state(topic, int(partition)).isr == set(replicas), f"{topic}-{partition}"
    return True


def _tell(scenario: Scenario, broker: Broker) -> None:
    """A worker is killed, the broker is killed, a worker is frozen and comes back; lines are written all the time."""
    scenario.write()
    scenario.arrived()

    runner, other = scenario.runner("source")
    runner.service.kill()
    scenario.write()
    scenario.arrived()
    eventually(lambda: other.where("source") == other.id, "the other worker reports the task", DEADLINE_S)
    runner.start()

    scenario.write()
    broker.kill()
    broker.start()
    scenario.arrived()

    runner, other = scenario.runner("source")
    runner.service.pause()
    scenario.write()
    scenario.arrived()
    runner.service.resume()
    scenario.write()
    scenario.arrived()


def _check_internal_topics(broker: Broker) -> None:
    """As Connect makes them: compacted, and the configurations in one partition."""
    admin = quick.admin_client(broker.bootstrap)
    partitions = {"connect-config": 1, "connect-offset": 3, "connect-status": 2}
    topics = admin.list_topics(timeout=DEADLINE_S).topics
    assert {name: len(topics[name].partitions) for name in partitions} == partitions
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in partitions]
    for future in admin.describe_configs(resources).values():
        assert future.result(DEADLINE_S)["cleanup.policy"].value == "compact"


def _check_offsets(scenario: Scenario, asker: Worker) -> None:
    """KIP-875: where the connectors stand, as records and as a group's offsets; then from the beginning again."""
    written = scenario.source.stat().st_size
    (stands,) = asker.insist("GET", "connectors/source/offsets")["offsets"]
    assert stands["offset"] == {"position": written}
    for connector in ("source", "sink"):
        asker.insist("PUT", f"connectors/{connector}/stop")
    eventually(lambda: _is_stopped(asker, "source") and _is_stopped(asker, "sink"), "both are stopped", DEADLINE_S)
    (sunk,) = asker.insist("GET", "connectors/sink/offsets")["offsets"]
    assert sunk["offset"]["kafka_offset"] >= len(scenario.lines)
    moved = {"offsets": [{"partition": sunk["partition"], "offset": {"kafka_offset": 0}}]}
    asker.insist("PATCH", "connectors/sink/offsets", moved)
    asker.insist("DELETE", "connectors/source/offsets")
    assert asker.insist("GET", "connectors/source/offsets") == {"offsets": []}
    before = len(scenario.sunk())
    for connector in ("source", "sink"):
        asker.insist("PUT", f"connectors/{connector}/resume")
    eventually(lambda: len(scenario.sunk()) >= before + 2 * len(scenario.lines), "all lines twice more", DEADLINE_S)
    assert scenario.topic(2 * len(scenario.lines)) == scenario.lines * 2
    assert scenario.sunk()[-2 * len(scenario.lines) :] == scenario.lines * 2


def _is_stopped(asker: Worker, connector: str) -> bool:
    status = asker.ask("GET", f"connectors/{connector}/status")
    assert (status["connector"]["state"], status["tasks"]) == ("STOPPED", []), json.dumps(status)
    return True
