"""Every client as a writer and a reader of the same records, so that any test can pair any two."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.deps import ROOT, old_kafka_python_dir
from compat_tests.support.records import LONG_VALUE, Record, digest
from compat_tests.support.tools import Tools, run_process
from tests.support.programs.forks import CLIENTS as CLIENT_LIBRARIES
from tests.support.programs.forks import QUICK_JVMS, can_fork, forks

CALL_S = 300.0
WORKER = ROOT / "compat_tests" / "workers" / "python_client.py"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

# client id -> library and what goes first on its path
PYTHON_CLIENTS: dict[str, tuple[str, Path | None]] = {
    "confluent": ("confluent", None),
    "kafka-python-3.0.12": ("kafka-python", None),
    "kafka-python-2.2.15": ("kafka-python", old_kafka_python_dir()),
    "aiokafka": ("aiokafka", None),
}
JAVA_CLIENTS = {"java-3.9.1": "3.9.1", "java-4.x": "4.x"}
CLIENTS = (*PYTHON_CLIENTS, "kcat", *JAVA_CLIENTS)


def python_command(client: str, command: str, spec: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of one worker process."""
    library, path = PYTHON_CLIENTS[client]
    return [sys.executable, str(WORKER), library, command, spec], {} if path is None else {"PYTHONPATH": str(path)}


def python_call(client: str, command: str, **spec: Any) -> dict[str, Any]:
    line, env = python_command(client, command, "-")
    given = json.dumps(spec) + "\n"
    environment = {**os.environ, **env}
    if QUICK_JVMS in environment and can_fork(environment, CLIENT_LIBRARIES):
        code, out, err = forks(CLIENT_LIBRARIES).run(line[1:], given, environment, CALL_S)
        assert code == 0, (code, out, err)
    else:
        out = run_process(line, given, env=env, deadline_s=CALL_S).out
    response: dict[str, Any] = json.loads(out.splitlines()[-1])
    return response


def as_record(fields: dict[str, Any]) -> Record:
    headers = tuple((name, data) for name, data in fields["headers"])
    return Record(**{**{k: v for k, v in fields.items() if k != "event"}, "headers": headers})


def as_fields(record: Record) -> dict[str, Any]:
    return {
        "key": record.key,
        "value": record.value,
        "headers": [list(header) for header in record.headers],
        "timestamp": record.timestamp,
    }


@dataclass(frozen=True, slots=True)
class Client:
    """One client against one broker."""

    name: str
    bootstrap: str

    def produce(
        self, topic: str, records: Sequence[Record], codec: str = "none", partition: int | None = None
    ) -> list[tuple[int, int]]:
        """Write `records` in order; (partition, offset) of each where the client says (kcat and Java do not)."""
        placed: list[tuple[int, int]] = _function(PRODUCERS, self.name)(self, topic, records, codec, partition)
        return placed

    def consume(self, topics: Sequence[str], count: int) -> list[Record]:
        """Read partition 0 of every topic from its start until `count` records are there in all."""
        records: list[Record] = _function(CONSUMERS, self.name)(self, topics, count)
        return records


