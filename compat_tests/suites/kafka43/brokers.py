"""Fresh brokers for each of Kafka's tests: a connection asks for them in lines of JSON, and they live as long as it.

`{"start": {"0": {KEY: VALUE, ...}, ...}}` is responded to with `{"ports": {"0": 12345, ...}}`, `{"stop": 0}` and
`{"restart": 0}` with `{}`, `{"cleaned": [0, TOPIC, PARTITION]}` with `{"offset": OFFSET}`, and what fails with
`{"error": TEXT}`. One broker keeps its tree inside; several share a
tree of kpybroker. Nothing is set but where a broker listens and keeps its data, so that Kafka's defaults hold as in the
tests' own clusters.
"""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from compat_tests.support.services import Service, kpybroker_executable, write_properties
from compat_tests.support.zookeeper.fresh_trees import Trees, fresh_trees
from kpybroker.storage.disk.names import CLEANER_OFFSET_CHECKPOINT
from tests.support.network.ports import free_port

TAIL_LINES = 8


class FreshBroker:
    """One process on a directory of its own."""

    def __init__(self, directory: Path, broker_id: str, asked: Mapping[str, str], tree: str | None) -> None:
        directory.mkdir(parents=True)
        self.port = free_port()
        self._data = directory / "data"
        self._line = f"[KafkaServer id={broker_id}] started"
        listener = asked["inter.broker.listener.name"]
        properties = {
            **asked,
            "broker.id": broker_id,
            "listeners": f"{listener}://localhost:{self.port}",
            "log.dirs": str(self._data),
            **({} if tree is None else {"zookeeper.connect": tree}),
        }
        write_properties(directory / "server.properties", properties)
        command = [str(kpybroker_executable()), "server", str(directory / "server.properties")]
        self.service = Service("kpybroker", command, directory)

    def cleaned_up_to(self, topic: str, partition: int) -> int:
        """The offset of the cleaner's checkpoint, or -1."""
        file = self._data / CLEANER_OFFSET_CHECKPOINT
        lines = file.read_text().splitlines()[2:] if file.exists() else []
        offsets = {(name, int(index)): int(offset) for name, index, offset in (line.split() for line in lines)}
        return offsets.get((topic, partition), -1)

    def start(self) -> None:
        self.service.start(lambda output: self._line in output)


class OneTest(socketserver.StreamRequestHandler):
    """The brokers of one connection."""

    def handle(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix="kafka43-"))
        brokers: dict[str, FreshBroker] = {}
        try:
            with ExitStack() as stack:
                for line in self.rfile:
                    response = self._respond(json.loads(line), brokers, directory, stack)
                    self.wfile.write(json.dumps(response).encode() + b"\n")
        finally:
            for broker in brokers.values():
                broker.service.kill()
            shutil.rmtree(directory, ignore_errors=True)

    def _respond(
        self, request: dict[str, Any], brokers: dict[str, FreshBroker], directory: Path, stack: ExitStack
    ) -> dict[str, Any]:
        try:
            ((what, value),) = request.items()
            if what == "start":
                assert isinstance(self.server, BrokerMaker)
                tree = stack.enter_context(self.server.tree()) if len(value) > 1 else None
                for broker_id, asked in value.items():
                    brokers[broker_id] = FreshBroker(directory / broker_id, broker_id, asked, tree)
                    brokers[broker_id].start()
                return {"ports": {broker_id: broker.port for broker_id, broker in brokers.items()}}
            if what == "cleaned":
                broker_id, topic, partition = value
                return {"offset": brokers[str(broker_id)].cleaned_up_to(topic, partition)}
            if what == "stop":
                brokers[str(value)].service.stop()
            else:
                brokers[str(value)].start()
            return {}
        except (AssertionError, RuntimeError, KeyError) as error:
            return {"error": "\n".join(str(error).splitlines()[-TAIL_LINES:])}


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
