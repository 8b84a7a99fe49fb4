"""Kafka's tools of 0.8.2.2 and 0.10.2.2, each run from its own jar against a cluster on real ZooKeeper.

    Era("0.8.2.2", cluster).run("GetOffsetShell", "--topic", topic, "--time", "-1")

Where a tool connects is filled in (`WHERE`). What the tools print that differs from run to run, such as times and the
order of sets, `plain` makes equal.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compat_tests.support.cluster import Cluster
from compat_tests.support.tools import Result, Tools
from compat_tests.support.waiting import eventually

VERSIONS = ("0.8.2.2", "0.10.2.2")

WHERE = {
    "tools.ConsumerOffsetChecker": "--zookeeper ZOOKEEPER",
    "tools.ExportZkOffsets": "--zkconnect ZOOKEEPER",
    "tools.ImportZkOffsets": "--zkconnect ZOOKEEPER",
    "tools.VerifyConsumerRebalance": "--zookeeper.connect ZOOKEEPER",
    "tools.GetOffsetShell": "--broker-list BROKERS",
    "tools.SimpleConsumerShell": "--broker-list BROKERS",
    "tools.ReplicaVerificationTool": "--broker-list BROKERS",
    "tools.ConsoleProducer": "--broker-list BROKERS",
    "tools.ConsoleConsumer": "--zookeeper ZOOKEEPER",
    "tools.ReplayLogProducer": "--zookeeper ZOOKEEPER --broker-list BROKERS",
    "tools.DumpLogSegments": "",
    "tools.ProducerPerformance": "--broker-list BROKERS",
    "tools.ConsumerPerformance": "--zookeeper ZOOKEEPER",
    "tools.SimpleConsumerPerformance": "",
    "tools.TestEndToEndLatency": "",
    "tools.EndToEndLatency": "",
    "tools.JmxTool": "",
    "tools.KafkaMigrationTool": "",
    "tools.MirrorMaker": "",
    "tools.StateChangeLogMerger": "",
    "tools.UpdateOffsetsInZK": "",
    "admin.TopicCommand": "--zookeeper ZOOKEEPER",
    "admin.BrokerApiVersionsCommand": "--bootstrap-server BROKERS",
    "admin.ConsumerGroupCommand": "",
    "admin.ConfigCommand": "--zookeeper ZOOKEEPER",
    "admin.PreferredReplicaLeaderElectionCommand": "--zookeeper ZOOKEEPER",
    "admin.ReassignPartitionsCommand": "--zookeeper ZOOKEEPER",
}
"""By the class's name in the package `kafka`, the options that say where the cluster is."""

DEAD = 'Exception in thread "main"'
"""In the output of a tool that will not go on, though its process may."""

NOISE = re.compile(r"WARN (Property \S+ is not valid|WARNING: \w+ is deprecated)")


class Era:
    """The tools of one release against one cluster."""

    def __init__(self, version: str, cluster: Cluster) -> None:
        self.version = version
        self._cluster = cluster
        self._tools = Tools(version, cluster.zookeeper)

    def arguments(self, tool: str, *arguments: str) -> tuple[str, list[str]]:
        """The main class and its arguments, for a tool named as `TopicCommand`."""
        name = next(known for known in WHERE if known.endswith(f".{tool}"))
        filled = WHERE[name].replace("ZOOKEEPER", self._cluster.zookeeper).replace("BROKERS", self._cluster.bootstrap)
        return f"kafka.{name}", [*filled.split(), *arguments]

    def run(self, tool: str, *arguments: str, stdin: str | None = None, check: bool = True) -> Result:
        """Run it to its end. With `check`, an exit code other than 0 fails, and so does an exception on stderr."""
        main, words = self.arguments(tool, *arguments)
        result = self._tools.run_main(main, *words, stdin=stdin, check=check)
        assert not check or "Exception" not in result.err, str(result)
        return result

    @contextmanager
    def running(self, directory: Path, tool: str, *arguments: str) -> Iterator[Running]:
        """One that ends when it is stopped; it is killed on the way out."""
        main, words = self.arguments(tool, *arguments)
        made = Running(self._tools.main_command(main, *words), directory / f"{tool}.out")
        try:
            yield made
        finally:
            made.kill()


class Running:
    """A tool that runs, with all its output in a file."""

    def __init__(self, command: list[str], output: Path) -> None:
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)

    @property
    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for `condition`. Fails if the tool ends before, or if its main thread does: other threads keep it."""

        def is_so() -> bool:
            ended = self._process.poll()
            if condition():
                return True
            if ended is not None or DEAD in self.said:
                raise RuntimeError(f"{what}: the tool ended ({ended}): {self.said}")
            return False

        try:
            eventually(is_so, what)
        except AssertionError as late:
            raise AssertionError(f"{late}; the tool said: {self.said}") from None

    def wait_for(self, words: str) -> str:
        """The whole output, once it has `words`. Fails if the tool ends before."""
        self.wait_until(lambda: words in self.said, f"the tool says {words!r}")
        return self.said

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self._process.terminate()
        return self._process.wait(90)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def plain(text: str) -> list[str]:
    """Lines without what differs between two runs: times, remarks about properties, the order of lists in one line."""
    lines = []
    for line in text.splitlines():
        if not line.strip() or NOISE.search(line):
            continue
        line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+", "TIME", line)
        lines.append(" ".join(line.split()))
    return lines
