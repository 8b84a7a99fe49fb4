"""A broker under attack: its process as the system sees it, and a bystander whose work must go on.

Memory is the process's peak (VmHWM), which Linux lets one reset, so that nothing is missed between two looks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.support.quick import QUIET, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

PAUSE_S, PAUSE_UNWATCHED_S = 0.005, 0.05
"""Between two records of the bystander: while its progress is waited for, and at other times."""
PROGRESS = 20
DEADLINE_S = 180.0
MIB = 1024 * 1024


class Bystander(threading.Thread):
    """A stock producer and a stock consumer with a topic of their own."""

    def __init__(self, bootstrap: str, topic: str, login: Mapping[str, Any] | None = None) -> None:
        """`login`: the settings of its clients, on another listener maybe."""
        super().__init__(name="bystander", daemon=True)
        self._topic = topic
        create_topic(bootstrap, topic)
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, **QUIET, **(login or {})}
        self._producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 0})
        self._consumer = Consumer({**settings, "group.id": "bystander", "auto.offset.reset": "earliest"})
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])
        self._stopping, self._watched = threading.Event(), threading.Event()
        self._sent = 0
        self.acknowledged = 0
        self.read: list[int] = []
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._stopping.wait(PAUSE_S if self._watched.is_set() else PAUSE_UNWATCHED_S):
            if len(self._producer) < 50:
                self._producer.produce(self._topic, str(self._sent).encode(), on_delivery=self._report)
                self._sent += 1
            self._producer.poll(0)
            self._read()

    def _report(self, error: object, _message: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failures.append(str(error))

    def _read(self) -> None:
        for message in self._consumer.consume(100, 0):
            if message.error() is None:
                value = message.value()
                assert value is not None
                self.read.append(int(value))

    def progresses(self) -> None:
        """Both get on from where they are now."""
        written, read = self.acknowledged, len(self.read)

        def has_progressed() -> bool:
            assert self.acknowledged >= written + PROGRESS, f"{self.acknowledged} records written, {self.failures[:3]}"
            assert len(self.read) >= read + PROGRESS, f"{len(self.read)} records read"
            return True

        self._watched.set()
        eventually(has_progressed, "the bystander's progress", DEADLINE_S)
        self._watched.clear()

    def finish(self) -> None:
        """All that was sent was written and read, once and in order."""
        self._stopping.set()
        self.join(DEADLINE_S)
        assert self._producer.flush(DEADLINE_S) == 0

        def all_read() -> bool:
            self._read()
            return len(self.read) >= self._sent

        eventually(all_read, "the bystander's last records", DEADLINE_S)
        assert self.failures == []
        assert self.read == list(range(self._sent))
        self._consumer.close()


def memory(pid: int, name: str) -> int:
    """Bytes, as /proc has them."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


class Victim:
    """A broker, its process and the bystander."""

    def __init__(self, broker: Broker, topic: str = "bystander", login: Mapping[str, Any] | None = None) -> None:
        self.broker = broker
        self.pid = broker.service.pid
        self.bystander = Bystander(broker.bootstrap, topic, login)

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.broker.port

    @property
    def rss(self) -> int:
        return memory(self.pid, "VmRSS")

    @property
    def peak_rss(self) -> int:
        """The most since `reset_peak`."""
        return memory(self.pid, "VmHWM")

    def reset_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def open_sockets(self) -> int:
        """Its files may become more in between, as when the topic of offsets is made."""
        found, directory = 0, f"/proc/{self.pid}/fd"
        for name in os.listdir(directory):  # of thousands, again and again: a `Path` of each takes five times as long
            with suppress(FileNotFoundError):
                found += os.readlink(f"{directory}/{name}").startswith("socket:")
        return found

    def is_unharmed(self) -> None:
        """The same process serves, others get on, and nothing in its log is a surprise."""
        assert self.broker.service.running, self.broker.service.tail()
        assert self.broker.service.pid == self.pid
        self.bystander.progresses()
        output = self.broker.service.output()
        at = output.find("Traceback")
        assert at < 0, output[max(0, at - 500) : at + 3000]

    def close(self) -> None:
        if self.bystander.is_alive():
            self.bystander.finish()
