"""Groups of both protocols on one broker, and what Kafka's tools print of them, without ids and addresses.

    python -m compat_tests.tools.group_outputs      # writes what they print on Kafka 4.3.1

The tools of 3.9.1 know consumer groups (KIP-848), and not what is new of them in 4.0.
"""

from __future__ import annotations

import queue
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.support import quick
from compat_tests.support.kafkas import kafka_4
from compat_tests.support.tools import VERSIONS, Result, Tools
from compat_tests.support.waiting import eventually

RECORDED: Final = Path(__file__).parent / "kafka_4_3_1_group_outputs.txt"
SETTLE_S: Final = 120.0
COUNT: Final = 10
COMMITTED: Final = 3
CLASSIC: Final = {"group.protocol": "classic"}
GROUPS: Final = ("names", "regex", "mixed", "old", "left", "none")
VIEWS: Final = tuple(
    (*view, *verbose) for view in (("--offsets",), ("--state",), ("--members",)) for verbose in ((), ("--verbose",))
)
LISTS: Final = (
    (),
    ("--state",),
    ("--state", "--type"),
    ("--type", "Consumer"),
    ("--type", "classic", "--state"),
    ("--state", "stable,empty"),
    ("--state", "Reconciling"),
)
CHANGES: Final = (
    ("--reset-offsets", "--group", "names", "--topic", "t1", "--to-earliest", "--execute"),
    ("--delete", "--group", "names"),
    ("--delete-offsets", "--group", "names", "--topic", "t1"),
    ("--reset-offsets", "--group", "left", "--topic", "t1", "--to-offset", "5", "--execute"),
    ("--delete-offsets", "--group", "left", "--topic", "t1:0"),
    ("--describe", "--group", "left"),
    ("--delete", "--group", "none"),
    ("--delete-offsets", "--group", "none", "--topic", "t1"),
)
LAST: Final = (("--delete", "--group", "left"), ("--list",))
KINDS: Final = (
    (),
    ("--group-type", "consumer"),
    ("--group-type", "classic"),
    ("--consumer",),
    ("--protocol", "consumer"),
)


class Polled:
    """A consumer on a thread of its own, which polls it until `close`; `count` partitions are assigned to it."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], more: Mapping[str, str]) -> None:
        keys = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0, "enable.auto.commit": False}
        self._consumer = Consumer({"group.protocol": "consumer", **keys, **more})
        self._consumer.subscribe(topics)
        self._asked: queue.Queue[str] = queue.Queue()
        self.count = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        asked = ""
        while asked != "close":
            while self._asked.empty():
                self._consumer.poll(0.1)
                self.count = len(self._consumer.assignment())
            asked = self._asked.get()
            if asked == "commit":
                parts = [one for one in self._consumer.assignment() if one.topic == "t1"]
                moved = [TopicPartition(one.topic, one.partition, COMMITTED) for one in parts]
                if moved:
                    self._consumer.commit(offsets=moved, asynchronous=False)
            self._asked.task_done()
        self._consumer.close()

    def commit(self) -> None:
        """Commit to its partitions of t1, and return when that is done."""
        self._asked.put("commit")
        self._asked.join()

    def close(self) -> None:
        """Leave the group, and return when that is done."""
        self._asked.put("close")
        self._thread.join(SETTLE_S)
        assert not self._thread.is_alive()


@contextmanager
def members(bootstrap: str) -> Iterator[None]:
    """Of named topics, of a regular expression, of both protocols in one group, of the classic one, and one that left.

    What each has is the same wherever they are: it follows from their order and their topics.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 2, 1) for name in ("t1", "t2")]).values():
        future.result(SETTLE_S)
    for partition in (0, 1):
        quick.fill(bootstrap, "t1", [f"{n}" for n in range(COUNT)], partition)
    with ExitStack() as until_the_end:

        def join(group: str, topics: list[str], client_id: str, more: Mapping[str, str] = {}) -> Polled:
            made = Polled(bootstrap, group, topics, {"client.id": client_id, **more})
            until_the_end.callback(made.close)
            return made

        names = [join("names", ["t1"], "m1"), join("names", ["t1", "t2"], "m2", {"group.instance.id": "static"})]
        regex, old = join("regex", ["^t.*"], "re"), join("old", ["t1"], "c1", CLASSIC)
        mixed = [join("mixed", ["t1"], "x1", CLASSIC)]
        left = Polled(bootstrap, "left", ["t1"], {"client.id": "gone"})
        both = [2, 2]
        eventually(
            lambda: (
                [one.count for one in names] == both
                and regex.count == 4
                and [one.count for one in (old, left, *mixed)] == [2, *both]
            ),
            "every partition has a member",
            SETTLE_S,
        )
        mixed.append(join("mixed", ["t1"], "x2"))
        eventually(lambda: [one.count for one in mixed] == [1, 1], "one partition each", SETTLE_S)
        for one in (*names, old, left):
            one.commit()
        left.close()
        for group in ("names", "regex", "mixed"):
            _settle(bootstrap, group)
        yield


def _settle(bootstrap: str, group: str) -> None:
    """A member has its partitions one heartbeat before its group is stable."""
    tools = Tools("4.x", bootstrap)
    words = ("--describe", "--group", group, "--state")
    eventually(lambda: " Stable " in tools.run("consumer-groups", *words).out, f"{group} is stable", SETTLE_S)


def outputs(bootstrap: str) -> dict[str, str]:
    """What the tools of both versions print, by their command lines. The last ones change the group that was left."""
    found = {}
    for version in VERSIONS:
        tools = Tools(version, bootstrap)
        described = [("--describe", "--group", group, *view) for group in GROUPS for view in VIEWS]
        described.append(("--describe", "--all-groups", "--state"))
        commands = [("consumer-groups", "--list", *words) for words in LISTS]
        commands += [("consumer-groups", *words) for words in (*described, *CHANGES)]
        if version != "3.9.1":
            commands += [("groups", "--list", *words) for words in KINDS]
            commands += [("consumer-groups", *words) for words in LAST]
        for tool, *words in commands:
            found[f"{version} {tool} {' '.join(words)}"] = printed(tools.run(tool, *words, check=False))
    return found


def printed(result: Result) -> str:
    """The exit code and the lines, in an order that is no one's, without what differs from run to run."""
    errors = [line for line in result.err.splitlines() if re.match(r"(java|org|Caused)[ .]", line)]
    text = "\n".join([result.out, *errors])
    text = re.sub(r"127\.0\.0\.1:\d+ +\(\d+\)", "COORDINATOR", text)
    text = re.sub(r"\b([cx]1)-[0-9a-f-]{36}", r"\1-ID", text)
    text = re.sub(r"(?<![\w+/-])[\w+/-]{22}(?=\s)", "ID", text)
    lines = sorted(re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return "\n".join([f"exit code {result.code}", *filter(None, lines)])


def recorded() -> dict[str, str]:
    """What they printed on Kafka 4.3.1."""
    parts = RECORDED.read_text().split("$ ")[1:]
    return {head: body.rstrip("\n") for head, _, body in (part.partition("\n") for part in parts)}


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        kafka_4(Path(directory) / "kafka") as bootstrap,
        members(bootstrap),
    ):
        found = outputs(bootstrap)
    RECORDED.write_text("\n".join(f"$ {command}\n{text}\n" for command, text in found.items()))


if __name__ == "__main__":
    main()
