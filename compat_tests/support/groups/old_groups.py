"""Groups whose place is ZooKeeper: the consumers of before Kafka 0.9 as processes, and what the tree says of them."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from kazoo.exceptions import NoNodeError

from compat_tests.support.cluster import Cluster
from compat_tests.support.tools import Tools

LEAVE_DEADLINE_S = 90.0
MAIN = "kafka.tools.ConsoleConsumer"


class OldConsumer:
    """`kafka-console-consumer --zookeeper`, as a process; what it prints goes to a file.

    It wants `--from-beginning` of the first member, and refuses it where the group has offsets. `tools` are those of
    its version for the ZooKeeper; `more` are further settings of the consumer.
    """

    def __init__(self, tools: Tools, directory: Path, topic: str, group: str, number: int, more: str = "") -> None:
        settings = directory / f"{group}.properties"
        settings.write_text(
            f"group.id={group}\nzookeeper.connect={tools.bootstrap}\nzookeeper.session.timeout.ms=3000\n"
            "auto.commit.interval.ms=200\nrebalance.max.retries=20\nrebalance.backoff.ms=500\n"
            f"zookeeper.sync.time.ms=200\nrefresh.leader.backoff.ms=100\n{more}"
        )
        self._output = directory / f"{group}-{number}.out"
        command = tools.main_command(
            MAIN,
            *("--zookeeper", tools.bootstrap, "--topic", topic, "--consumer.config", str(settings)),
            *(["--from-beginning"] if number == 0 else []),
        )
        with self._output.open("wb") as output, self._output.with_suffix(".err").open("wb") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)

    @property
    def read(self) -> list[str]:
        return self._output.read_text().splitlines()

    def stop(self) -> None:
        """SIGTERM: it commits, and leaves."""
        self._process.terminate()
        self._process.wait(LEAVE_DEADLINE_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Group:
    """What the tree says of a group of old."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self._tree = cluster.tree
        self._root, self._topic = f"/consumers/{group}", topic

    def _values(self, path: str) -> dict[str, str]:
        """Name and content of each child; members come and go while it is read."""
        found = {}
        with contextlib.suppress(NoNodeError):
            for name in self._tree.get_children(path):
                with contextlib.suppress(NoNodeError):
                    found[name] = self._tree.get(f"{path}/{name}")[0].decode()
        return found

    @property
    def members(self) -> set[str]:
        return set(self._values(f"{self._root}/ids"))

    @property
    def owners(self) -> dict[int, str]:
        return {int(part): owner for part, owner in self._values(f"{self._root}/owners/{self._topic}").items()}

    @property
    def offsets(self) -> dict[int, int]:
        return {int(part): int(value) for part, value in self._values(f"{self._root}/offsets/{self._topic}").items()}
