"""Trogdor, Kafka's workload generator: a coordinator and one agent as processes, and tasks given to them by REST."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compat_tests.deps import jars_dir
from compat_tests.support.rest import call
from compat_tests.support.services import Service
from compat_tests.support.tools import LOG4J
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

PACKAGE = "org.apache.kafka.trogdor"
NODE = "node0"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{LOG4J}")
TASK_MS_MAX = 120_000


def numbers(size: int) -> dict[str, object]:
    """A generator: the n-th payload of a workload is n in `size` bytes, the lowest first."""
    return {"type": "sequential", "size": size, "startOffset": 0}


class Trogdor:
    """Both processes, started; tasks run side by side."""

    def __init__(self, directory: Path) -> None:
        ports = {f"trogdor.{what}.port": free_port() for what in ("agent", "coordinator")}
        nodes = {NODE: {"hostname": "127.0.0.1", **ports}}
        config = directory / "trogdor.json"
        config.write_text(json.dumps({"platform": f"{PACKAGE}.basic.BasicPlatform", "nodes": nodes}))
        self._services = []
        self._url = f"http://127.0.0.1:{ports['trogdor.coordinator.port']}/coordinator"
        agent_url = f"http://127.0.0.1:{ports['trogdor.agent.port']}/agent"
        for what, url in (("agent", agent_url), ("coordinator", self._url)):
            main = f"{PACKAGE}.{what}.{what.capitalize()}"
            options = [f"--{what}.config", str(config), "--node-name", NODE]
            command = ["java", *JVM, "-cp", f"{jars_dir('trogdor-3.9.1')}/*", main, *options]
            service = Service(f"trogdor-{what}", command, directory)
            self._services.append(service)
            service.start(lambda _: call("GET", f"{url}/status"))

    def close(self) -> None:
        for service in self._services:
            service.kill()

    def begin(self, name: str, workload: str, **spec: Any) -> None:
        """Give out a task; `spec` is what the workload's Spec class has, in its words."""
        common = {"class": f"{PACKAGE}.workload.{workload}", "startMs": 0, "durationMs": TASK_MS_MAX}
        call("POST", f"{self._url}/task/create", {"id": name, "spec": {**common, **spec}})

    def end(self, name: str) -> Any:
        """Wait for a task's end, which must be a good one; what it counted."""
        url = f"{self._url}/tasks/{name}"
        done = eventually(lambda: (found := call("GET", url))["state"] == "DONE" and found, f"the end of {name}", 120)
        assert not done.get("error"), f"{name}: {done.get('error')}\n{self._services[0].tail()}"
        return done["status"]

    def end_when(self, name: str, satisfied: Callable[[Any], bool]) -> Any:
        """Stop a task as soon as what it counts is so, and return that: what its end interrupts does not count."""
        url = f"{self._url}/tasks/{name}"

        def counted() -> Any:
            status = call("GET", url).get("status")
            assert status is not None, "nothing counted yet"
            assert satisfied(status), status
            return status

        status = eventually(counted, f"{name} comes so far", TASK_MS_MAX / 1000)
        call("PUT", f"{self._url}/task/stop", {"id": name})
        self.end(name)
        return status
