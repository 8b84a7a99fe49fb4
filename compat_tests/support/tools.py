"""Kafka's own command line tools, from the 3.9.1 and from the 4.x jars, and kcat, each run as a user runs them.

`Tools.run` runs a tool to its end in a JVM that stays, `resident.py`: a start costs half a second of processor time.
`Tools.command` is for a process of its own: for a tool that runs until it is stopped, or with options of its JVM.

Two older versions are here for what speaks to ZooKeeper itself: `Tools("2.8.2", zookeeper)` has `topics` and `configs`,
`Tools("0.10.2.2", zookeeper)` these and the old `console-consumer`; `Tools("3.9.1", zookeeper)` has ZooKeeper's shell.
`compat_tests/field/era.py` has the other tools of 0.8.2.2 and 0.10.2.2, by `run_main`.

A JVM that starts for one command spends most of its time loading classes, so there is an archive of them under
`.cache/jvm/cds/` (JEP 350), one for all tools of a version: they load mostly the same ones. It changes speed only: a
JVM that cannot use its archive starts without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compat_tests.deps import CACHE, ROOT, jars_dir
from compat_tests.support.resident import Outcome, Resident
from compat_tests.support.security.logins import login_at
from kpybroker.testing import Broker as OwnBroker

TOOL_DEADLINE_S = 180.0
ARCHIVES = CACHE / "jvm" / "cds"
RESIDENT = ROOT / "compat_tests" / "workers" / "ResidentTools.java"
LOG4J = ROOT / "compat_tests" / "jvm" / "log4j-tools.properties"
JVM_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=off"]
KAFKAS = ("org.apache.kafka.", "kafka.")
JVM_OPTIONS_IN_ENVIRONMENT = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}

VERSIONS = ("3.9.1", "4.x")
JARS = {
    "3.9.1": "kafka-3.9.1",
    "4.x": "kafka-4.3.1",
    "2.8.2": "kafka-2.8.2",
    "0.10.2.2": "kafka-0.10.2.2",
    "0.8.2.2": "kafka-0.8.2.2",
}

MAIN_CLASSES = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "acls-zookeeper": "kafka.admin.AclCommand",  # before 4.0 only
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",  # 4.x only
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",  # 4.x only
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",  # 4.x only
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",  # 4.x only
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "dump-log": "kafka.tools.DumpLogSegments",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "state-change-merger": "kafka.tools.StateChangeLogMerger",  # before 4.0 only
    "client-compatibility-test": "org.apache.kafka.tools.ClientCompatibilityTest",
}
# where 3.9.1 still had the Scala one
MAIN_CLASSES_3_9 = {
    "acls": "kafka.admin.AclCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "cluster": "kafka.tools.ClusterTool",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMain",
}
MAIN_CLASSES_ON_ZOOKEEPER = {
    "2.8.2": {"topics": "kafka.admin.TopicCommand", "configs": "kafka.admin.ConfigCommand"},
    "0.10.2.2": {
        "console-consumer": "kafka.tools.ConsoleConsumer",
        "topics": "kafka.admin.TopicCommand",
        "configs": "kafka.admin.ConfigCommand",
        "consumer-groups": "kafka.admin.ConsumerGroupCommand",
    },
}
# tools that do not take --bootstrap-server
BOOTSTRAP_OPTION = {
    "acls-zookeeper": None,
    "producer-perf-test": None,
    "dump-log": None,
    "state-change-merger": None,
    "e2e-latency": None,
    "message-copier": "--broker-list",
    "replica-verification": "--broker-list",
    "zookeeper-shell": "-server",
}
# how a tool is given the settings of its clients
LOGIN_OPTION = {
    "leader-election": "--admin.config",
    "console-producer": "--producer.config",
    "console-consumer": "--consumer.config",
}
# KIP-1147: since 4.2 these options have other names; the old ones work, and say so on the standard output.
RENAMED = {
    "console-producer": {
        "--property": "--reader-property",
        "--producer-property": "--command-property",
        "--producer.config": "--command-config",
    },
    "console-consumer": {
        "--property": "--formatter-property",
        "--consumer-property": "--command-property",
        "--consumer.config": "--command-config",
    },
    "console-share-consumer": {"--consumer-property": "--command-property"},
    "producer-perf-test": {"--producer-props": "--command-property", "--producer.config": "--command-config"},
    "consumer-perf-test": {"--messages": "--num-records", "--consumer.config": "--command-config"},
}
# A tool's own patience, where it is too short for a busy machine: the console producer waits 1.5 s for a response, and
# what it then could not write is a line in its log, with exit code 0.
PATIENCE = {"console-producer": ["--request-timeout-ms", "60000"]}


@dataclass(frozen=True, slots=True)
class Result:
    command: list[str]
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.strip()]

    def __str__(self) -> str:
        return f"$ {' '.join(self.command)}\nexit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run_process(
    command: list[str],
    stdin: str | bytes | None = None,
    check: bool = True,
    deadline_s: float = TOOL_DEADLINE_S,
    env: dict[str, str] | None = None,
) -> Result:
    """Run to the end; with `check`, a non-zero exit code fails and shows all that the tool said."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        done = subprocess.run(
            command, input=data or b"", capture_output=True, timeout=deadline_s, env={**os.environ, **(env or {})}
        )
    except subprocess.TimeoutExpired as late:
        said = Result(command, -1, _text(late.stdout), _text(late.stderr))
        raise AssertionError(f"no end within {deadline_s} s: {said}") from None
    return _checked(Result(command, done.returncode, _text(done.stdout), _text(done.stderr)), check)


