"""Each client library at a door of a locked broker: it writes records with keys, and reads them back in a group.

The clients of Go and of Node are programs of their own below `clients/`, which `compat_tests.deps` builds and fetches
as `clients`. Python's run in `workers/python_client.py`; Java's are Kafka's console tools.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compat_tests.deps import NODE_CLIENTS, go_clients, node_modules
from compat_tests.security.locked import Caller, java_file, librdkafka_settings, python_settings
from compat_tests.support.clients import as_fields, as_record, parse_java, python_command
from compat_tests.support.records import Record
from compat_tests.support.tools import Result, Tools, run_process

END_DEADLINE_S = 150.0


class Refused(Exception):
    """The client gave up; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a client is asked for."""

    caller: Caller
    topic: str
    group: str
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a client reports.

    `sent`: partition and offset of each record, in the order of the job's; empty where the client does not say.
    `read`: what it read in its group, in that order.
    """

    sent: list[tuple[int, int]]
    read: list[Record]


def _run(command: list[str], stdin: str, env: dict[str, str] | None = None) -> Result:
    result = run_process(command, stdin, check=False, env=env, deadline_s=END_DEADLINE_S)
    if result.code:
        raise Refused(str(result))
    return result


# --- Go and Node


def _program(job: Job, command: list[str], env: dict[str, str] | None = None) -> Exchange:
    spec = {
        **asdict(job.caller),
        "topic": job.topic,
        "group": job.group,
        "records": [{"key": record.key, "value": record.value} for record in job.records],
    }
    said = [json.loads(line) for line in _run(command, json.dumps(spec), env).out.splitlines()]
    places = {one["number"]: (one["partition"], one["offset"]) for one in said if one["event"] == "sent"}
    assert sorted(places) == list(range(len(job.records))), "a record's place is missing"
    return Exchange(
        [places[number] for number in sorted(places)], [_read(one) for one in said if one["event"] == "read"]
    )


def _read(said: dict[str, Any]) -> Record:
    headers = tuple(said["headers"].items())
    return Record(said["value"], said["key"], headers, partition=said["partition"], offset=said["offset"])


def _go(library: str) -> Callable[[Job], Exchange]:
    def run(job: Job) -> Exchange:
        program = go_clients()
        assert program.exists(), f"{program} is not built: python -m compat_tests.deps clients"
        return _program(job, [str(program), library])

    return run


def _kafkajs(job: Job) -> Exchange:
    modules = node_modules()
    assert modules.exists(), f"{modules} is missing: python -m compat_tests.deps clients"
    return _program(job, ["node", str(NODE_CLIENTS / "kafkajs_client.js")], {"NODE_PATH": str(modules)})


# --- Python


def _worker(client: str, command: str, job: Job, **fields: Any) -> dict[str, Any]:
    settings = librdkafka_settings(job.caller) if client == "confluent" else python_settings(job.caller)
    spec = {"bootstrap": job.caller.bootstrap, "settings": settings, **fields}
    line, env = python_command(client, command, "-")
    response: dict[str, Any] = json.loads(_run(line, json.dumps(spec) + "\n", env).out.splitlines()[-1])
    return response


def _python(client: str) -> Callable[[Job], Exchange]:
    def run(job: Job) -> Exchange:
        written = _worker(client, "produce", job, topic=job.topic, records=[as_fields(one) for one in job.records])
        read = _worker(client, "consume", job, topics=[job.topic], group=job.group, count=len(job.records))
        sent = [(partition, offset) for partition, offset in written["delivered"]]
        return Exchange(sent, [as_record(fields) for fields in read["records"]])

    return run


# --- Java


def _java(version: str) -> Callable[[Job], Exchange]:
    def run(job: Job) -> Exchange:
        with tempfile.TemporaryDirectory() as directory:
            file, tools = java_file(job.caller, Path(directory)), Tools(version, job.caller.bootstrap)
            _java_write(tools, job, file)
            return Exchange([], _java_read(tools, job, file))

    return run


def _java_write(tools: Tools, job: Job, file: str) -> None:
    lines = "".join(
        f"{','.join(f'{name}:{data}' for name, data in one.headers)}\t{one.key}\t{one.value}\n" for one in job.records
    )
    properties = [word for name in ("headers", "key") for word in ("--property", f"parse.{name}=true")]
    arguments = ["--topic", job.topic, *properties, "--producer.config", file]
    result = tools.run("console-producer", *arguments, stdin=lines, check=False)
    if result.code or "Exception" in result.err:  # a record that was not written is a line in its log
        raise Refused(str(result))


def _java_read(tools: Tools, job: Job, file: str) -> list[Record]:
    arguments = ["--topic", job.topic, "--group", job.group, "--from-beginning", "--consumer.config", file]
    arguments += ["--max-messages", str(len(job.records)), "--timeout-ms", "60000"]
    for name in ("timestamp", "partition", "offset", "headers", "key"):
        arguments += ["--property", f"print.{name}=true"]
    return [parse_java(line) for line in tools.run("console-consumer", *arguments).lines]


PYTHON = ("confluent", "kafka-python-3.0.12", "aiokafka")
GO = ("franz-go", "kafka-go", "sarama")
PROGRAMS = (*GO, "kafkajs")
CLIENTS: dict[str, Callable[[Job], Exchange]] = {
    **{library: _python(library) for library in PYTHON},
    "java-3.9.1": _java("3.9.1"),
    "java-4.x": _java("4.x"),
    **{library: _go(library) for library in GO},
    "kafkajs": _kafkajs,
}
