"""Who reads the copies: two that look on while they are made, and one that reads all at the end."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from compat_tests.eos.check import Seen, Stored
from compat_tests.support.quick import QUIET
from compat_tests.support.security.logins import reach
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

DEADLINE_S = 180.0
DAMNING = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._BAD_MSG})


def settings(bootstrap: str, isolation: str) -> dict[str, object]:
    return {
        **reach(bootstrap),
        "group.id": "none",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.max.ms": 200,
        **QUIET,
    }


class Reader(threading.Thread):
    """librdkafka, read_committed, through all that happens to the broker."""

    def __init__(self, bootstrap: str, topic: str, partitions: Iterable[int]) -> None:
        super().__init__(daemon=True)
        self.failures: list[str] = []
        self.count = 0
        self._seen: dict[int, list[Seen]] = defaultdict(list)
        self._stopping = threading.Event()
        self._consumer = Consumer(settings(bootstrap, "read_committed"))
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        self.start()

    def run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, 0.1):
                error = message.error()
                if error is None:
                    seen = Seen(message.offset(), message.value().decode(), time.monotonic_ns())
                    self._seen[message.partition()].append(seen)
                    self.count += 1
                elif error.code() in DAMNING:
                    self.failures.append(f"the reader received: {error}")
        self._consumer.close()

    def count_of(self, partition: int) -> int:
        return len(self._seen[partition])

    def seen(self, partition: int) -> list[Seen]:
        return list(self._seen[partition])

    def stop(self) -> None:
        self._stopping.set()
        self.join(DEADLINE_S)


class JavaReader(threading.Thread):
    """Kafka's console consumer, read_committed; its own lists of aborted transactions."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        options = ["--topic", topic, "--from-beginning", "--isolation-level", "read_committed"]
        for shown in ("partition", "offset"):
            options += ["--property", f"print.{shown}=true"]
        self._process = subprocess.Popen(
            Tools("3.9.1", bootstrap).command("console-consumer", *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._seen: dict[int, list[Seen]] = defaultdict(list)
        self.start()

    def run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            partition, offset, value = line.rstrip("\n").split("\t")
            seen = Seen(int(offset.removeprefix("Offset:")), value, time.monotonic_ns())
            self._seen[int(partition.removeprefix("Partition:"))].append(seen)

    def seen(self, partition: int) -> list[Seen]:
        return list(self._seen[partition])

    def has(self, count: int) -> None:
        """Wait until it has read so many, or more."""

        def enough() -> bool:
            found = sum(map(len, list(self._seen.values())))
            assert found >= count, f"{found} of {count} records"
            return True

        eventually(enough, "what the Java reader has still to read", DEADLINE_S)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self.join(DEADLINE_S)


def read_to_end(bootstrap: str, topic: str, partitions: Iterable[int], isolation: str) -> dict[int, list[Stored]]:
    """Everything from the start to the end of the log, or to the last stable offset."""
    found = messages_to_end(bootstrap, topic, partitions, isolation)
    return {part: [Stored(m.offset(), m.value().decode()) for m in messages] for part, messages in found.items()}


def messages_to_end(
    bootstrap: str, topic: str, partitions: Iterable[int], isolation: str = "read_committed"
) -> dict[int, list[Message]]:
    consumer = Consumer({**settings(bootstrap, isolation), "enable.partition.eof": True})
    found: dict[int, list[Message]] = {partition: [] for partition in partitions}
    unfinished = set(found)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in found])
    end = time.monotonic() + DEADLINE_S
    try:
        while unfinished:
            assert time.monotonic() < end, f"no end of {unfinished} within {DEADLINE_S} s"
            for message in consumer.consume(2000, 0.2):
                error = message.error()
                if error is None:
                    found[message.partition()].append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                else:
                    raise AssertionError(f"{topic}-{message.partition()}: {error}")
    finally:
        consumer.close()
    return found
