"""Kafka's tools that write, read, count, delete and measure records."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.services import INTERNAL_PARTITIONS, Broker
from compat_tests.support.tools import Result, Tools, run_process
from compat_tests.support.waiting import eventually

# young enough for the stock retention of seven days, and a whole second
START_MS = (int(time.time()) - 3600) * 1000


def fill(broker: Broker, topic: str, count: int, partition: int = 0) -> None:
    """`count` records whose values are their offsets and whose timestamps are a second apart from START_MS."""
    values = [str(n) for n in range(count)]
    quick.fill(broker.bootstrap, topic, values, partition, [START_MS + n * 1000 for n in range(count)])


def test_console_round_trip(tools: Tools, name: str) -> None:
    """The quick start of every Kafka tutorial: the topic is made by the first record."""
    lines = [f"line {n} \N{SNOWMAN}" for n in range(200)]
    tools.run("console-producer", "--topic", name, stdin="\n".join(lines) + "\n")
    read = tools.run("console-consumer", "--topic", name, "--from-beginning", "--max-messages", "200")
    assert read.lines == lines, str(read)
    assert "Processed a total of 200 messages" in read.err, str(read)


@pytest.mark.wide
def test_console_acks_and_sync(made: str, tools: Tools) -> None:
    for acks in ("0", "1", "all"):
        tools.run("console-producer", "--topic", made, "--request-required-acks", acks, stdin=f"acks {acks}\n")
    tools.run("console-producer", "--topic", made, "--sync", stdin="one by one\n")
    read = tools.run("console-consumer", "--topic", made, "--from-beginning", "--max-messages", "4")
    assert read.lines == ["acks 0", "acks 1", "acks all", "one by one"], str(read)


def test_console_keys_headers_and_nulls(made: str, tools: Tools) -> None:
    given = "h1:a,h2:b\tk1\tv1\nh1:c\tk2\tNULL\n"
    properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]
    tools.run(
        "console-producer", "--topic", made, *[word for p in properties for word in ("--property", p)], stdin=given
    )
    shown = ["print.key=true", "print.headers=true", "print.offset=true", "print.partition=true"]
    read = tools.run(
        "console-consumer", "--topic", made, "--from-beginning", "--max-messages", "2",
        *[word for p in shown for word in ("--property", p)],
    )  # fmt: skip
    assert read.lines == [
        "Partition:0\tOffset:0\th1:a,h2:b\tk1\tv1",
        "Partition:0\tOffset:1\th1:c\tk2\tnull",
    ], str(read)


@pytest.mark.wide
def test_console_consumer_positions(tools: Tools, broker: Broker, topic: MakeTopic) -> None:
    made = topic(partitions=2)
    fill(broker, made, 10, partition=1)
    part = ("--topic", made, "--partition", "1")
    from_offset = tools.run("console-consumer", *part, "--offset", "6", "--max-messages", "4")
    assert from_offset.lines == ["6", "7", "8", "9"], str(from_offset)
    latest = tools.run("console-consumer", *part, "--offset", "latest", "--timeout-ms", "1000", check=False)
    assert latest.lines == [], str(latest)


def test_console_consumer_group(made: str, tools: Tools, broker: Broker, name: str) -> None:
    """The console consumer commits on its way out; the next one of its group goes on from there."""
    fill(broker, made, 10)
    group = ("--topic", made, "--group", name, "--from-beginning")
    first = tools.run("console-consumer", *group, "--max-messages", "4")
    second = tools.run("console-consumer", *group, "--max-messages", "6")
    assert first.lines == ["0", "1", "2", "3"], str(first)
    assert second.lines == ["4", "5", "6", "7", "8", "9"], str(second)


def test_console_consumer_isolation(made: str, tools: Tools, broker: Broker) -> None:
    fill(broker, made, 5)
    read = tools.run(
        "console-consumer", "--topic", made, "--from-beginning", "--isolation-level", "read_committed",
        "--max-messages", "5",
    )  # fmt: skip
    assert read.lines == ["0", "1", "2", "3", "4"], str(read)


@pytest.mark.wide
def test_internal_offsets_topic(made: str, tools: Tools, broker: Broker, name: str) -> None:
    """`__consumer_offsets` is readable by Kafka's own formatter: the commit of a group stands there."""
    fill(broker, made, 3)
    quick.read(broker.bootstrap, [(made, 0)], 3, group=name)
    wanted = {"group": name, "topic": made, "partition": 0}
    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    partition = offsets_partition(name)
    end = quick.end_offset(broker.bootstrap, "__consumer_offsets", partition)
    read = tools.run(
        "console-consumer", "--topic", "__consumer_offsets", "--partition", str(partition), "--offset", "earliest",
        "--max-messages", str(end), "--timeout-ms", "20000", "--formatter", formatter,
    )  # fmt: skip
    commits = [entry["value"]["data"]["offset"] for entry in json_values(read.out) if entry["key"]["data"] == wanted]
    assert commits == [3], str(read)


