"""What `topic produce` writes from files, JSON values and copies, by what kcat and Kafka's console consumer read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support.command_line import CommandLine
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools, run_process

COUNT = 2000


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


def by_kcat(broker: Broker, topic: str, form: str) -> list[str]:
    command = ["kcat", "-b", broker.bootstrap, "-C", "-t", topic, "-e", "-q", "-o", "beginning", "-f", form]
    return run_process(command).lines


def by_console_consumer(tools: Tools, topic: str, count: int, *properties: str) -> list[str]:
    shown = [word for one in properties for word in ("--property", one)]
    words = ("--topic", topic, "--from-beginning", "--max-messages", str(count), *shown)
    return tools.run("console-consumer", *words).lines


def test_a_file_arrives_in_its_order(made: str, cli: CommandLine, broker: Broker, tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"k{n % 7}:{n}\n" for n in range(COUNT)))
    cli.run("topic", "produce", made, str(file), "-K:", "-z", "zstd")
    expected = [f"k{n % 7}={n}" for n in range(COUNT)]
    assert by_kcat(broker, made, "%k=%s\n") == expected
    properties = ("print.key=true", "key.separator==")
    assert by_console_consumer(tools, made, COUNT, *properties) == expected


def test_json_values_are_their_text(made: str, cli: CommandLine, broker: Broker, tools: Tools) -> None:
    values = [{"a": [1, None, "ü"]}, [], 1.5, True, {"base64": 1}, "text", None]
    lines = "".join(json.dumps({"key": "k", "value": value}) + "\n" for value in values)
    cli.run("topic", "produce", made, "-f", "json", stdin=lines)
    expected = ['{"a":[1,null,"ü"]}', "[]", "1.5", "true", '{"base64":1}', "text", ""]
    assert by_kcat(broker, made, "%s;\n") == [f"{one};" for one in expected]
    assert by_kcat(broker, made, "%S\n")[-1] == "-1"
    assert by_console_consumer(tools, made, len(values)) == [*expected[:-1], "null"]


def test_a_copy_is_the_topic_again(cli: CommandLine, broker: Broker, topic: MakeTopic, tools: Tools) -> None:
    source = topic(partitions=3)
    copy = f"{source}-again"
    rows = [
        {"key": f"k{n}", "value": str(n), "partition": n % 3, "timestamp": 1_795_000_000_000 + n,
         "headers": [{"key": "h", "value": str(n)}]}
        for n in range(300)
    ]  # fmt: skip
    cli.run("topic", "produce", source, "-f", "json", stdin="".join(json.dumps(row) + "\n" for row in rows))
    lines = cli.run("topic", "consume", source, "-e", "-f", "json").out
    cli.run("topic", "produce", copy, "-f", "json", "--create", stdin=lines)
    form = "%p %o %T %k %s %h\n"
    for partition in range(3):
        ours, theirs = (
            [line for line in by_kcat(broker, name, form) if line.startswith(f"{partition} ")]
            for name in (copy, source)
        )
        assert ours == theirs
        assert len(ours) == 100
    described = tools.run("topics", "--describe", "--topic", copy).out
    assert "PartitionCount: 3" in described


def test_quotas_are_those_that_kafkas_tool_shows(cli: CommandLine, tools: Tools, name: str) -> None:
    cli.run("quota", "set", "--user", name, "--client-id", "c", "producer_byte_rate=1234567")
    cli.run("quota", "set", "--default", "client-id", "consumer_byte_rate=5")
    both = ("--entity-type", "users", "--entity-name", name, "--entity-type", "clients", "--entity-name", "c")
    assert "producer_byte_rate=1234567.0" in tools.run("configs", "--describe", *both).out
    of_all = ("--entity-type", "clients", "--entity-default")
    assert "consumer_byte_rate=5.0" in tools.run("configs", "--describe", *of_all).out
    cli.run("quota", "unset", "--default", "client-id", "consumer_byte_rate")
    tools.run("configs", "--alter", *both, "--delete-config", "producer_byte_rate")
    assert cli.json("quota", "list", "--user", name) == []
    tools.run("configs", "--alter", *both, "--add-config", "request_percentage=12.5")
    (row,) = cli.json("quota", "list", "--user", name)
    assert row == {"entity": {"client-id": "c", "user": name}, "key": "request_percentage", "value": 12.5}
