"""Flink as its users run it: a JobManager and TaskManagers as processes, jobs given to them by the `flink` command.

What is read of a running job, and checkpoints at a chosen time, come from the JobManager's REST API.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from compat_tests.deps import jars_dir
from compat_tests.support.rest import call
from compat_tests.support.services import Service
from compat_tests.support.tools import LOG4J, run_process
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

TALLY = Path(__file__).with_name("Tally.java")
RUNTIME = "org.apache.flink.runtime"
# as in the configuration that Flink 2.2 ships for Java 17
OPENED = ("java.lang", "java.lang.reflect", "java.net", "java.nio", "java.text", "java.time", "java.util")
JVM = [
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{LOG4J}"),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
]
SLOTS = 4
MEMORY = {
    "framework.heap.size": "64m",
    "framework.off-heap.size": "64m",
    "task.heap.size": "128m",
    "task.off-heap.size": "0",
    "network.min": "32m",
    "network.max": "32m",
    "managed.size": "32m",
    "jvm-metaspace.size": "128m",
    "jvm-overhead.min": "64m",
    "jvm-overhead.max": "64m",
}
"""Of a TaskManager: what Flink's scripts would derive from the size of its process."""
DEADLINE_S = 180.0


def compiled(version: str, directory: Path) -> Path:
    """The jar of the job, made with the jars of one Flink."""
    classes, jar = directory / "classes", directory / "tally.jar"
    run_process(["javac", "-cp", f"{jars_dir(version)}/*", "-d", str(classes), str(TALLY)])
    subprocess.run(["jar", "cf", jar, "-C", classes, "."], check=True)
    return jar


class Standalone:
    """A session cluster. Its checkpoints and savepoints are below `directory`, and outlive its processes."""

    def __init__(self, version: str, directory: Path) -> None:
        self._version = version
        self._directory = directory
        self._conf = directory / "conf"
        self._conf.mkdir()
        self._jar = compiled(version, directory)
        self.checkpoints, self.savepoints = directory / "checkpoints", directory / "savepoints"
        self.job_manager = self._service("StandaloneSessionClusterEntrypoint", "entrypoint")
        self.task_manager = self._service("TaskManagerRunner", "taskexecutor")
        self._task_managers = 0

    def _configure(self) -> None:
        """For the processes that are started next, with new ports for the JobManager's."""
        if not self.job_manager.running:
            self._rpc_port = free_port()
            self._address = f"127.0.0.1:{free_port()}"
        keys = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": self._rpc_port,
            "rest.address": "127.0.0.1",
            "rest.port": self._address.rpartition(":")[2],
            "rest.bind-address": "127.0.0.1",
            "taskmanager.host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": SLOTS,
            "taskmanager.resource-id": self._task_manager_id,
            "taskmanager.cpu.cores": "1.0",
            **{f"taskmanager.memory.{part}": size for part, size in MEMORY.items()},
            "web.refresh-interval": 100,
            "execution.checkpointing.dir": f"file://{self.checkpoints}",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.tolerable-failed-checkpoints": "1000",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "200 ms",
            # a TaskManager that is dead is known to be at once, one that is slow is not taken for dead
            "heartbeat.interval": "500 ms",
            "heartbeat.timeout": "60 s",
            "pekko.ask.timeout": "60 s",
            "io.tmp.dirs": str(self._directory),
        }
        (self._conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))

    def _service(self, main: str, package: str) -> Service:
        name = f"{RUNTIME}.{package}.{main}"
        command = ["java", "-Xmx256m", *self._java(), name, "--configDir", str(self._conf)]
        return Service(main, command, self._directory)

    def _java(self) -> list[str]:
        return [*JVM, "-cp", f"{jars_dir(self._version)}/*"]

    def start(self) -> None:
        self.start_job_manager()
        self.start_task_manager()

    def start_job_manager(self) -> None:
        self._configure()
        self.job_manager.start(lambda _: self.ask("GET", "overview"))

    def start_task_manager(self) -> None:
        """Also wait until the JobManager knows that there is no other any more."""
        self._task_managers += 1
        self._configure()
        self.task_manager.start(lambda _: self._known() == [self._task_manager_id])

    @property
    def _task_manager_id(self) -> str:
        return f"task-manager-{self._task_managers}"

    def _known(self) -> list[str]:
        return [one["id"] for one in self.ask("GET", "taskmanagers")["taskmanagers"]]

    def kill(self) -> None:
        """SIGKILL for both. The jobs are gone with the JobManager, until they are run from what is on the disk."""
        self.task_manager.kill()
        self.job_manager.kill()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return call(method, f"http://{self._address}/{path}", body)

    def flink(self, *arguments: str, check: bool = True) -> str:
        """Run the `flink` command; what it prints."""
        command = ["java", *self._java(), "org.apache.flink.client.cli.CliFrontend", *arguments]
        result = run_process(command, check=check, env={"FLINK_CONF_DIR": str(self._conf)}, deadline_s=DEADLINE_S)
        return result.out + result.err

    def run(self, parallelism: int, *arguments: str, restore: str | None = None) -> Job:
        """`flink run`, from a savepoint or a retained checkpoint if `restore` names one."""
        where = [] if restore is None else ["-s", restore]
        said = self.flink("run", "-d", "-p", str(parallelism), *where, "-c", "Tally", str(self._jar), *arguments)
        found = re.search(r"JobID ([0-9a-f]{32})", said)
        assert found, said
        return Job(self, found[1])

    def newest_checkpoint(self) -> str:
        """Of all jobs: the last one that was completed."""
        done = sorted(self.checkpoints.glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime_ns)
        assert done, "no checkpoint"
        return f"file://{done[-1].parent}"

    def tail(self) -> str:
        return f"{self.job_manager.tail(20)}\n{self.task_manager.tail(20)}"


