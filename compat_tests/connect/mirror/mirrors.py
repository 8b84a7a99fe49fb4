"""MirrorMaker 2 between two clusters, its process killed while it copies, and its client library."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat_tests.conftest import Launcher
from compat_tests.connect.workers import DEADLINE_S, JVM
from compat_tests.deps import jars_dir
from compat_tests.support.services import Broker, Service, write_properties
from compat_tests.support.topics.origin import Origin
from tests.support.network.ports import free_port

VERSIONS = ("3.9.1", "4.3.1")
MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
QUESTIONS = Path(__file__).with_name("MirrorQuestions.java")
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
QUICK = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
}
"""Of a flow: everything every second, where the stock values are between five seconds and ten minutes."""
BROKER_KEYS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
SESSION_KEYS = {"zookeeper.session.timeout.ms": "120000"}
"""Of Kafka, which responds UNKNOWN_SERVER_ERROR to CreateTopics if its session ends then, as on a busy machine."""


def new_broker(launcher: Launcher, kind: str, name: str, **more: str) -> Broker:
    """A broker of a chosen kind, with an authorizer whose super user is everyone: ACLs can be made and read."""
    zookeeper = launcher.zookeeper(name) if kind == "kafka" else None
    session = {} if zookeeper is None else SESSION_KEYS
    return Broker(kind, launcher.directory / name, zookeeper, AUTHORIZER | BROKER_KEYS | session | more)


def mirror_properties(
    clusters: Mapping[str, str], flows: Sequence[tuple[str, str]], flow_keys: Mapping[str, str]
) -> dict[str, str]:
    """A file for `connect-mirror-maker.sh`: clusters with their addresses, exactly-once flows, one replica."""
    properties = {
        "clusters": ", ".join(clusters),
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{free_port()}",
        "tasks.max": "2",
        "replication.factor": "1",
    }
    for topic in ("checkpoints", "heartbeats", "offset-syncs"):
        properties[f"{topic}.topic.replication.factor"] = "1"
    for storage in ("config", "offset", "status"):
        properties[f"{storage}.storage.replication.factor"] = "1"
    for alias, bootstrap in clusters.items():
        own = {
            "bootstrap.servers": bootstrap,
            "exactly.once.source.support": "enabled",
            "consumer.isolation.level": "read_committed",
            "consumer.max.poll.records": "100",
            "scheduled.rebalance.max.delay.ms": "0",
            "offset.flush.interval.ms": "500",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            # a mirror starts when what the one before it left open is aborted
            "producer.transaction.timeout.ms": "3000",
        }
        properties |= {f"{alias}.{key}": value for key, value in own.items()}
    for source in clusters:
        for target in clusters:
            if source != target:
                is_on = (source, target) in flows
                keys = QUICK | dict(flow_keys) if is_on else {"emit.heartbeats.enabled": "false"}
                keys["enabled"] = "true" if is_on else "false"
                properties |= {f"{source}->{target}.{key}": value for key, value in keys.items()}
    return properties


class MirrorMaker:
    """The process; it says nothing when it is ready: what it mirrors is waited for."""

    def __init__(self, version: str, directory: Path, properties: dict[str, str]) -> None:
        config = directory / "mirror-maker.properties"
        write_properties(config, properties)
        command = ["java", *JVM, "-cp", f"{jars_dir(f'connect-{version}')}/*", MAIN, str(config)]
        self.service = Service("mirror-maker", command, directory)

    def start(self) -> None:
        self.service.start(lambda _: True)

    def close(self) -> None:
        self.service.kill()

    def kill_and_start(self) -> None:
        """SIGKILL: a transaction may be open, and a task may have read what it did not write."""
        self.service.kill()
        self.start()


def follow_with_kills(maker: MirrorMaker, ways: Sequence[tuple[Origin, Broker, str]], seed: int, kills: int) -> None:
    """Write, and kill the mirror when a random share of it has arrived; in the end everything has, once."""
    chance = random.Random(seed)
    for _ in range(kills):
        for origin, _, _ in ways:
            origin.write(150)
            origin.write_in_transactions(50)
        origin, target, topic = chance.choice(ways)
        origin.arrived(target, topic, share=chance.uniform(0.5, 0.99))
        maker.kill_and_start()
    for origin, target, topic in ways:
        origin.arrived(target, topic)


def ask_library(version: str, bootstrap: str, alias: str, group: str) -> dict[str, list[str]]:
    """What `MirrorClient` and `RemoteClusterUtils` say of a cluster: the words after each first word."""
    jars = f"{jars_dir(f'connect-{version}')}/*"
    done = subprocess.run(
        ["java", *JVM, "-cp", jars, str(QUESTIONS), bootstrap, alias, group],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    said: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        said.setdefault(word, []).append(rest)
    return said
