"""Kafka 4.3.1's own tools use share groups: its console share consumer, `kafka-configs`, `kafka-share-groups`.

Against Kafka this is the same with `--broker=kafka` where a 4.3.1 serves.
"""

from __future__ import annotations

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.support import quick
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.tools import Tools

VERSION = "4.x"
GROUP, TOPIC = "work", "jobs"


def consumed(tools: Tools, count: int) -> list[str]:
    """The records that one member gets and accepts, sorted: they come from several partitions."""
    arguments = ("--topic", TOPIC, "--group", GROUP, "--max-messages", str(count), "--timeout-ms", "60000")
    result = tools.run("console-share-consumer", *arguments)
    return sorted(line for line in result.lines if not line.startswith("Processed"))


def table(tools: Tools, *arguments: str) -> list[list[str]]:
    """What `kafka-share-groups` prints, by rows and words, without the head."""
    lines = tools.run("share-groups", *arguments).lines
    return [line.split() for line in lines if line.strip() and not line.startswith("GROUP")]


@pytest.mark.wide
def test_consume_look_reset_and_delete(own_broker: StartBroker) -> None:
    broker = group_broker(own_broker)
    tools = Tools(VERSION, broker.bootstrap)
    quick.create_topic(broker.bootstrap, TOPIC, 2)
    reset = ("--entity-type", "groups", "--entity-name", GROUP, "--add-config", "share.auto.offset.reset=earliest")
    tools.run("configs", "--alter", *reset)
    produced = [f"job-{number}" for number in range(6)]
    for partition in (0, 1):
        quick.fill(broker.bootstrap, TOPIC, produced[partition::2], partition)

    assert consumed(tools, 6) == produced
    assert table(tools, "--list", "--state") == [[GROUP, "Empty"]]
    rows = table(tools, "--describe", "--group", GROUP, "--offsets")
    assert {(topic, partition, lag) for _, topic, partition, _, lag in rows} == {(TOPIC, "0", "0"), (TOPIC, "1", "0")}

    broker.stop()
    broker.start()
    tools.run("share-groups", "--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-earliest", "--execute")
    rows = table(tools, "--describe", "--group", GROUP, "--offsets")
    assert sum(int(lag) for *_, lag in rows) == len(produced)
    assert consumed(tools, 6) == produced

    tools.run("share-groups", "--delete-offsets", "--group", GROUP, "--topic", TOPIC)
    assert "has no offset information" in str(tools.run("share-groups", "--describe", "--group", GROUP, "--offsets"))
    tools.run("share-groups", "--delete", "--group", GROUP)
    assert table(tools, "--list") == []
