"""Fresh brokers for each of Kafka's tests: a connection asks for them in lines of JSON, and they live as long as it.

`{"start": {"0": {KEY: VALUE, ...}, ...}}` is responded to with `{"ports": {"0": {LISTENER: 12345, ...}, ...}}`, and so
is `{"join": ...}`, with all ports by then. `{"stop": 0}` and `{"restart": 0}` are responded to with `{}`,
`{"data": 0}` with `{"directories": [PATH, ...]}`, and what fails with `{"error": TEXT}`. One broker that
starts alone keeps its tree inside; several, and those that join, share a tree of kpybroker. Nothing is set but where a
broker listens and keeps its data (there too a test may choose `log.dirs`), so that Kafka's defaults hold as in the
tests' own clusters. Two keys are for us: `listener.names`, and the `principals` of those listeners.
"""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from compat_tests.support.services import Service, kpybroker_executable, write_properties
from compat_tests.support.zookeeper.fresh_trees import Trees, fresh_trees
from tests.support.network.ports import free_port

TAIL_LINES = 8
WITH_PRINCIPALS = Path(__file__).with_name("principals.py")
OURS = ("listener.names", "principals")


class FreshBroker:
    """One process on a directory of its own."""

    def __init__(self, directory: Path, broker_id: str, asked: Mapping[str, str]) -> None:
        directory.mkdir(parents=True)
        self.ports = {name: free_port() for name in asked["listener.names"].split(",")}
        self._id = broker_id
        self.data = asked.get("log.dirs", str(directory / "data"))
        self._properties = directory / "server.properties"
        principals = asked.get("principals")
        with_principals = [sys.executable, str(WITH_PRINCIPALS), principals or ""]
        command = with_principals if principals else [str(kpybroker_executable())]
        self.service = Service("kpybroker", [*command, "server", str(self._properties)], directory)

    def configure(self, asked: Mapping[str, str], tree: str | None) -> None:
        """What holds from its next start on."""
        listeners = ",".join(f"{name}://localhost:{port}" for name, port in self.ports.items())
        own = {
            "broker.id": self._id,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "log.dirs": self.data,
        }
        known = {key: value for key, value in asked.items() if key not in OURS}
        write_properties(self._properties, {**known, **own, **({} if tree is None else {"zookeeper.connect": tree})})

    def start(self) -> None:
        self.service.start(lambda output: f"[KafkaServer id={self._id}] started" in output)


class OneTest(socketserver.StreamRequestHandler):
    """The brokers of one connection."""

    def setup(self) -> None:
        super().setup()
        self._directory = Path(tempfile.mkdtemp(prefix="kafka43-"))
        self._brokers: dict[str, FreshBroker] = {}
        self._stack = ExitStack()
        self._tree: str | None = None

    def handle(self) -> None:
        with self._stack:
            for line in self.rfile:
                self.wfile.write(json.dumps(self._respond(json.loads(line))).encode() + b"\n")

    def finish(self) -> None:
        for broker in self._brokers.values():
            broker.service.kill()
        shutil.rmtree(self._directory, ignore_errors=True)
        super().finish()

    def _respond(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            ((what, value),) = request.items()
            match what:
                case "start":
                    return self._start(value, is_shared=len(value) > 1)
                case "join":
                    return self._start(value, is_shared=True)
                case "data":
                    return {"directories": self._brokers[str(value)].data.split(",")}
                case "stop":
                    self._brokers[str(value)].service.stop()
                case _:
                    self._brokers[str(value)].start()
            return {}
        except (AssertionError, RuntimeError, KeyError) as error:
            return {"error": "\n".join(str(error).splitlines()[-TAIL_LINES:])}

    def _start(self, asked: Mapping[str, Mapping[str, str]], is_shared: bool) -> dict[str, Any]:
        """Brokers that are new, or down and may have other properties by now."""
        if is_shared and self._tree is None:
            assert isinstance(self.server, BrokerMaker)
            self._tree = self._stack.enter_context(self.server.tree())
        for broker_id, properties in asked.items():
            if broker_id not in self._brokers:
                self._brokers[broker_id] = FreshBroker(self._directory / broker_id, broker_id, properties)
            self._brokers[broker_id].configure(properties, self._tree)
            self._brokers[broker_id].start()
        return {"ports": {broker_id: broker.ports for broker_id, broker in self._brokers.items()}}


class BrokerMaker(socketserver.ThreadingTCPServer):
    """Listens on a free port of loopback."""

    daemon_threads = False

    def __init__(self, trees: Trees) -> None:
        super().__init__(("127.0.0.1", 0), OneTest)
        self._trees = trees

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @contextmanager
    def tree(self) -> Iterator[str]:
        with socket.create_connection(("127.0.0.1", self._trees.port)) as life:
            yield f"127.0.0.1:{int(life.makefile().readline())}"


@contextmanager
def broker_maker() -> Iterator[BrokerMaker]:
    """For as long as the block lasts."""
    with fresh_trees() as trees, BrokerMaker(trees) as maker:
        thread = threading.Thread(target=maker.serve_forever)
        thread.start()
        try:
            yield maker
        finally:
            maker.shutdown()
            thread.join()