class Job:
    """One run of the job."""

    def __init__(self, cluster: Standalone, job_id: str) -> None:
        self._cluster = cluster
        self._id = job_id

    def ask(self, method: str, path: str = "", body: object = None) -> Any:
        return self._cluster.ask(method, f"jobs/{self._id}{path}", body)

    def is_running(self) -> None:
        """Wait until every task runs."""

        def runs() -> bool:
            found = self.ask("GET")
            tasks = [vertex["status"] for vertex in found["vertices"]]
            assert found["state"] == "RUNNING", f"{found['state']}\n{self.cause()}"
            assert set(tasks) == {"RUNNING"}, f"{tasks}\n{self.cause()}"
            return True

        eventually(runs, "a job that runs", DEADLINE_S)

    def failure(self) -> str:
        """Wait until a task has failed, and say why."""
        return eventually(self.cause, "a job that fails", DEADLINE_S)

    def cause(self) -> str:
        """Of its failures so far."""
        entries = self.ask("GET", "/exceptions")["exceptionHistory"]["entries"]
        return "\n".join(entry["stacktrace"] for entry in entries)

    def checkpoint(self) -> str:
        """Have one made, again if need be, as when the job has just been restarted; where it is kept."""

        def made() -> str:
            trigger = self.ask("POST", "/checkpoints", {"checkpointType": "FULL"})["request-id"]
            end = eventually(lambda: self._end_of(trigger), "the end of a checkpoint", DEADLINE_S)
            assert "failureCause" not in end, end["failureCause"]["stack-trace"]
            return f"file://{self._cluster.checkpoints / self._id}/chk-{end['checkpointId']}"

        return eventually(made, "a checkpoint", DEADLINE_S)

    def _end_of(self, trigger: str) -> Any:
        found = self.ask("GET", f"/checkpoints/{trigger}")
        return found["status"]["id"] == "COMPLETED" and found["operation"]

    def cancel(self) -> None:
        self.ask("PATCH", "?mode=cancel")
        eventually(lambda: self.ask("GET")["state"] == "CANCELED", "the job's end", DEADLINE_S)

    def stop(self, *options: str) -> str:
        """`flink stop`: a savepoint, then the end; where the savepoint is."""
        said = self._cluster.flink("stop", *options, "-p", str(self._cluster.savepoints), self._id)
        found = re.search(r"Savepoint completed\. Path: (\S+)", said)
        assert found, said
        eventually(lambda: self.ask("GET")["state"] == "FINISHED", "the job's end", DEADLINE_S)
        return found[1]
