"""Kafka Connect's workers, of 3.9.1 or 4.3.1, and MirrorMaker 2 as processes, and what is asked of them by REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.deps import jars_dir
from compat_tests.support.rest import call
from compat_tests.support.services import Service, write_properties
from compat_tests.support.tools import LOG4J
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{LOG4J}")
DEADLINE_S = 180.0
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JARS = ("connect-3.9.1", "connect-4.3.1")


def connect_service(
    name: str, main: str, directory: Path, properties: Mapping[str, str], jars: str = JARS[0]
) -> Service:
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / f"{name}.properties"
    write_properties(config, dict(properties))
    command = ["java", *JVM, "-cp", f"{jars_dir(jars)}/*", main, str(config)]
    return Service(name, command, directory)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the workers of one group run."""

    bootstrap: str
    directory: Path
    group: str = "connect"
    replicas: int = 1
    jars: str = JARS[0]


class Worker:
    """One of a group of workers, with sources that write each record once (KIP-618); it can be killed and paused.

    `settings` are more properties of the worker, or others.
    """

    def __init__(self, name: str, place: Place, settings: Mapping[str, str] | None = None) -> None:
        port = free_port()
        self.id = f"127.0.0.1:{port}"
        properties = {
            "bootstrap.servers": place.bootstrap,
            "group.id": place.group,
            "listeners": f"http://{self.id}",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "exactly.once.source.support": "enabled",
            "offset.flush.interval.ms": "500",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
        }
        for topic, partitions in (("config", None), ("offset", "3"), ("status", "2")):
            properties[f"{topic}.storage.topic"] = f"{place.group}-{topic}"
            properties[f"{topic}.storage.replication.factor"] = str(place.replicas)
            if partitions is not None:
                properties[f"{topic}.storage.partitions"] = partitions
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self.service = connect_service(name, main, place.directory, properties | dict(settings or {}), place.jars)

    def start(self) -> None:
        self.service.start(lambda _: self.ask("GET", "connectors") is not None)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return call(method, f"http://{self.id}/{path}", body)

    def insist(self, method: str, path: str, body: object = None) -> Any:
        """Ask until it is done: while they rebalance workers refuse with 409."""
        return eventually(lambda: (self.ask(method, path, body),), f"{method} {path}", DEADLINE_S)[0]

    def configure(self, connector: str, java_class: str, **config: str) -> None:
        """Make or change a connector; keys have `_` for `.`."""
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.insist("PUT", f"connectors/{connector}/config", {"connector.class": java_class, "tasks.max": "1", **keys})

    def where(self, connector: str) -> str:
        """The id of the worker that runs the connector's task, once it runs there."""

        def running() -> str:
            status = self.ask("GET", f"connectors/{connector}/status")
            assert [task["state"] for task in status["tasks"]] == ["RUNNING"], status
            (task,) = status["tasks"]
            return str(task["worker_id"])

        return eventually(running, f"{connector}'s task runs", DEADLINE_S)
