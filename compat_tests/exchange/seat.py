"""One data directory and one ZooKeeper tree, where kpybroker and Kafka 3.9.1 take turns as broker 0.

Both are started from the same server.properties (their own copies, the same text), on the same port.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.support.services import Broker, write_properties
from tests.support.network.ports import free_port

KINDS = ("kpybroker", "kafka")

OVERRIDES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "300",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}


class Seat:
    """The place that the two brokers share. One of them runs at a time."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.port = free_port()
        self._brokers = {kind: self._broker(kind, zookeeper) for kind in KINDS}
        self._running: Broker | None = None

    def _broker(self, kind: str, zookeeper: str) -> Broker:
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "log.dirs": str(self.data_dir)}
        broker = Broker(kind, self.directory / kind, zookeeper, OVERRIDES | listeners)
        broker.port = broker.client_port = self.port
        broker.data_dir = self.data_dir
        write_properties(broker.config_file, broker.properties)
        return broker

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def kind(self) -> str:
        assert self._running is not None, "no broker runs"
        return self._running.kind

    def start(self, kind: str) -> None:
        assert self._running is None, f"{self.kind} runs already"
        self._running = self._brokers[kind]
        self._running.start()

    def stop(self, how: str) -> None:
        """`stop` is SIGTERM and waiting for its end, `kill` SIGKILL."""
        broker, self._running = self._running, None
        assert broker is not None
        if how == "kill":
            broker.kill()
        else:
            broker.stop()

    def close(self) -> None:
        for broker in self._brokers.values():
            broker.service.kill()
