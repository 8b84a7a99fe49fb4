"""Storm's Kafka spout and bolt with each of its guarantees, over deaths of Storm's process and of the broker.

One click is never acked by the first process, so what the spout commits, and what the next process gets again, is
known: at least once it stays at this click, and everything from it on comes again; with the others it goes past it.
"""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.deps import jars_dir
from compat_tests.eos.readers import messages_to_end
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process
from compat_tests.support.waiting import eventually

SOURCE = Path(__file__).with_name("Clicks.java")
STORM = "storm-2.8.3"
# a LocalCluster keeps its state with Kryo, and looks into classes of Java's
OPENED = ("java.lang", "java.nio", "java.util", "java.util.concurrent")
JVM = [
    *("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
]
GROUP = "storm"
PARTITIONS = 3
PLACES = [("clicks", partition) for partition in range(PARTITIONS)]
AT_ONCE = 40
"""Clicks of one partition in one round."""
HELD_AT, FAILING = 25, 7
"""In the first round of partition 0 this click is held; every seventh of all fails when it is seen first."""
DEADLINE_S = 180.0

pytestmark = pytest.mark.wide


class Storm:
    """A process with a cluster and the topology in it."""

    def __init__(self, directory: Path, broker: Broker, guarantee: str) -> None:
        self._log = directory / "storm.log"
        classes = directory / "classes"
        class_path = f"{jars_dir(STORM)}/*"
        run_process(["javac", "-cp", class_path, "-d", str(classes), str(SOURCE)])
        arguments = (broker.bootstrap, GROUP, guarantee)
        temporary = f"-Djava.io.tmpdir={directory}"
        self._command = ["java", *JVM, temporary, "-cp", f"{class_path}:{classes}", "Clicks", *arguments]
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """It ends by itself with its input, and so with this process."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *options], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self._directory
            )

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Clicks:
    """What was written, and what is found."""

    def __init__(self, broker: Broker, storm: Storm) -> None:
        self._broker = broker
        self._storm = storm
        self.written: list[list[str]] = [[] for _ in range(PARTITIONS)]

    def click(self) -> None:
        """A round in each partition."""
        for partition, before in enumerate(self.written):
            values = [_value(partition, len(before) + n) for n in range(AT_ONCE)]
            quick.fill(self._broker.bootstrap, "clicks", values, partition)
            before += values

    def all(self) -> list[str]:
        return [value for values in self.written for value in values]

    def read(self) -> list[str]:
        """What Storm wrote."""
        found = messages_to_end(self._broker.bootstrap, "counted", range(PARTITIONS))
        return [message.value().decode() for messages in found.values() for message in messages]

    def counted(self) -> list[str]:
        """The clicks of it, without their numbers."""
        return [value.partition("@")[0] for value in self.read()]

    def has_counted(self, values: set[str]) -> None:
        """Wait until each of `values` is there."""

        def enough() -> bool:
            missing = values - set(self.counted())
            assert not missing, f"{len(missing)} of {len(values)} are missing, as {min(missing)}"
            return True

        self._wait(enough, "what Storm counted")

    def has_committed(self, offsets: list[int]) -> None:
        def is_there() -> bool:
            found = quick.committed(self._broker.bootstrap, GROUP, PLACES)
            assert found == offsets, f"{found}, not {offsets}"
            return True

        self._wait(is_there, "what Storm committed")

    def ends(self) -> list[int]:
        return [len(values) for values in self.written]

    def _wait(self, check: Callable[[], bool], what: str) -> None:
        try:
            eventually(check, what, DEADLINE_S)
        except AssertionError as missing:
            raise AssertionError(f"{missing}\n{self._storm.said()}") from None


def _value(partition: int, number: int) -> str:
    if (partition, number) == (0, HELD_AT):
        return f"held-{partition}-{number}"
    return f"{'fails' if number % FAILING == 0 else 'plain'}-{partition}-{number}"


def failing(values: list[str]) -> set[str]:
    return {value for value in values if value.startswith("fails")}


@contextmanager
def scene(own_broker: StartBroker, directory: Path, guarantee: str) -> Iterator[tuple[Broker, Storm, Clicks]]:
    broker = own_broker(offsets_topic_num_partitions="4")
    for topic in ("clicks", "counted"):
        quick.create_topic(broker.bootstrap, topic, PARTITIONS)
    storm = Storm(directory, broker, guarantee)
    try:
        yield broker, storm, Clicks(broker, storm)
    finally:
        storm.kill()


def test_at_least_once(own_broker: StartBroker, tmp_path: Path) -> None:
    with scene(own_broker, tmp_path, "AT_LEAST_ONCE") as (broker, storm, clicks):
        clicks.click()
        held = _value(0, HELD_AT)
        storm.start("HELD")
        clicks.has_counted(set(clicks.all()) - {held})
        clicks.has_committed([HELD_AT, *clicks.ends()[1:]])
        assert sorted(clicks.counted()) == sorted(set(clicks.all()) - {held})
        numbers = defaultdict(list)
        for value, _, number in (line.partition("@") for line in clicks.read()):
            numbers[value.split("-")[1]].append(int(number))
        assert [sorted(numbers[str(n)]) for n in range(PARTITIONS)] == [
            list(range(1, count + 1)) for count in (AT_ONCE - 1, AT_ONCE, AT_ONCE)
        ]
        storm.kill()

        again = clicks.written[0][HELD_AT:]
        clicks.click()
        storm.start()
        clicks.has_counted(set(clicks.all()))
        clicks.has_committed(clicks.ends())
        times = Counter(clicks.counted())
        assert times == Counter(clicks.all()) + Counter(again) - Counter([held])

        broker.kill()
        broker.start()
        clicks.click()
        clicks.has_counted(set(clicks.all()))
        clicks.has_committed(clicks.ends())


@pytest.mark.parametrize("guarantee", ["AT_MOST_ONCE", "NO_GUARANTEE"])
def test_without_a_second_try(own_broker: StartBroker, tmp_path: Path, guarantee: str) -> None:
    """What failed or was held is committed, and does not come again."""
    with scene(own_broker, tmp_path, guarantee) as (broker, storm, clicks):
        clicks.click()
        held = _value(0, HELD_AT)
        storm.start("HELD")
        done = set(clicks.all()) - failing(clicks.all()) - {held}
        clicks.has_counted(done)
        clicks.has_committed(clicks.ends())
        storm.kill()

        broker.restart()
        clicks.click()
        storm.start()
        expected = set(clicks.all()) - failing(clicks.all()) - {held}
        clicks.has_counted(expected)
        clicks.has_committed(clicks.ends())
        assert sorted(clicks.counted()) == sorted(expected)


def test_trident_copies_each_batch(own_broker: StartBroker, tmp_path: Path) -> None:
    """Opaque batches, with a topic as their state: once each while all goes well, all of them when the broker dies."""
    with scene(own_broker, tmp_path, "TRIDENT") as (broker, storm, clicks):
        clicks.click()
        storm.start()
        clicks.has_counted(set(clicks.all()))
        broker.restart()
        clicks.click()
        clicks.has_counted(set(clicks.all()))
        broker.kill()
        broker.start()
        clicks.click()
        clicks.has_counted(set(clicks.all()))
        assert set(clicks.counted()) == set(clicks.all())
