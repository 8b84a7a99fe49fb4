"""Run one of the three programs next to this file, kill it and its broker (kill -9), and count what arrived.

    python crash.py at_most_once
    python crash.py at_least_once --crashes 5
    python crash.py exactly_once --records 100000

It starts a `kpybroker dev` of its own, in a directory that it removes at the end. The program is killed at the worst
moment: when its committed offset and the end of the target topic do not agree. To find such a moment, it is frozen
(SIGSTOP), compared, and continued if both agree. The broker is killed at such a moment too, and the program must
recover.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PROGRAMS = ("at_most_once", "at_least_once", "exactly_once")
SOURCE, TARGET, GROUP = "source", "target", "copier"
MORE_RECORDS = 300
TRIES_MAX = 300
DEADLINE_S = 60.0
READ_FROM_END = 20
"""Offsets from the end in which there is a record: transactions end with a marker, which has an offset too."""


class Broker(Protocol):
    @property
    def bootstrap(self) -> str: ...
    def start(self) -> None:
        """Returns when clients are served."""

    def kill(self) -> None:
        """SIGKILL."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a reader of the target finds, held against the source."""

    sent: int
    arrived: int
    lost: int
    twice: int
    """Records that are there again."""
    in_order: bool
    """Each comes after the one before it when what is there again is left out."""

    def __str__(self) -> str:
        order = "in order" if self.in_order else "NOT in order"
        return f"{self.sent} sent, {self.arrived} arrived: {self.lost} lost, {self.twice} twice, {order}"


class Program:
    """One of the three, as a process. If it ends by itself it is started again, as a supervisor would."""

    def __init__(self, name: str, bootstrap: str, log: Path) -> None:
        path = Path(__file__).with_name(f"{name}.py")
        self._command = [sys.executable, str(path), bootstrap, SOURCE, TARGET, GROUP]
        self._log = log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def look_after(self) -> None:
        if self._process.poll() is not None:
            self.start()

    def freeze(self) -> None:
        """SIGSTOP, and wait until all of its threads stand still."""
        self.look_after()
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        code = self._process.wait(DEADLINE_S)
        assert code == 0, f"it ended with {code}: {self._log.read_text()}"