def _checked(result: Result, check: bool) -> Result:
    assert not check or result.code == 0, str(result)
    return result


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


@cache
def _class_path(version: str) -> str:
    """Every jar by name and in order: an archive of classes is bound to the exact class path."""
    jars = sorted(jars_dir(JARS[version]).glob("*.jar"))
    assert jars, f"no jars in {jars_dir(JARS[version])}: run make test-deps"
    return ":".join(map(str, jars))


@cache
def _java_version() -> str:
    return subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr


@cache
def class_path_key(version: str) -> str:
    """Archives are bound to the class path and the Java that they were made with."""
    return hashlib.sha256((_class_path(version) + _java_version()).encode()).hexdigest()[:12]


@cache
def _archive(version: str) -> Path:
    """The tool that loads most makes it, before any other runs. Of the versions for ZooKeeper the first run does."""
    archive = ARCHIVES / f"{version}-{class_path_key(version)}.jsa"
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # while another worker of pytest makes it
        if version in VERSIONS and not archive.exists():
            with OwnBroker() as broker:
                words = ["--bootstrap-server", broker.bootstrap_servers, "--describe", "--entity-type", "brokers"]
                command = ["java", *JVM_OPTIONS, *_java_options(version), MAIN_CLASSES["configs"], *words]
                _run_and_archive(command, archive, check=False)
    return archive


def _run_and_archive(command: list[str], archive: Path, *options: Any, **named: Any) -> Result:
    """`run_process`, and the classes that it loaded become the archive."""
    fresh = archive.with_suffix(f".{os.getpid()}")
    result = run_process([command[0], f"-XX:ArchiveClassesAtExit={fresh}", *command[1:]], *options, **named)
    if fresh.exists():
        fresh.rename(archive)
    return result


def quick_options(version: str) -> list[str]:
    """Of a JVM that lives for seconds, with `argument_file` as its class path."""
    archive = _archive(version)
    return [*JVM_OPTIONS, *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [])]


def _java_options(version: str) -> list[str]:
    return [f"-Dlog4j.configuration=file:{LOG4J}", f"@{argument_file(version)}"]


@cache
def argument_file(version: str) -> Path:
    """The class path in a file that java reads, so that a failure shows the command and not a hundred jars."""
    path = ARCHIVES / f"{version}-{class_path_key(version)}.args"
    if not path.exists():
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(f'-cp "{_class_path(version)}"\n')
        fresh.rename(path)
    return path


@cache
def resident(version: str) -> Resident:
    """The JVM of this process that stays, for the tools of a version.

    A process of its own is for a class that is not Kafka's, since it ends by System.exit; for options of the JVM in the
    environment, since they hold from its start; for a second tool at the same time; and for versions before 3.9.
    """
    return Resident(lambda: _resident_command(version))


