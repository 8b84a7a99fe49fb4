"""Kafka's tools that measure, check and clean up: transactions of the perf tool, latency, compatibility, resets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import Result, Tools, run_process
from compat_tests.support.waiting import eventually

RECORDS = 5_000
TOOLS_OWN_LIMIT = "Timed out after 10000 ms."
"""Of the consumer in ClientCompatibilityTest, for its first record: too short for a JVM on a machine under load."""


def test_producer_perf_in_transactions(made: str, tools: Tools, broker: Broker, name: str) -> None:
    """Each transaction ends with a marker in the log; read_committed readers are given every record."""
    sent = tools.run(
        "producer-perf-test", "--topic", made, "--num-records", str(RECORDS), "--record-size", "100",
        "--throughput", "10000", "--transactional-id", name, "--transaction-duration-ms", "50",
        "--producer-props", f"bootstrap.servers={tools.bootstrap}",
    )  # fmt: skip
    assert re.search(rf"^{RECORDS} records sent", sent.lines[-1]), str(sent)
    assert len(quick.read(broker.bootstrap, [(made, 0)], RECORDS)) == RECORDS
    assert quick.end_offset(broker.bootstrap, made, 0) > RECORDS + 1, "no more than one transaction"
    described = tools.run("transactions", "describe", "--transactional-id", name)
    assert "CompleteCommit" in described.out, str(described)


@pytest.mark.parametrize("acks", ["1", "all"])
def test_end_to_end_latency(made: str, tools: Tools, acks: str) -> None:
    """The tool compares what it reads with what it wrote, one record at a time."""
    measured = tools.run("e2e-latency", tools.bootstrap, made, "200", acks, "512")
    assert re.search(r"^Percentiles: 50th = \d+", measured.lines[-1]), str(measured)


def test_client_compatibility(tools: Tools, broker: Broker, topic: MakeTopic) -> None:
    """Kafka's own check of clients against other brokers; what is not advertised must be refused as such."""
    acls = "DescribeAcls(29): UNSUPPORTED" not in Tools("3.9.1", broker.bootstrap).run("broker-api-versions").out
    supported = {
        "offsets-for-times": True,
        "cluster-id": True,
        "create-topics": True,
        "describe-acls": acls,
        "describe-configs": True,
        "idempotent-producer": True,
    }
    options = [word for what, has in supported.items() for word in (f"--{what}-supported", str(has))]
    counts = ["--expect-record-too-large-exception", "False", "--num-cluster-nodes", "1"]

    def report(attempt: int) -> Result:
        made = topic(suffix=f"-{attempt}")
        reported = tools.run("client-compatibility-test", "--topic", made, *options, *counts, check=False)
        tools.run("topics", "--delete", "--topic", "newtopic", "--if-exists")  # its own: it makes it each time
        eventually(lambda: "newtopic" not in tools.run("topics", "--list").lines, "newtopic is deleted")
        return reported

    reports = [report(0)]
    while TOOLS_OWN_LIMIT in reports[-1].out and len(reports) < 4:
        reports.append(report(len(reports)))
    assert reports[-1].lines == ["SUCCESS."], str(reports[-1])


def test_streams_application_reset(tools: Tools, broker: Broker, topic: MakeTopic, name: str) -> None:
    """An application's group goes back to the start of its input, and its inner topics are gone."""
    read, written = topic(partitions=2, suffix="-in"), [f"{name}-{what}" for what in ("x-changelog", "y-repartition")]
    for inner in written:
        quick.create_topic(broker.bootstrap, inner)
    for partition in range(2):
        quick.fill(broker.bootstrap, read, ["a", "b"], partition)
    quick.read(broker.bootstrap, [(read, 0), (read, 1)], 4, name)
    assert quick.committed(broker.bootstrap, name, [(read, 0), (read, 1)]) == [2, 2]
    done: Result = tools.run("streams-application-reset", "--application-id", name, "--input-topics", read)
    assert quick.committed(broker.bootstrap, name, [(read, 0), (read, 1)]) == [0, 0], str(done)
    admin = quick.admin_client(broker.bootstrap)
    eventually(lambda: not set(admin.list_topics(timeout=60).topics) & set(written), f"{written} are deleted")
    assert read in admin.list_topics(timeout=60).topics


def test_a_tool_finds_its_classes_in_the_archive(tools: Tools, tmp_path: Path) -> None:
    """Otherwise each start of a JVM loads them from the jars, which takes twice as long."""
    command = tools.command("topics", "--list")
    log = tmp_path / "classes.txt"
    command.insert(command.index("-Xlog:all=off") + 1, f"-Xlog:class+load:file={log}")
    run_process(command)
    loaded = [line for line in log.read_text().splitlines() if ".admin.KafkaAdminClient source:" in line]
    assert [line.partition("source: ")[2] for line in loaded] == ["shared objects file (top)"]