def _function(table: dict[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    return table["kcat" if name == "kcat" else "java" if name in JAVA_CLIENTS else "python"]


def _python_produce(
    client: Client, topic: str, records: Sequence[Record], codec: str, partition: int | None
) -> list[tuple[int, int]]:
    response = python_call(
        client.name,
        "produce",
        bootstrap=client.bootstrap,
        topic=topic,
        records=[as_fields(record) for record in records],
        codec=None if codec == "none" else codec,
        partition=partition,
    )
    return [(part, offset) for part, offset in response["delivered"]]


def _python_consume(client: Client, topics: Sequence[str], count: int) -> list[Record]:
    response = python_call(
        client.name, "consume", bootstrap=client.bootstrap, assign=[[topic, 0] for topic in topics], count=count
    )
    return [as_record(fields) for fields in response["records"]]


def _one_set_of_headers(records: Sequence[Record]) -> tuple[tuple[str, str], ...]:
    (headers,) = {record.headers for record in records}
    return headers


def _kcat_produce(
    client: Client, topic: str, records: Sequence[Record], codec: str, partition: int | None
) -> list[tuple[int, int]]:
    command = ["kcat", "-P", "-b", client.bootstrap, "-t", topic, "-z", codec, "-K", "\t", "-X", "linger.ms=20"]
    if partition is not None:
        command += ["-p", str(partition)]
    for name, data in _one_set_of_headers(records):
        command += ["-H", f"{name}={data}"]
    lines = "".join(f"{record.key}\t{record.value}\n" for record in records)
    run_process(command, lines)
    return []


# offset, timestamp, headers, key length, key, value length, value: lengths make any text unambiguous
KCAT_FORMAT = r"%o %T %p %h\n%K %k\n%S %s\n"


def _kcat_consume(client: Client, topics: Sequence[str], count: int) -> list[Record]:
    out: list[Record] = []
    for topic in topics:
        command = ["kcat", "-C", "-b", client.bootstrap, "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q"]
        out += parse_kcat(
            topic,
            run_process_bytes([*command, "-X", "check.crcs=true", "-X", "fetch.wait.max.ms=50", "-f", KCAT_FORMAT]),
        )
    return out


def run_process_bytes(command: list[str]) -> str:
    """The output of `command` as text that keeps any byte."""
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 0, f"{command} exited with {done.returncode}:\n{done.stderr.decode(errors='replace')}"
    return done.stdout.decode(errors="surrogateescape")


def parse_kcat(topic: str, output: str) -> list[Record]:
    out = []
    lines = output.split("\n")[:-1]
    for head, key_line, value_line in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        offset, timestamp, partition, *headers = head.split(" ", 3)
        key_length, _, key = key_line.partition(" ")
        value_length, _, value = value_line.partition(" ")
        assert int(key_length) in (-1, len(as_bytes(key))), key_line
        assert int(value_length) in (-1, len(as_bytes(value))), value_line
        pairs = [pair.split("=", 1) for pair in headers[0].split(",")] if headers and headers[0] else []
        out.append(
            Record(
                None if value_length == "-1" else _shorten(value),
                None if key_length == "-1" else key,
                tuple((name, data) for name, data in pairs),
                topic,
                int(partition),
                int(offset),
                int(timestamp),
            )
        )
    return out


def as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _shorten(value: str) -> str:
    return value if len(value) < LONG_VALUE else digest(as_bytes(value))


def _java_produce(
    client: Client, topic: str, records: Sequence[Record], codec: str, partition: int | None
) -> list[tuple[int, int]]:
    assert partition in (None, 0), "the console producer cannot choose a partition"
    headers = ",".join(f"{name}:{data}" for name, data in _one_set_of_headers(records))
    lines = "".join(f"{headers}\t{record.key}\t{record.value}\n" for record in records)
    arguments = ["--topic", topic, "--compression-codec", codec, "--property", "parse.key=true"]
    arguments += ["--property", f"parse.headers={'true' if headers else 'false'}"]
    text = lines if headers else re.sub(r"^\t", "", lines, flags=re.MULTILINE)
    Tools(JAVA_CLIENTS[client.name], client.bootstrap).run("console-producer", *arguments, stdin=text)
    return []


JAVA_LINE = re.compile(
    r"CreateTime:(?P<timestamp>\d+)\tPartition:(?P<partition>\d+)\tOffset:(?P<offset>\d+)\t"
    r"(?P<headers>[^\t]*)\t(?P<key>[^\t]*)\t(?P<value>.*)"
)


def _java_consume(client: Client, topics: Sequence[str], count: int) -> list[Record]:
    """One JVM for all topics; the formatter does not print the topic, so the caller distinguishes records by value."""
    arguments = ["--include", "|".join(map(re.escape, topics)), "--from-beginning", "--max-messages", str(count)]
    arguments += ["--timeout-ms", "20000"]
    for name in ("timestamp", "partition", "offset", "headers", "key"):
        arguments += ["--property", f"print.{name}=true"]
    result = Tools(JAVA_CLIENTS[client.name], client.bootstrap).run("console-consumer", *arguments)
    return [parse_java(line) for line in result.lines]


def parse_java(line: str) -> Record:
    found = JAVA_LINE.fullmatch(line)
    assert found is not None, f"not a line of the console consumer: {line!r}"
    pairs = [] if found["headers"] == "NO_HEADERS" else [pair.split(":", 1) for pair in found["headers"].split(",")]
    headers = tuple((name, data) for name, data in pairs)
    key = None if found["key"] == "null" else found["key"]
    return Record(
        found["value"], key, headers, "", int(found["partition"]), int(found["offset"]), int(found["timestamp"])
    )


PRODUCERS: dict[str, Callable[..., Any]] = {"python": _python_produce, "kcat": _kcat_produce, "java": _java_produce}
CONSUMERS: dict[str, Callable[..., Any]] = {"python": _python_consume, "kcat": _kcat_consume, "java": _java_consume}
