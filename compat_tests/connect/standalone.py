"""A standalone worker: its connectors are files on its command line, and sources' offsets are in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat_tests.connect.workers import JARS, STRINGS, connect_service
from compat_tests.support.rest import call
from compat_tests.support.services import write_properties
from tests.support.network.ports import free_port


class Standalone:
    """`connect-standalone.sh worker.properties NAME.properties ...`; `connectors` are their settings by name."""

    def __init__(
        self,
        bootstrap: str,
        directory: Path,
        connectors: Mapping[str, Mapping[str, str]],
        settings: Mapping[str, str] | None = None,
        jars: str = JARS[0],
    ) -> None:
        self.id = f"127.0.0.1:{free_port()}"
        properties = {
            "bootstrap.servers": bootstrap,
            "listeners": f"http://{self.id}",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "offset.storage.file.filename": str(directory / "offsets"),
            "offset.flush.interval.ms": "500",
            **(settings or {}),
        }
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        self.service = connect_service("standalone", main, directory, properties, jars)
        for name, config in connectors.items():
            file = directory / f"{name}.properties"
            write_properties(file, {"name": name, "tasks.max": "1", **config})
            self.service.command.append(str(file))
        self._names = list(connectors)

    def start(self) -> None:
        """Until each connector has its task; it may have failed."""
        self.service.start(lambda _: all(self.status(name)["tasks"] for name in self._names))

    def close(self) -> None:
        self.service.kill()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return call(method, f"http://{self.id}/{path}", body)

    def status(self, connector: str) -> Any:
        return self.ask("GET", f"connectors/{connector}/status")
