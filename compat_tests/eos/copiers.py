"""The copiers as processes that can be killed or frozen: TransactionalMessageCopier, and one with confluent-kafka."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass

from compat_tests.deps import ROOT
from compat_tests.support.tools import VERSIONS, Tools
from compat_tests.support.waiting import eventually
from tests.support.programs.signals import freeze, thaw

WORKER = ROOT / "compat_tests" / "workers" / "confluent_copier.py"
TRANSACTION_SIZE = 10
TRANSACTION_TIMEOUT_MS = 10_000
END_DEADLINE_S = 180.0
LINES_KEPT_MAX = 400

JAVA, CONFLUENT = "java", "confluent"
FENCED = re.compile(r"claimed by another process|ProducerFenced|_FENCED|InvalidProducerEpoch|INVALID_PRODUCER_EPOCH")
EXCUSED = re.compile(r"TimeoutException|_TIMED_OUT|REQUEST_TIMED_OUT|INVALID_TXN_STATE|InvalidTxnState|NOT_COORDINATOR")
"""Fencing apart: how a client may end that waited long for a broker, or whose transaction was aborted for its age; and
librdkafka's question for committed offsets, which is asked once, of a coordinator that has moved since."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to copy; `partition` is None for a member of a group, who never ends by itself when it is confluent's.

    `jars` are those of the Java copier: of 3.9.1 its transactions are of version 1, of 4.x of the newest that there is.
    """

    bootstrap: str
    group: str
    source: str
    target: str
    transactional_id: str
    partition: int | None
    count: int
    seed: int
    jars: str = VERSIONS[0]


class Copier:
    """One process. It ends by itself when all is copied, when it is fenced, or when it gives up."""

    def __init__(self, kind: str, task: Task) -> None:
        self.kind = kind
        self.task = task
        self.copied = 0
        self.aborted = 0
        self.commit_called: dict[tuple[int, int], int] = {}
        """When the commit of a record of the input was asked for; the Java copier does not tell."""
        self._said: list[str] = []
        command = java_command(task) if kind == JAVA else confluent_command(task)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line)
            del self._said[:-LINES_KEPT_MAX]
            if line.startswith("{"):
                self._hear(json.loads(line))

    def _hear(self, event: dict[str, object]) -> None:
        if self.kind == JAVA:
            self.copied = int(str(event["totalProcessed"]))
            return
        match event["event"]:
            case "commit":
                records = event["records"]
                assert isinstance(records, list)
                for partition, number in records:
                    self.commit_called.setdefault((partition, number), int(str(event["time_ns"])))
            case "committed":
                self.copied += int(str(event["count"]))
            case "aborted":
                self.aborted += 1

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        return f"{self.kind} {self.task.transactional_id}:\n{''.join(self._said[-40:])}"

    def result(self) -> int:
        """The exit code of a process that has ended, when all that it said was heard."""
        code = self._process.wait(END_DEADLINE_S)
        self._reader.join(END_DEADLINE_S)
        return code

    def is_excused(self) -> bool:
        """Whether it ended for a reason that a client may have when its broker dies, or it is replaced."""
        words = "".join(self._said)
        return self.result() == 0 or bool(FENCED.search(words) or EXCUSED.search(words))

    def kill(self) -> None:
        self._process.kill()
        self.result()

    def freeze(self) -> None:
        """Let all of its threads stand still."""
        freeze(self._process.pid)

    def thaw(self) -> None:
        thaw(self._process.pid)

    def is_fenced(self) -> bool:
        """Wait for its end; whether it says that another has taken its place."""
        eventually(lambda: not self.running, f"the end of a zombie; it said:\n{self.said()}", END_DEADLINE_S)
        return self.result() != 0 and bool(FENCED.search("".join(self._said)))


def java_command(task: Task) -> list[str]:
    options = ["--input-topic", task.source, "--output-topic", task.target, "--consumer-group", task.group]
    options += ["--transactional-id", task.transactional_id, "--enable-random-aborts"]
    options += ["--transaction-size", str(TRANSACTION_SIZE), "--transaction-timeout", str(TRANSACTION_TIMEOUT_MS)]
    # in group mode the partition is asked for and ignored
    options += ["--input-partition", str(task.partition or 0)]
    options += ["--group-mode", "--use-group-metadata"] if task.partition is None else []
    return Tools(task.jars, task.bootstrap).command("message-copier", *options)


def confluent_command(task: Task) -> list[str]:
    spec = asdict(task) | {"transaction_size": TRANSACTION_SIZE, "timeout_ms": TRANSACTION_TIMEOUT_MS}
    return [sys.executable, str(WORKER), json.dumps(spec)]
