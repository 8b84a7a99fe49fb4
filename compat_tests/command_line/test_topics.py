"""`kpybroker topic` and `config` against a real broker: what they show is what Kafka's own clients see."""

from __future__ import annotations

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


def test_a_topic_is_created_altered_described_and_deleted(cli: CommandLine, broker: Broker, name: str) -> None:
    cli.run("topic", "create", name, "-p", "2", "-c", "retention.ms=100000")
    assert cli.json("topic", "list", name)[0]["partitions"] == 2
    cli.run("topic", "alter", name, "-p", "3", "-s", "max.message.bytes=5000", "-d", "retention.ms")
    tool = Tools("3.9.1", broker.bootstrap).run("topics", "--describe", "--topic", name).out
    assert "PartitionCount: 3" in tool
    assert "max.message.bytes=5000" in tool
    assert "retention.ms" not in tool
    quick.fill(broker.bootstrap, name, ["a", "b"], partition=1)
    (row,) = cli.json("topic", "describe", name)
    assert [(p["partition"], p["leader"], p["log_end_offset"]) for p in row["partitions"]] == [
        (0, 0, 0),
        (1, 0, 2),
        (2, 0, 0),
    ]
    assert {one["key"]: one["value"] for one in row["configs"]} == {"max.message.bytes": "5000"}
    assert row["id"] in tool
    assert "dry run" in cli.run("topic", "delete", name).err
    cli.run("topic", "delete", name, "--execute")
    assert cli.json("topic", "list", name) == []


def test_what_the_broker_refuses_is_a_failure_with_a_fix(cli: CommandLine, name: str, topic: MakeTopic) -> None:
    existing = topic()
    result = cli.run("topic", "create", existing, "-p", "1", code=1)
    assert "TOPIC_ALREADY_EXISTS" in result.err
    assert "fix: " in result.err
    for words in (("-r", "9"), ("-c", "nope=1"), ("-c", "retention.ms=x")):
        assert "fix: " in cli.run("topic", "create", f"{name}-x", *words, code=1).err
    assert "INVALID_PARTITIONS" in cli.run("topic", "alter", existing, "-p", "1", code=1).err
    assert "UNKNOWN_TOPIC_OR_PARTITION" in cli.run("topic", "describe", f"{name}-none", code=1).err
    assert "INVALID_TOPIC_EXCEPTION" in cli.run("topic", "create", "a/b", code=1).err
    assert cli.json("topic", "list", f"{name}-x") == []


def test_records_are_trimmed(made: str, cli: CommandLine, broker: Broker) -> None:
    quick.fill(broker.bootstrap, made, ["a", "b", "c"])
    assert [(row["from"], row["to"]) for row in cli.json("topic", "trim", made, "--to", "2")] == [(0, 2)]
    cli.run("topic", "trim", made, "--to", "2", "--execute")
    assert cli.run("topic", "consume", made, "-e").lines == ["c"]


def test_settings_are_set_and_read(made: str, cli: CommandLine) -> None:
    cli.run("config", "set", "topic", made, "retention.ms=12345", "cleanup.policy=compact,delete")
    assert cli.run("config", "get", "topic", made, "retention.ms").out == "12345\n"
    found = {(row["name"], row["key"]): row["value"] for row in cli.json("config", "list", "topic", made)}
    assert found == {(made, "retention.ms"): "12345", (made, "cleanup.policy"): "compact,delete"}
    cli.run("config", "unset", "topic", made, "retention.ms")
    assert [row["key"] for row in cli.json("config", "describe", "topic", made)[0]["configs"]] == ["cleanup.policy"]
    assert cli.run("config", "set", "topic", made, "retention.ms=x", code=1).err.startswith(
        f"kpybroker: topic {made}: "
    )


def test_settings_of_a_broker_and_of_all_brokers(cli: CommandLine) -> None:
    try:
        cli.run("config", "set", "broker", "0", "log.cleaner.threads=2")
        cli.run("config", "set", "broker", "default", "message.max.bytes=2000000")
        rows = {(row["name"], row["key"]): row["value"] for row in cli.json("config", "list", "broker")}
        assert rows == {("0", "log.cleaner.threads"): "2", ("default", "message.max.bytes"): "2000000"}
    finally:
        cli.run("config", "unset", "broker", "0", "log.cleaner.threads")
        cli.run("config", "unset", "broker", "default", "message.max.bytes")
    assert cli.json("config", "list", "broker") == []
    assert cli.run("config", "set", "broker", "default", "listeners=x", code=1).err
