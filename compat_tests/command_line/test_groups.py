"""`kpybroker group` and `transaction` against a real broker, next to Kafka's own tools."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.clients.transactions.test_transactions import write_hanging
from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.members import BOTH_PROTOCOLS, Member, speaks_new_protocol
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

COUNT = 20
START_MS = 1_795_000_000_000


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


@pytest.fixture
def read_topic(broker: Broker, topic: MakeTopic, name: str) -> str:
    """A topic whose two partitions hold COUNT records each, one a second from START_MS; group `name` has read all."""
    made = topic(partitions=2)
    for partition in (0, 1):
        stamps = [START_MS + n * 1000 for n in range(COUNT)]
        quick.fill(broker.bootstrap, made, [f"{n}" for n in range(COUNT)], partition, stamps)
    quick.read(broker.bootstrap, [(made, 0), (made, 1)], 2 * COUNT, group=name)
    return made


def committed(broker: Broker, group: str, topic: str) -> list[int]:
    return quick.committed(broker.bootstrap, group, [(topic, 0), (topic, 1)])


def test_the_lag_of_an_empty_group(cli: CommandLine, broker: Broker, read_topic: str, name: str) -> None:
    quick.fill(broker.bootstrap, read_topic, ["more"], 1)
    (row,) = cli.json("group", "describe", name)
    assert (row["state"], row["lag"], row["members"]) == ("Empty", 1, [])
    assert [(one["current_offset"], one["log_end_offset"], one["lag"]) for one in row["offsets"]] == [
        (20, 20, 0),
        (20, 21, 1),
    ]
    assert {(one["group"], one["state"]) for one in cli.json("group", "list", name)} == {(name, "Empty")}


@pytest.mark.parametrize("client", BOTH_PROTOCOLS)
def test_members_are_shown_and_protected(
    cli: CommandLine, read_topic: str, name: str, join: Callable[..., Member], client: str
) -> None:
    live = f"{name}-live"
    members = [join(client, group=live, topics=[read_topic], settings={"client.id": f"m{n}"}) for n in range(2)]
    eventually(lambda: all(len(member.assignment) == 1 for member in members), "one partition each")
    (row,) = cli.json("group", "describe", live)
    assignor = "uniform" if speaks_new_protocol(client) else "range"
    assert (row["state"], row["assignor"], len(row["members"])) == ("Stable", assignor, 2)
    assert {one["client_id"] for one in row["offsets"]} == {"m0", "m1"}
    assert {one["host"] for one in row["members"]} == {"127.0.0.1"}
    refused = cli.run("group", "seek", live, "--to", "start", "--execute", code=1)
    assert f"group {live} has members: m" in refused.err
    assert "NON_EMPTY_GROUP" in cli.run("group", "delete", live, "--execute", code=1).err
    assert cli.json("group", "list", live, "--state", "Stable")[0]["members"] == 2


@pytest.mark.parametrize(
    ("to", "expected"),
    [("start", 0), ("end", COUNT), ("7", 7), ("-5", COUNT - 5), ("+100", COUNT), (f"@{START_MS + 11_500}", 12)],
)
def test_a_group_is_moved_as_kafkas_tool_moves_it(
    cli: CommandLine, broker: Broker, read_topic: str, name: str, to: str, expected: int
) -> None:
    dry = cli.json("group", "seek", name, "--to", to)
    assert [(row["from"], row["to"]) for row in dry] == [(COUNT, expected)] * 2
    assert committed(broker, name, read_topic) == [COUNT, COUNT]
    cli.run("group", "seek", name, "--to", to, "--execute")
    assert committed(broker, name, read_topic) == [expected, expected]


def test_some_partitions_another_group_and_a_file(
    cli: CommandLine, broker: Broker, read_topic: str, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cli.run("group", "seek", name, "--to", "3", "--topics", f"{read_topic}:1", "-y")
    assert committed(broker, name, read_topic) == [COUNT, 3]
    cli.run("group", "seek", f"{name}-copy", "--to-group", name, "-y")
    assert committed(broker, f"{name}-copy", read_topic) == [COUNT, 3]
    file = tmp_path_factory.mktemp("plan") / "offsets.csv"
    file.write_text(f"{read_topic},0,4\n{read_topic},1,9\n")
    cli.run("group", "seek", name, "--to-file", str(file), "-y")
    assert committed(broker, name, read_topic) == [4, 9]


def test_offsets_and_groups_are_deleted(cli: CommandLine, broker: Broker, read_topic: str, name: str) -> None:
    cli.run("group", "offset-delete", name, "-t", f"{read_topic}:0")
    assert committed(broker, name, read_topic) == [COUNT, COUNT]
    cli.run("group", "offset-delete", name, "-t", f"{read_topic}:0", "--execute")
    assert committed(broker, name, read_topic) == [-1001, COUNT]
    cli.run("group", "delete", name, "--execute")
    assert name not in Tools("3.9.1", broker.bootstrap).run("consumer-groups", "--list").lines
    assert "GROUP_ID_NOT_FOUND" in cli.run("group", "delete", name, "--execute", code=1).err
    assert "there is no group" in cli.run("group", "describe", name, code=1).err


# --- transactions


def test_an_open_transaction_is_listed_and_aborted(
    cli: CommandLine, broker: Broker, topic: MakeTopic, name: str
) -> None:
    from confluent_kafka import KafkaException, Producer

    made = topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, **quick.QUIET})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(made, b"open", partition=0)
    producer.flush(60)
    rows = {row["transactional_id"]: row for row in cli.json("transaction", "list", "--state", "Ongoing")}
    assert rows[name]["partitions"] == [{"topic": made, "partition": 0}]
    tool = Tools("3.9.1", broker.bootstrap).run("transactions", "describe", "--transactional-id", name)
    assert str(rows[name]["producer_id"]) in tool.out
    assert cli.json("transaction", "abort", name)[0]["status"] == "would be aborted"
    assert cli.json("transaction", "describe", name)[0]["state"] == "Ongoing"
    assert cli.json("transaction", "abort", name, "--execute")[0]["status"] == "aborted"
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    quick.fill(broker.bootstrap, made, ["behind"])
    assert cli.run("topic", "consume", made, "-e").lines == ["behind"]
    assert cli.json("transaction", "abort", name, "--execute")[0]["status"] == "nothing to abort"
    assert "TRANSACTIONAL_ID_NOT_FOUND" in cli.run("transaction", "abort", f"{name}-none", code=1).err


def test_a_transaction_that_hangs_is_found_and_aborted(own_broker: StartBroker) -> None:
    broker = own_broker(transaction_partition_verification_enable="false", log_retention_ms=-1)
    cli = CommandLine(broker.bootstrap)
    quick.create_topic(broker.bootstrap, "t")
    write_hanging(broker, "t")
    quick.fill(broker.bootstrap, "t", ["held back"])
    assert cli.run("topic", "consume", "t", "-e").lines == []
    found = cli.json("transaction", "hanging")
    assert [(row["topic"], row["partition"], row["start_offset"], row["producer_id"]) for row in found] == [
        ("t", 0, 0, 4711)
    ]
    place = ("--topic", "t", "--partition", "0", "--start-offset", "0")
    assert cli.json("transaction", "abort", *place)[0]["status"] == "would be aborted"
    assert len(cli.json("transaction", "hanging", "t")) == 1
    assert cli.json("transaction", "abort", *place, "--execute")[0]["status"] == "aborted"
    assert cli.json("transaction", "hanging", "t") == []
    assert cli.run("topic", "consume", "t", "-e").lines == ["held back"]