def offsets_partition(group: str) -> int:
    """Where the coordinator of `group` keeps it: String.hashCode, absolute, over what test brokers have."""
    hashed = 0
    for character in group:
        hashed = (31 * hashed + ord(character)) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return abs(signed) % INTERNAL_PARTITIONS


def json_values(text: str) -> list[dict[str, Any]]:
    """The formatter puts no newline between its records."""
    decoder, values, at = json.JSONDecoder(), [], 0
    while at < len(text) and text[at] == "{":
        value, at = decoder.raw_decode(text, at)
        values.append(value)
    return values


def test_get_offsets(tools: Tools, broker: Broker, topic: MakeTopic) -> None:
    made = topic(partitions=2)
    fill(broker, made, 10, partition=0)
    fill(broker, made, 4, partition=1)

    def offsets(*arguments: str) -> list[str]:
        return tools.run("get-offsets", "--topic", made, *arguments).lines

    assert offsets() == [f"{made}:0:10", f"{made}:1:4"]
    assert offsets("--time", "earliest") == [f"{made}:0:0", f"{made}:1:0"]
    assert offsets("--time", "max-timestamp") == [f"{made}:0:9", f"{made}:1:3"]
    assert offsets("--time", str(START_MS + 2500)) == [f"{made}:0:3", f"{made}:1:3"]
    # nothing that late: 3.9.1 and 4.x both leave the offset out
    assert offsets("--time", str(START_MS + 60_000)) == []
    assert tools.run("get-offsets", "--topic-partitions", f"{made}:1").lines == [f"{made}:1:4"]


