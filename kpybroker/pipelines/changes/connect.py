"""A worker of Kafka Connect with Debezium's source of a PostgreSQL, from jars: for the demo."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kpybroker.pipelines.demo.postgresql import DATABASE, USER
from kpybroker.pipelines.errors import PipelineError

MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
JSON = "org.apache.kafka.connect.json.JsonConverter"
SOURCE = "io.debezium.connector.postgresql.PostgresConnector"
CONNECTOR = "shop"
SECONDS_MAX, POLL_S, RESPONSE_S = 120.0, 0.2, 10.0
RUNTIME, DEBEZIUM = "connect-runtime-*.jar", "debezium-connector-postgres-*.jar"
NEEDED = {RUNTIME: "Kafka Connect", DEBEZIUM: "Debezium's connector for PostgreSQL"}


def jars(directories: str) -> dict[str, Path]:
    """Needed jar -> the directory with it, of directories with commas. Raises `PipelineError` if one is missing."""
    found = {}
    for pattern, what in NEEDED.items():
        places = [Path(one).resolve() for one in directories.split(",") if any(Path(one).glob(pattern))]
        if not places:
            raise PipelineError(
                f"{what} is not in {directories}: there is no {pattern}.",
                "Give --connect-jars DIR,DIR; `make demo-changes` brings them to .cache/jvm.",
            )
        found[pattern] = places[0]
    return found


def source(postgres_port: int, tables: str, schemas: bool) -> dict[str, str]:
    """The settings of the source, with ends of transactions, and with truncates, which are left out by default."""
    found = {"connector.class": SOURCE, "tasks.max": "1", "name": CONNECTOR, "plugin.name": "pgoutput"}
    place = {"hostname": "127.0.0.1", "port": str(postgres_port), "user": USER, "password": "none", "dbname": DATABASE}
    for part in ("key", "value"):
        found |= {f"{part}.converter": JSON, f"{part}.converter.schemas.enable": str(schemas).lower()}
    return {
        **found,
        **{f"database.{key}": value for key, value in place.items()},
        "topic.prefix": "shop",
        "table.include.list": tables,
        "publication.autocreate.mode": "filtered",
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "poll.interval.ms": "50",
    }


@contextmanager
def worker(
    bootstrap: str, places: Mapping[str, Path], port: int, place: Path, connector: Mapping[str, str]
) -> Iterator[None]:
    """A standalone worker whose connector runs; it ends with the block. Raises `PipelineError`."""
    if shutil.which("java") is None:
        raise PipelineError("Kafka Connect needs Java, which is not installed.", "Install Java 17.")
    (place / "plugins").mkdir()
    (place / "plugins" / "debezium").symlink_to(places[DEBEZIUM])
    settings = {
        "plugin.path": str(place / "plugins"),
        "plugin.discovery": "service_load",
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": JSON,
        "value.converter": JSON,
        "offset.storage.file.filename": str(place / "offsets"),
        "offset.flush.interval.ms": "500",
    }
    for name, values in (("worker", settings), ("source", connector)):
        (place / f"{name}.properties").write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    command = ["java", *JVM, "-cp", f"{places[RUNTIME]}/*", MAIN, "worker.properties", "source.properties"]
    log = place / "connect.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=place, stdout=out, stderr=subprocess.STDOUT)
        try:
            _await(process, port, log)
            yield
        finally:
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        tasks = _status(port)
        if tasks and all(task["state"] == "RUNNING" for task in tasks):
            return
        failed = next((task for task in tasks if task["state"] == "FAILED"), None)
        if failed is not None:
            raise PipelineError(f"Debezium failed: {failed['trace'].splitlines()[0]}.", "See its documentation.")
        time.sleep(POLL_S)
    print("\n".join(log.read_text(errors="replace").splitlines()[-15:]))
    raise PipelineError("Kafka Connect did not start.", "See its last messages above.")


def _status(port: int) -> list[dict[str, Any]]:
    """The connector's tasks; none while there is no response."""
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/connectors/{CONNECTOR}/status", timeout=RESPONSE_S
        ) as found:
            tasks: list[dict[str, Any]] = json.load(found)["tasks"]
            return tasks
    except (OSError, urllib.error.HTTPError, ValueError):
        return []
