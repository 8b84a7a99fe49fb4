"""Real Kafka 3.9.1 with the agents that read its MBeans, and kpybroker with its port for metrics, both on ZooKeeper."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from compat_tests.deps import jars_dir
from compat_tests.differential.pair import OVERRIDES, READY
from compat_tests.differential.play import Heard, Player
from compat_tests.differential.script import Script
from compat_tests.support.services import AS_KAFKA_3_9, Broker
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

RULES: Final = Path(__file__).with_name("exporter.yml")
RESPONSE_S: Final = 60.0
KEYS: Final = {
    **OVERRIDES,
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
}

Attributes = dict[str, Any]


class Side:
    """One broker, its Jolokia and its page for Prometheus."""

    def __init__(self, kind: str, directory: Path, zookeeper: str, keys: Mapping[str, str]) -> None:
        jolokia_port, page_port = free_port(), free_port()
        options: list[str] = []
        own: dict[str, str] = {}
        if kind == "kafka":
            options = [
                f"-javaagent:{_jar('jolokia')}=port={jolokia_port},host=127.0.0.1,discoveryEnabled=false",
                f"-javaagent:{_jar('jmx-exporter')}=127.0.0.1:{page_port}:{RULES}",
            ]
        else:
            jolokia_port = page_port
            own = {"kpybroker.metrics.port": str(page_port), **AS_KAFKA_3_9}
        self.kind = kind
        self.broker = Broker(kind, directory, zookeeper, {**KEYS, **own, **keys}, options)
        self.jolokia = f"http://127.0.0.1:{jolokia_port}/jolokia"
        self._page = f"http://127.0.0.1:{page_port}/metrics"

    def start(self) -> None:
        self.broker.start()

    def play(self, script: Script) -> list[Heard]:
        """The responses."""
        return Player(self.broker.port, script, script.versions[1], {"t": script.name}).play()

    def get(self, target: str) -> tuple[int, Any]:
        """HTTP's status, and the JSON of the response."""
        return _response(urllib.request.Request(self.jolokia + quote(target, safe='/?=*!,:&"')))

    def post(self, body: bytes) -> tuple[int, Any]:
        """The same, for a body."""
        return _response(urllib.request.Request(f"{self.jolokia}/", body, {"Content-Type": "application/json"}))

    def page(self) -> str:
        with urllib.request.urlopen(self._page, timeout=RESPONSE_S) as response:
            return str(response.read().decode())

    def mbeans(self) -> dict[str, Attributes]:
        """All of Kafka's, by canonical name. Two MBeans of one name are one here."""
        _, found = self.get("/read/kafka.*:*?ignoreErrors=true")
        assert found["status"] == 200, found
        return {name.replace(str(self.broker.data_dir), "data"): value for name, value in found["value"].items()}


def ready(side: Side) -> None:
    """Coordinators are loaded, and nothing is pending."""
    side.play(READY)
    eventually(lambda: _settled(side), f"{side.kind} is idle")


def _settled(side: Side) -> bool:
    _, found = side.get("/read/kafka.controller:type=ControllerEventManager,name=EventQueueSize/Value")
    return bool(found["value"] == 0)


def _jar(name: str) -> Path:
    (jar,) = jars_dir(name).glob("*.jar")
    return jar


def _response(request: urllib.request.Request) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=RESPONSE_S) as response:
            return response.status, _json(response.read())
    except urllib.error.HTTPError as refused:
        return refused.code, _json(refused.read())


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