def _resident_command(version: str) -> list[str]:
    options = [f"-Dlog4j.configuration=file:{LOG4J}", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    return program_command(version, RESIDENT, options)


def program_command(version: str, source: Path, options: Sequence[str] = ()) -> list[str]:
    """The command line of a program of ours in Java, among the jars of that version.

    The archive holds with more behind its class path.
    """
    jar = compiled(source, _class_path(version))
    return ["java", *quick_options(version), *options, "-cp", f"{_class_path(version)}:{jar}", source.stem]


def compiled(source: Path, class_path: str = "") -> Path:
    """The jar of a program of ours in Java. It is made once, which takes longer than most of what such a program does.

    To run the source itself compiles it each time.
    """
    key = hashlib.sha256(source.read_bytes() + (class_path + _java_version()).encode()).hexdigest()[:12]
    jar = ARCHIVES / f"{source.stem}-{key}.jar"
    if not jar.exists():
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as classes:
            run_process(["javac", "-encoding", "UTF-8", "-cp", class_path, "-d", classes, str(source)])
            fresh = jar.with_suffix(f".{os.getpid()}")
            run_process(["jar", "--create", "--file", str(fresh), "-C", classes, "."])
            fresh.rename(jar)
    return jar


def write_commands(directory: Path) -> Path:
    """Make it a directory with `kafka-topics.sh` and the others, for the PATH of a sample."""
    for name in MAIN_CLASSES:
        words = [word for word in Tools("3.9.1", "-").command(name) if word not in ("--bootstrap-server", "-")]
        script = directory / f"kafka-{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return directory


class Tools:
    """The tools of one Kafka version against one broker; of an old one, against a ZooKeeper that `bootstrap` names."""

    def __init__(self, version: str, bootstrap: str) -> None:
        self.version = version
        self.bootstrap = bootstrap

    def command(self, tool: str, *arguments: str) -> list[str]:
        """The command line of `kafka-<tool>.sh`, with --bootstrap-server, or --zookeeper, filled in.

        Options have the names of 3.9.1 here; 4.x gets its own.
        """
        main = self._main_class(tool)
        is_old = self.version in MAIN_CLASSES_ON_ZOOKEEPER
        option = "--zookeeper" if is_old else BOOTSTRAP_OPTION.get(tool, "--bootstrap-server")
        where = [option, self.bootstrap] if option else []
        login = login_at(self.bootstrap)
        with_login = [LOGIN_OPTION.get(tool, "--command-config"), str(login.file)] if login else []
        renamed = RENAMED.get(tool, {}) if self.version == "4.x" else {}
        words = [renamed.get(word, word) for word in (*with_login, *arguments)]
        return [*self._java(), main, *where, *PATIENCE.get(tool, []), *words]

    def run(
        self,
        tool: str,
        *arguments: str,
        stdin: str | bytes | None = None,
        check: bool = True,
        deadline_s: float = TOOL_DEADLINE_S,
    ) -> Result:
        """Run a tool to its end: in the JVM that stays, or else in one of its own."""
        return self._run(self.command(tool, *arguments), stdin, check, deadline_s)

    def main_command(self, main: str, *arguments: str) -> list[str]:
        """The command line of a main class in these jars, with these arguments and no others."""
        return [*self._java(), main, *arguments]

    def run_main(
        self,
        main: str,
        *arguments: str,
        stdin: str | bytes | None = None,
        check: bool = True,
        deadline_s: float = TOOL_DEADLINE_S,
    ) -> Result:
        """Run a main class in these jars to its end."""
        return self._run(self.main_command(main, *arguments), stdin, check, deadline_s)

    def _run(self, command: list[str], stdin: str | bytes | None, check: bool, deadline_s: float) -> Result:
        outcome = self._run_in_resident(command, stdin, deadline_s)
        if outcome is not None:
            result = Result(command, outcome.code, _text(outcome.out), _text(outcome.err))
            assert not outcome.is_late, f"no end within {deadline_s} s: {result}"
            return _checked(result, check)
        archive = _archive(self.version)
        if archive.exists():
            return run_process(command, stdin, check, deadline_s)
        return _run_and_archive(command, archive, stdin, check, deadline_s)

    def _run_in_resident(self, command: list[str], stdin: str | bytes | None, deadline_s: float) -> Outcome | None:
        """None for what needs a process of its own: see `resident`."""
        main, *arguments = command[len(self._java()) :]
        if self.version not in VERSIONS or not main.startswith(KAFKAS) or JVM_OPTIONS_IN_ENVIRONMENT & set(os.environ):
            return None
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        return resident(self.version).run(main, arguments, data, deadline_s)

    def _main_class(self, tool: str) -> str:
        if self.version in MAIN_CLASSES_ON_ZOOKEEPER:
            return MAIN_CLASSES_ON_ZOOKEEPER[self.version][tool]
        early = MAIN_CLASSES_3_9.get(tool) if self.version == "3.9.1" else None
        return early or MAIN_CLASSES[tool]

    def _java(self) -> list[str]:
        return ["java", *quick_options(self.version), *_java_options(self.version)]