class Play:
    """A broker, a program, and what becomes of them."""

    def __init__(self, name: str, broker: Broker, directory: Path) -> None:
        self._broker = broker
        self._sent = 0
        self._reached = 0
        admin = AdminClient(self._settings())
        for made in admin.create_topics([NewTopic(SOURCE, 1, 1), NewTopic(TARGET, 1, 1)]).values():
            made.result(DEADLINE_S)
        self._program = Program(name, broker.bootstrap, directory / f"{name}.log")

    def run(self, records: int, crashes: int) -> Numbers:
        try:
            for crash in range(1, crashes + 1):
                self._send(records * crash // (crashes + 1) - self._sent)
                self._freeze_halfway()
                self._program.kill()
                self._program.start()
                self._freeze_halfway()
                self._broker.kill()
                self._broker.start()
                self._program.thaw()
            self._send(records - self._sent)
            self._await_noted(self._sent)
            self._program.stop()
        finally:
            self._program.kill()
        return self._count()

    def _settings(self) -> dict[str, object]:
        return {"bootstrap.servers": self._broker.bootstrap, "log_level": 0}

    def _send(self, count: int) -> None:
        """The next numbers into the source."""
        producer = Producer({**self._settings(), "enable.idempotence": True, "linger.ms": 5})
        for _ in range(count):
            producer.produce(SOURCE, str(self._sent).encode())
            self._sent += 1
            producer.poll(0)
            if len(producer) > 10_000:
                producer.flush()
        assert producer.flush(DEADLINE_S) == 0

    def _freeze_halfway(self) -> None:
        """Stop it between its two steps, when it is past all that was done before; there is always something to do."""
        self._send(MORE_RECORDS)
        self._await_noted(self._reached + 1)
        for _ in range(TRIES_MAX):
            self._send(MORE_RECORDS)
            time.sleep(random.uniform(0, 0.03))  # anywhere in what it does with them
            self._program.freeze()
            noted, done = self._noted(), self._done()
            if noted != done:
                self._reached = max(noted, done)
                return
            self._program.thaw()
        raise AssertionError("the program was never caught between its two steps")

    def _noted(self) -> int:
        """How many records are done, by the group's offset."""
        consumer = Consumer({**self._settings(), "group.id": GROUP, "isolation.level": "read_uncommitted"})
        try:
            (place,) = consumer.committed([TopicPartition(SOURCE, 0)], DEADLINE_S)
            return max(0, place.offset)
        finally:
            consumer.close()

    def _done(self) -> int:
        """How many records are done, by the last of them in the target, committed or not."""
        last = self._read("read_uncommitted", READ_FROM_END)
        return last[-1] + 1 if last else 0

    def _read(self, isolation: str, from_end: int | None = None) -> list[int]:
        """The numbers in the target."""
        settings = {"group.id": "none", "isolation.level": isolation, "enable.partition.eof": True}
        consumer = Consumer({**self._settings(), **settings, "enable.auto.commit": False, "fetch.wait.max.ms": 50})
        numbers: list[int] = []
        try:
            place = TopicPartition(TARGET, 0)
            end = consumer.get_watermark_offsets(place, DEADLINE_S)[1]
            place.offset = 0 if from_end is None else max(0, end - from_end)
            consumer.assign([place])
            while True:
                message = consumer.poll(DEADLINE_S)
                assert message is not None, f"no end of {TARGET} within {DEADLINE_S} s"
                error = message.error()
                if error is None:
                    numbers.append(int(message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return numbers
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()

    def _await_noted(self, records: int) -> None:
        def is_noted() -> bool:
            self._program.look_after()
            return self._noted() >= records

        wait_for(is_noted, f"record {records} of {self._sent}")

    def _count(self) -> Numbers:
        return count(self._sent, self._read("read_committed"))


def count(sent: int, arrived: Sequence[int]) -> Numbers:
    copies = Counter(arrived)
    assert all(0 <= number < sent for number in copies), "something arrived that was never sent"
    return Numbers(
        sent=sent,
        arrived=len(arrived),
        lost=sent - len(copies),
        twice=len(arrived) - len(copies),
        in_order=all(one < other for one, other in pairwise(dict.fromkeys(arrived))),
    )


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come within {DEADLINE_S} s"
        time.sleep(0.05)


class DevBroker:
    """`kpybroker dev`, always at the same address and on the same files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "kpybroker", "dev", "--port", str(self._port)]
        command += ["--data-dir", str(self._directory / "data")]
        with (self._directory / "broker.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self._is_ready, "a broker")

    def _is_ready(self) -> bool:
        said = (self._directory / "broker.log").read_text()
        assert self._process is not None
        assert self._process.poll() is None, f"the broker did not start: {said}"
        ready = re.search(r"^kpybroker ready at \S+:(\d+)$", said, re.MULTILINE)
        if ready is None:
            return False
        self._port = int(ready[1])
        return True

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def main(arguments: Sequence[str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # not without ending the others
    parser = argparse.ArgumentParser(description="Copies under kill -9 of the copier and of the broker, and counts.")
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--records", type=int, default=20_000, help="at least so many (default: %(default)s)")
    parser.add_argument("--crashes", type=int, default=3, help="of each of the two (default: %(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        broker = DevBroker(Path(directory))
        try:
            broker.start()
            numbers = Play(options.program, broker, Path(directory)).run(options.records, options.crashes)
        finally:
            broker.kill()
    print(f"{options.program}, {options.crashes} kills of the program, {options.crashes} of the broker")
    print(numbers)


if __name__ == "__main__":
    main(sys.argv[1:])