def test_delete_records(
    tools: Tools, broker: Broker, topic: MakeTopic, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = topic(partitions=2)
    fill(broker, made, 10, partition=0)
    fill(broker, made, 10, partition=1)
    plan = tmp_path_factory.mktemp("plan") / "delete.json"
    wanted = [{"topic": made, "partition": 0, "offset": 4}, {"topic": made, "partition": 1, "offset": -1}]
    plan.write_text(json.dumps({"partitions": wanted, "version": 1}))
    done = tools.run("delete-records", "--offset-json-file", str(plan))
    assert re.search(rf"partition: {made}-0\s+low_watermark: 4", done.out), str(done)
    assert re.search(rf"partition: {made}-1\s+low_watermark: 10", done.out), str(done)
    earliest = tools.run("get-offsets", "--topic", made, "--time", "earliest")
    assert earliest.lines == [f"{made}:0:4", f"{made}:1:10"]
    left = tools.run("console-consumer", "--topic", made, "--from-beginning", "--max-messages", "6")
    assert left.lines == ["4", "5", "6", "7", "8", "9"], str(left)
    plan.write_text(json.dumps({"partitions": [{"topic": made, "partition": 0, "offset": 11}], "version": 1}))
    refused = tools.run("delete-records", "--offset-json-file", str(plan), check=False)
    assert "OffsetOutOfRange" in refused.out + refused.err or "beyond range" in refused.out, str(refused)


def log_dirs(result: Result) -> dict[str, Any]:
    (line,) = [line for line in result.lines if line.startswith("{")]
    (one,) = json.loads(line)["brokers"]
    assert isinstance(one, dict)
    return one


@pytest.mark.wide
def test_log_dirs(tools: Tools, broker: Broker, topic: MakeTopic) -> None:
    made = topic(partitions=2)
    fill(broker, made, 100, partition=1)
    described = log_dirs(tools.run("log-dirs", "--describe", "--topic-list", made))
    assert described["broker"] == broker.node_id
    (directory,) = described["logDirs"]
    assert directory["error"] is None
    assert directory["logDir"] == str(broker.data_dir)
    sizes = {part["partition"]: part["size"] for part in directory["partitions"]}
    on_disk = {
        f"{made}-{n}": sum(f.stat().st_size for f in (broker.data_dir / f"{made}-{n}").glob("*.log")) for n in (0, 1)
    }
    assert sizes == on_disk
    assert sizes[f"{made}-1"] > 0
    assert not any(part["isFuture"] or part["offsetLag"] for part in directory["partitions"])
    everything = log_dirs(tools.run("log-dirs", "--describe"))
    (directory,) = everything["logDirs"]
    assert set(sizes) <= {part["partition"] for part in directory["partitions"]}


def events(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.lines if line.startswith("{")]


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_verifiable_producer(made: str, tools: Tools, acks: str) -> None:
    sent = events(tools.run("verifiable-producer", "--topic", made, "--max-messages", "300", "--acks", acks))
    successes = [event for event in sent if event["name"] == "producer_send_success"]
    assert [event["value"] for event in successes] == [str(n) for n in range(300)]
    if acks != "0":
        assert [event["offset"] for event in successes] == list(range(300))
    assert sent[-1]["name"] == "tool_data"
    assert (sent[-1]["sent"], sent[-1]["acked"]) == (300, 300)
    read = run_process(["kcat", "-C", "-b", tools.bootstrap, "-t", made, "-o", "beginning", "-e", "-q"])
    assert read.lines == [str(n) for n in range(300)]


def test_verifiable_consumer(tools: Tools, broker: Broker, topic: MakeTopic, name: str) -> None:
    made = topic(partitions=2)
    fill(broker, made, 30, partition=0)
    fill(broker, made, 30, partition=1)
    heard = events(
        tools.run("verifiable-consumer", "--topic", made, "--group-id", name, "--max-messages", "60", "--verbose")
    )
    assert [event["name"] for event in heard[:2]] == ["startup_complete", "partitions_assigned"]
    data = [event for event in heard if event["name"] == "record_data"]
    for partition in (0, 1):
        assert [e["value"] for e in data if e["partition"] == partition] == [str(n) for n in range(30)]
    assert all(event["success"] for event in heard if event["name"] == "offsets_committed")
    last = [event for event in heard if event["name"] == "offsets_committed"]
    assert last, heard
    ends = {event["name"] for event in heard[-2:]}
    assert "shutdown_complete" in ends, heard  # 4.3 says after it that the shutdown was requested


@pytest.mark.wide
def test_perf_tools(tools: Tools, topic: MakeTopic) -> None:
    """The measuring tools run to their end and count what they were asked to; no speed is judged here."""
    made = topic(partitions=2)
    produced = tools.run(
        "producer-perf-test", "--topic", made, "--num-records", "20000", "--record-size", "100", "--throughput", "-1",
        "--producer-props", f"bootstrap.servers={tools.bootstrap}", "compression.type=lz4",
    )  # fmt: skip
    assert re.search(r"^20000 records sent", produced.lines[-1]), str(produced)
    consumed = tools.run("consumer-perf-test", "--topic", made, "--messages", "20000", "--timeout", "20000")
    columns = [column.strip() for column in consumed.lines[-1].split(",")]
    assert int(columns[4]) >= 20000, str(consumed)


def test_broker_api_versions(tools: Tools, broker: Broker) -> None:
    shown = tools.run("broker-api-versions")
    assert re.search(rf"127.0.0.1:{broker.port} \(id: {broker.node_id} rack: null.*\) -> \(", shown.out), str(shown)
    served = dict(re.findall(r"^\s(\w+)\(\d+\): (\S+ to \S+|\S+)", shown.out, re.MULTILINE))
    assert served["ApiVersions"].startswith("0 to "), str(shown)
    for api in ("Produce", "Fetch", "Metadata", "JoinGroup", "OffsetCommit", "CreateTopics", "DescribeConfigs"):
        assert api in served, str(shown)


def test_cluster_id(tools: Tools) -> None:
    """This tool wants its option after the word."""
    command = tools.command("cluster")
    at = command.index("--bootstrap-server")
    shown = run_process([*command[:at], "cluster-id", *command[at:]])
    assert re.search(r"Cluster ID: [\w-]{22}$", shown.out, re.MULTILINE), str(shown)


def test_missing_topic_is_made_once(tools: Tools, broker: Broker, name: str) -> None:
    """A consumer of a missing topic makes it (auto.create.topics.enable) and then finds it empty."""
    tools.run("console-consumer", "--topic", name, "--from-beginning", "--timeout-ms", "1500", check=False)
    eventually(lambda: name in tools.run("topics", "--list").lines, "the topic")
