"""Instances of a word count (`WordCount.java`) on a broker, what was written so far, and what it must have come to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random

from confluent_kafka import Producer

from compat_tests.eos.readers import messages_to_end
from compat_tests.streams.application import STREAMS, Application
from compat_tests.streams.groups import GROUP, by_process, described, state
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

JARS = "streams-4.3.1"
PARTITIONS = 3
REPARTITION, CHANGELOG = f"{GROUP}-words-repartition", f"{GROUP}-counted-changelog"
TASKS = {f"{subtopology}_{partition}" for subtopology in range(2) for partition in range(PARTITIONS)}
VOCABULARY = ("ship", "sea", "sail", "mast", "rope", "tide", "wind", "salt")
LINES, WORDS = 40, 3
DEADLINE_S = 240.0


class Lab:
    """A broker, the instances of an application, and what was written so far."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker = broker
        self.instances: list[Application] = []
        self.words: Counter[str] = Counter()
        self._directory = directory
        self._numbers = count()
        self._random = Random(7)
        for topic in ("lines", "counts"):
            quick.create_topic(broker.bootstrap, topic, PARTITIONS)

    def start(self, protocol: str = STREAMS) -> Application:
        home = self._directory / f"instance-{next(self._numbers)}"
        arguments = (self.broker.bootstrap, GROUP, str(home / "state"), protocol)
        self.instances.append(Application(JARS, "WordCount.java", home, arguments))
        return self.instances[-1]

    def write(self, lines: Sequence[str] | None = None) -> None:
        if lines is None:
            lines = [" ".join(self._random.choices(VOCABULARY, k=WORDS)) for _ in range(LINES)]
            self.words.update(word for line in lines for word in line.split())
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, **quick.QUIET})
        for number, line in enumerate(lines):
            producer.produce("lines", line.encode(), str(number).encode())
        assert producer.flush(quick.DEADLINE_S) == 0

    def has_counted(self) -> None:
        """Wait until all that was written is counted, each word up by one at a time."""

        def is_counted() -> bool:
            found = self._counts()
            total = sum(map(len, found.values()))
            said = "\n".join(one.said() for one in self.instances)
            assert total >= self.words.total(), f"{total} of {self.words.total()}; the applications said:\n{said}"
            return True

        eventually(is_counted, "all words counted", DEADLINE_S)
        assert self._counts() == {word: list(range(1, last + 1)) for word, last in self.words.items()}

    def _counts(self) -> dict[str, list[int]]:
        steps: dict[str, list[int]] = defaultdict(list)
        found = messages_to_end(self.broker.bootstrap, "counts", range(PARTITIONS), "read_committed")
        for messages in found.values():
            for message in messages:
                steps[message.key().decode()].append(int(message.value()))
        return dict(steps)

    def is_shared(self, processes: int, standby: int = 0) -> None:
        """Wait until so many processes share all tasks, each of them active once and standing by so often."""

        def has_settled() -> bool:
            group = described(self.broker, GROUP)
            active, spare = by_process(group), by_process(group, "standby")
            assert (group.error_code, group.group_state, len(active)) == (0, "Stable", processes), group
            assert all(active.values()), "a process without a task"
            assert Counter(task for tasks in active.values() for task in tasks) == dict.fromkeys(TASKS, 1)
            stateful = {task for task in TASKS if task.startswith("1_")}
            spares = Counter(task for tasks in spare.values() for task in tasks)
            assert spares == (dict.fromkeys(stateful, standby) if standby else {})
            assert not any(active[process] & tasks for process, tasks in spare.items())
            return True

        eventually(has_settled, f"{processes} processes with all tasks", DEADLINE_S)

    def is_empty(self) -> None:
        """Classic members do not leave when they are closed: their sessions end."""
        eventually(lambda: state(self.broker, GROUP) == "Empty", "the group is empty", DEADLINE_S)

    def end(self) -> None:
        for one in self.instances:
            one.kill()
