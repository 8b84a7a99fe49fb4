"""Kafka Streams 4.3.1 with `group.protocol=streams` (KIP-1071): internal topics, tasks, and counts that are right.

With exactly_once_v2 each step of a count is one record, so that what was lost or done twice is seen, whatever happens
to instances and to the broker in between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer

from compat_tests.conftest import StartBroker
from compat_tests.eos.readers import messages_to_end
from compat_tests.streams.application import CLASSIC, STREAMS, Application
from compat_tests.streams.groups import GROUP, by_process, described, set_standbys, streams_broker
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode

JARS = "streams-4.3.1"
PARTITIONS = 3
REPARTITION, CHANGELOG = f"{GROUP}-words-repartition", f"{GROUP}-counted-changelog"
TASKS = {f"{subtopology}_{partition}" for subtopology in range(2) for partition in range(PARTITIONS)}
VOCABULARY = ("ship", "sea", "sail", "mast", "rope", "tide", "wind", "salt")
LINES, WORDS = 40, 3
DEADLINE_S = 240.0
SHUT_DOWN = 3


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
        eventually(lambda: described(self.broker, GROUP).group_state == "Empty", "the group is empty", DEADLINE_S)

    def end(self) -> None:
        for one in self.instances:
            one.kill()


@pytest.fixture
def lab(own_broker: StartBroker, tmp_path: Path) -> Iterator[Lab]:
    broker = streams_broker(own_broker, transaction_state_log_num_partitions="4", offsets_topic_num_partitions="4")
    lab = Lab(broker, tmp_path)
    yield lab
    lab.end()


def test_words_are_counted(lab: Lab) -> None:
    """The coordinator makes the internal topics; a closed instance leaves the group, and gives its tasks back."""
    instance = lab.start()
    lab.write()
    lab.has_counted()
    lab.is_shared(1)
    topics = quick.admin_client(lab.broker.bootstrap).list_topics(timeout=quick.DEADLINE_S).topics
    made = {name: len(topics[name].partitions) for name in topics if name.startswith(GROUP)}
    assert made == {REPARTITION: PARTITIONS, CHANGELOG: PARTITIONS}
    group = described(lab.broker, GROUP)
    assert [one.subtopology_id for one in group.topology.subtopologies] == ["0", "1"]
    instance.close()
    lab.is_empty()


@pytest.mark.wide
def test_instances_share_the_tasks_and_are_restarted_one_by_one(lab: Lab) -> None:
    first = lab.start()
    lab.write()
    lab.is_shared(1)
    second = lab.start()
    lab.is_shared(2)
    lab.write()
    third = lab.start()
    lab.is_shared(3)
    for instance in (first, second, third):
        instance.close()
        lab.write()
        lab.is_shared(2)
        instance.start()
        lab.write()
        lab.is_shared(3)
    lab.has_counted()


@pytest.mark.wide
def test_standbys_take_over_from_an_instance_that_is_killed(lab: Lab) -> None:
    """The broker decides how many there are: it is a setting of the group."""
    set_standbys(lab.broker, 1)
    instances = [lab.start() for _ in range(3)]
    lab.write()
    lab.is_shared(3, standby=1)
    instances[0].kill()
    lab.write()
    lab.is_shared(2, standby=1)
    lab.has_counted()
    instances[0].start()
    lab.is_shared(3, standby=1)
    lab.write()
    lab.has_counted()


@pytest.mark.wide
def test_counts_are_right_after_the_broker_was_killed(lab: Lab) -> None:
    lab.start()
    lab.start()
    lab.write()
    lab.is_shared(2)
    for _ in range(3):
        lab.write()
        lab.broker.kill()
        lab.broker.start()
        lab.write()
    lab.is_shared(2)
    lab.has_counted()


@pytest.mark.wide
def test_an_application_changes_its_protocol_and_goes_back(lab: Lab) -> None:
    """Once it is empty, the group is of the other kind with the first member that joins; its offsets stay."""
    for protocol in (CLASSIC, STREAMS, CLASSIC, STREAMS):
        instance = lab.start(protocol)
        lab.write()
        lab.has_counted()
        found = described(lab.broker, GROUP)
        assert found.error_code == (0 if protocol == STREAMS else ErrorCode.GROUP_ID_NOT_FOUND)
        instance.close()
        if protocol == STREAMS:
            lab.is_empty()


@pytest.mark.wide
def test_one_instance_shuts_all_of_them_down(lab: Lab) -> None:
    instances = [lab.start() for _ in range(2)]
    lab.write()
    lab.is_shared(2)
    lab.write(["poison"])
    assert [instance.ends() for instance in instances] == [SHUT_DOWN, SHUT_DOWN], instances[0].said()
