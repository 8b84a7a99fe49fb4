"""kafka-topics and kafka-configs: what they create, show, change and refuse."""

from __future__ import annotations

import re

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support.services import Broker
from compat_tests.support.tools import Result, Tools
from compat_tests.support.waiting import eventually

PARTITION_LINE = re.compile(
    r"\tTopic: (?P<topic>\S+)\tPartition: (?P<partition>\d+)\tLeader: (?P<leader>\S+)\t"
    r"Replicas: (?P<replicas>\S+)\tIsr: (?P<isr>\S+)"
)


def partitions(described: Result, topic: str) -> list[tuple[int, str, str, str]]:
    """(partition, leader, replicas, isr) of each partition line of `kafka-topics --describe`."""
    found = [PARTITION_LINE.match(line) for line in described.lines]
    return [
        (int(line["partition"]), line["leader"], line["replicas"], line["isr"])
        for line in found
        if line is not None and line["topic"] == topic
    ]


def configs_of(described: Result) -> dict[str, str]:
    """The `Configs:` of the first line of `kafka-topics --describe`."""
    listed = re.search(r"Configs: (\S*)", described.lines[0])
    assert listed is not None, str(described)
    return dict(pair.split("=", 1) for pair in listed[1].split(",") if pair)


def test_create_and_describe(tools: Tools, name: str) -> None:
    made = tools.run(
        "topics", "--create", "--topic", name, "--partitions", "3", "--replication-factor", "1",
        "--config", "retention.ms=86400000", "--config", "max.message.bytes=2000000",
    )  # fmt: skip
    assert f"Created topic {name}." in made.out, str(made)
    described = tools.run("topics", "--describe", "--topic", name)
    head = described.lines[0]
    assert re.match(rf"Topic: {name}\tTopicId: [\w-]{{22}}\tPartitionCount: 3\tReplicationFactor: 1\t", head), head
    assert configs_of(described) == {"max.message.bytes": "2000000", "retention.ms": "86400000"}
    assert partitions(described, name) == [(n, "0", "0", "0") for n in range(3)]


@pytest.mark.wide
def test_create_with_defaults_and_assignment(tools: Tools, name: str) -> None:
    tools.run("topics", "--create", "--topic", name)
    assert partitions(tools.run("topics", "--describe", "--topic", name), name) == [(0, "0", "0", "0")]
    tools.run("topics", "--create", "--topic", f"{name}-assigned", "--replica-assignment", "0,0")
    assert len(partitions(tools.run("topics", "--describe", "--topic", f"{name}-assigned"), f"{name}-assigned")) == 2


def test_create_twice(tools: Tools, topic: MakeTopic) -> None:
    existing = topic()
    again = tools.run("topics", "--create", "--topic", existing, check=False)
    assert again.code == 1, str(again)
    assert f"Topic '{existing}' already exists." in again.out + again.err, str(again)
    tools.run("topics", "--create", "--topic", existing, "--if-not-exists")


def test_create_refused(tools: Tools, name: str) -> None:
    refused = {
        ("--replication-factor", "3"): "Unable to replicate the partition 3 time(s)|"
        "Replication factor: 3 larger than available brokers: 1",
        ("--partitions", "0"): "greater than 0|larger than 0|must be",
        ("--config", "retention.ms=soon"): "Invalid value soon for configuration retention.ms",
        ("--config", "cleanup.policy=burn"): "Invalid value burn for configuration cleanup.policy",
    }
    for arguments, words in refused.items():
        result = tools.run("topics", "--create", "--topic", name, *arguments, check=False)
        assert result.code == 1, str(result)
        assert re.search(words, result.out + result.err), str(result)
    listed = tools.run("topics", "--list")
    assert name not in listed.lines, str(listed)


def test_list(tools: Tools, topic: MakeTopic) -> None:
    first, second = topic(suffix="-a"), topic(suffix="-b")
    listed = tools.run("topics", "--list")
    assert [line for line in listed.lines if line in (first, second)] == [first, second]
    assert listed.lines == sorted(listed.lines)
    assert not any(line.startswith("__") for line in tools.run("topics", "--list", "--exclude-internal").lines)


def test_alter_partitions(tools: Tools, topic: MakeTopic) -> None:
    grown = topic(partitions=2)
    tools.run("topics", "--alter", "--topic", grown, "--partitions", "5")
    eventually(
        lambda: len(partitions(tools.run("topics", "--describe", "--topic", grown), grown)) == 5, "five partitions"
    )
    shrunk = tools.run("topics", "--alter", "--topic", grown, "--partitions", "3", check=False)
    assert shrunk.code == 1, str(shrunk)
    assert "5 partition" in shrunk.out + shrunk.err, str(shrunk)


def test_describe_filters(tools: Tools, topic: MakeTopic) -> None:
    plain, changed = topic(suffix="-plain"), topic(suffix="-changed", retention_ms=1000)
    overridden = tools.run("topics", "--describe", "--topics-with-overrides").out
    assert changed in overridden
    assert plain not in overridden
    for option in ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"):
        assert tools.run("topics", "--describe", option).lines == []


