"""A Spark standalone cluster: a master, and a worker that gives each application executors of one core.

All are processes on this machine, on free ports, and are stopped by their pid. What a run needs to know of the cluster
is in Spark's own configuration, so the command of a pipeline is the same as elsewhere, but for its `--master`:

    with standalone(tmp_path, executors=2) as spark_cluster:
        run_process([..., "--master", spark_cluster.master], env=spark_cluster.env)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyspark

from compat_tests.support.services import Service
from tests.support.network.ports import free_port

HOME = Path(pyspark.__file__).parent
EXECUTOR_MB, DAEMON_MB, DRIVER_MB = 512, 256, 768
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
STARTED = re.compile(r"Asked to launch executor (app-\S+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Standalone:
    """A running cluster. `env` is the environment of a driver."""

    master: str
    env: dict[str, str]
    services: tuple[Service, Service]

    def environment(self) -> dict[str, str]:
        """`env`, with what this process has besides."""
        return {**os.environ, **self.env}

    def launched(self) -> dict[str, int]:
        """How many executors each application has had."""
        found: dict[str, int] = {}
        for application, _ in STARTED.findall(self.services[1].output()):
            found[application] = found.get(application, 0) + 1
        return found


@contextmanager
def standalone(directory: Path, executors: int, jvm_options: str = QUICK_JVM) -> Iterator[Standalone]:
    """Start it in `directory`; an application gets `executors` executors."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "spark-defaults.conf").write_text(_defaults(executors, jvm_options))
    env = {
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(directory),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": f"{DAEMON_MB}m",
        "SPARK_DAEMON_JAVA_OPTS": jvm_options,
        "JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS", ""),
    }
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    run, local = str(HOME / "bin" / "spark-class"), ["--host", "127.0.0.1", "--webui-port", "0"]
    master = [run, "org.apache.spark.deploy.master.Master", *local, "--port", str(port)]
    worker = [run, "org.apache.spark.deploy.worker.Worker", *local, "--cores", str(executors)]
    worker += ["--memory", f"{executors * EXECUTOR_MB}m", "--work-dir", str(directory / "work"), address]
    with ExitStack() as stack:
        services = []
        for name, command, ready in (
            ("master", master, "I have been elected leader"),
            ("worker", worker, "Successfully registered with master"),
        ):
            service = Service(name, command, directory, env)
            stack.callback(service.kill)
            service.start(partial(_says, ready))
            services.append(service)
        yield Standalone(address, env, (services[0], services[1]))


def _says(ready: str, output: str) -> bool:
    return ready in output


def _defaults(executors: int, jvm_options: str) -> str:
    """The configuration of the applications."""
    settings = {
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.executor.extraJavaOptions": jvm_options,
        "spark.cores.max": str(executors),
        "spark.driver.memory": f"{DRIVER_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # of a stream's state too: 200, Spark's default, is for a cluster of machines
        "spark.sql.shuffle.partitions": "4",
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())