@pytest.mark.wide
def test_describe_missing(tools: Tools, name: str) -> None:
    missing = tools.run("topics", "--describe", "--topic", name, check=False)
    assert missing.code == 1, str(missing)
    assert re.search(rf"Topic '\S*{name}\S*' does not exist as expected", missing.out + missing.err), str(missing)


def test_delete(tools: Tools, topic: MakeTopic) -> None:
    doomed = topic(partitions=3)
    tools.run("topics", "--delete", "--topic", doomed)
    eventually(lambda: doomed not in tools.run("topics", "--list").lines, f"{doomed} gone")
    again = tools.run("topics", "--delete", "--topic", doomed, check=False)
    assert again.code == 1, str(again)
    tools.run("topics", "--delete", "--topic", doomed, "--if-exists")


def entity_configs(result: Result) -> dict[str, str]:
    """`  key=value sensitive=false synonyms={...}` lines as {key: value}."""
    found = [re.match(r"  ([\w.-]+)=(.*?) sensitive=(?:true|false) synonyms=\{(.*)\}$", line) for line in result.lines]
    return {line[1]: line[2] for line in found if line is not None}


def test_topic_configs(tools: Tools, topic: MakeTopic) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic())
    tools.run("configs", "--alter", *entity, "--add-config", "retention.ms=12345,cleanup.policy=[compact,delete]")

    def described() -> dict[str, str]:
        return entity_configs(tools.run("configs", "--describe", *entity))

    eventually(lambda: described() == {"retention.ms": "12345", "cleanup.policy": "compact,delete"}, "both set")
    everything = tools.run("configs", "--describe", "--all", *entity)
    values = entity_configs(everything)
    assert values["retention.ms"] == "12345"
    assert values["segment.bytes"] == "1073741824"
    assert values["min.insync.replicas"] == "1"
    assert len(values) >= 30
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=12345" in everything.out
    assert "DEFAULT_CONFIG:log.segment.bytes=1073741824" in everything.out
    tools.run("configs", "--alter", *entity, "--delete-config", "retention.ms")
    eventually(lambda: described() == {"cleanup.policy": "compact,delete"}, "retention.ms gone")


@pytest.mark.wide
def test_topic_configs_refused(tools: Tools, topic: MakeTopic) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic())
    for change, words in {
        "retention.ms=soon": "Invalid value soon for configuration retention.ms",
        "no.such.key=1": "Unknown topic config name: no.such.key",
        "segment.bytes=1": "Invalid value 1 for configuration segment.bytes",
    }.items():
        refused = tools.run("configs", "--alter", *entity, "--add-config", change, check=False)
        assert refused.code == 1, str(refused)
        assert words in refused.out + refused.err, str(refused)
    assert entity_configs(tools.run("configs", "--describe", *entity)) == {}


def test_broker_configs(tools: Tools, broker: Broker) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", str(broker.node_id))

    def described() -> dict[str, str]:
        return entity_configs(tools.run("configs", "--describe", *entity))

    tools.run("configs", "--alter", *entity, "--add-config", "log.cleaner.threads=2")
    try:
        eventually(lambda: described() == {"log.cleaner.threads": "2"}, "set")
        everything = tools.run("configs", "--describe", "--all", *entity)
        values = entity_configs(everything)
        assert values["log.dirs"] == str(broker.data_dir)
        assert values["log.cleaner.threads"] == "2"
        assert len(values) >= 200
        assert "DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, DEFAULT_CONFIG:log.cleaner.threads=1" in everything.out
    finally:
        tools.run("configs", "--alter", *entity, "--delete-config", "log.cleaner.threads")
    eventually(lambda: described() == {}, "gone")


@pytest.mark.wide
def test_broker_default_configs(tools: Tools) -> None:
    """A cluster-wide default of a key reaches the topics that do not set it."""
    entity = ("--entity-type", "brokers", "--entity-default")
    tools.run("configs", "--alter", *entity, "--add-config", "log.retention.ms=7654321")
    try:
        eventually(
            lambda: entity_configs(tools.run("configs", "--describe", *entity)) == {"log.retention.ms": "7654321"},
            "the default set",
        )
    finally:
        tools.run("configs", "--alter", *entity, "--delete-config", "log.retention.ms")


@pytest.mark.wide
def test_broker_configs_refused(tools: Tools, broker: Broker) -> None:
    """A key that only a restart changes is refused, and says so."""
    entity = ("--entity-type", "brokers", "--entity-name", str(broker.node_id))
    refused = tools.run("configs", "--alter", *entity, "--add-config", "log.dirs=/elsewhere", check=False)
    assert refused.code == 1, str(refused)
    assert "Cannot update these configs dynamically" in refused.out + refused.err, str(refused)


def test_broker_loggers(tools: Tools, broker: Broker) -> None:
    entity = ("--entity-type", "broker-loggers", "--entity-name", str(broker.node_id))
    tools.run("configs", "--alter", *entity, "--add-config", "kafka.server.KafkaServer=DEBUG")
    assert entity_configs(tools.run("configs", "--describe", *entity))["kafka.server.KafkaServer"] == "DEBUG"
    tools.run("configs", "--alter", *entity, "--add-config", "kafka.server.KafkaServer=INFO")
