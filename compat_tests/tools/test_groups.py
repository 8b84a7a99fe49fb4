"""kafka-consumer-groups: list, describe with states, members and offsets, every way of resetting, deleting."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.groups.members import BOTH_PROTOCOLS, Member, speaks_new_protocol
from compat_tests.support.services import Broker
from compat_tests.support.tools import Result, Tools
from compat_tests.support.waiting import eventually

COUNT = 20
# young enough for the stock retention of seven days, and a whole second
START_MS = (int(time.time()) - 3600) * 1000
STEP_MS = 1_000


def rows(result: Result) -> list[dict[str, str]]:
    """The tool's table as dicts. Columns are wide enough not to touch, and no value holds a space."""
    lines = result.lines
    heads = [n for n, line in enumerate(lines) if line.split()[0] == "GROUP"]
    assert heads, str(result)
    header = lines[heads[0]].replace("COORDINATOR (ID)", "COORDINATOR ID").split()
    body = [line.replace(" (", " ").replace(")", "").split() for line in lines[heads[0] + 1 :]]
    return [dict(zip(header, line, strict=False)) for line in body]


@pytest.fixture(params=BOTH_PROTOCOLS)
def client(request: pytest.FixtureRequest) -> str:
    """The members' client."""
    found: str = request.param
    return found


@pytest.fixture
def read_topic(broker: Broker, topic: MakeTopic, name: str, join: Callable[..., Member], client: str) -> str:
    """A topic whose two partitions hold COUNT records each, one a second from START_MS; group `name` has read all."""
    made = topic(partitions=2)
    for partition in (0, 1):
        stamps = [START_MS + n * STEP_MS for n in range(COUNT)]
        quick.fill(broker.bootstrap, made, [f"{n}" for n in range(COUNT)], partition, stamps)
    if speaks_new_protocol(client):
        member = join(client, group=name, topics=[made])
        member.has(2 * COUNT)
        member.commit()
        member.close()
    else:
        quick.read(broker.bootstrap, [(made, 0), (made, 1)], 2 * COUNT, group=name)
    return made


def offsets(tools: Tools, group: str) -> dict[int, tuple[str, str, str]]:
    """Partition -> (committed, end, lag) as `--describe --offsets` shows them."""
    table = rows(tools.run("consumer-groups", "--describe", "--group", group, "--offsets"))
    return {int(r["PARTITION"]): (r["CURRENT-OFFSET"], r["LOG-END-OFFSET"], r["LAG"]) for r in table}


def test_list_with_states(tools: Tools, name: str, read_topic: str, join: Callable[..., Member], client: str) -> None:
    live = f"{name}-live"
    member = join(client, group=live, topics=[read_topic])
    member.has(2 * COUNT)
    states = rows(tools.run("consumer-groups", "--list", "--state"))
    found = {row["GROUP"]: row["STATE"] for row in states}
    assert (found[name], found[live]) == ("Empty", "Stable")
    stable = {row["GROUP"] for row in rows(tools.run("consumer-groups", "--list", "--state", "Stable"))}
    assert live in stable
    assert name not in stable
    assert {name, live} <= set(tools.run("consumer-groups", "--list").lines)


def test_describe_a_live_group(
    tools: Tools, broker: Broker, topic: MakeTopic, name: str, join: Callable[..., Member], client: str
) -> None:
    read_topic, live = topic(partitions=2), f"{name}-live"
    members = [join(client, group=live, topics=[read_topic], settings={"client.id": f"m{n}"}) for n in range(2)]
    eventually(lambda: all(len(member.assignment) == 1 for member in members), "one partition each")
    for partition in (0, 1):
        quick.fill(broker.bootstrap, read_topic, [f"{n}" for n in range(COUNT)], partition)
    for member in members:
        member.has(COUNT)
        member.commit()
    table = rows(tools.run("consumer-groups", "--describe", "--group", live))
    assert {row["CLIENT-ID"] for row in table} == {"m0", "m1"}
    assert {(row["TOPIC"], row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) for row in table} == {
        (read_topic, "0", str(COUNT), "0"),
        (read_topic, "1", str(COUNT), "0"),
    }
    assert {row["HOST"] for row in table} == {"/127.0.0.1"}
    (state,) = rows(tools.run("consumer-groups", "--describe", "--group", live, "--state"))
    assert state["STATE"] == "Stable"
    assert state["ASSIGNMENT-STRATEGY"] == ("uniform" if speaks_new_protocol(client) else "range")
    assert state["#MEMBERS"] == "2"
    verbose = tools.run("consumer-groups", "--describe", "--group", live, "--members", "--verbose")
    held = {row["CLIENT-ID"]: row["#PARTITIONS"] for row in rows(verbose)}
    assert held == {"m0": "1", "m1": "1"}, str(verbose)
    # 3.9.1 loses the topic's name here and shows "(0)"
    assert all(re.search(rf"(\({n}\)|:{n})\s", verbose.out) for n in (0, 1)), str(verbose)


def test_describe_an_empty_group(tools: Tools, name: str, read_topic: str) -> None:
    described = tools.run("consumer-groups", "--describe", "--group", name)
    assert f"Consumer group '{name}' has no active members." in described.out + described.err, str(described)
    assert offsets(tools, name) == {0: ("20", "20", "0"), 1: ("20", "20", "0")}


def reset(tools: Tools, group: str, topic: str, *how: str, execute: bool = True) -> dict[int, int]:
    """Partition -> new offset as the tool prints them."""
    result = tools.run(
        "consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, *how,
        "--execute" if execute else "--dry-run",
    )  # fmt: skip
    # 3.9.1 prints the whole table on one line
    found = re.findall(rf"{re.escape(group)}\s+{re.escape(topic.partition(':')[0])}\s+(\d+)\s+(\d+)", result.out)
    assert found, str(result)
    return {int(partition): int(offset) for partition, offset in found}


def iso(timestamp_ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


def test_reset_offsets(tools: Tools, name: str, read_topic: str) -> None:
    """Each way of naming the new offset; the timestamps ask ListOffsets, the rest is arithmetic on the commits."""
    assert reset(tools, name, read_topic, "--to-earliest") == {0: 0, 1: 0}
    assert reset(tools, name, read_topic, "--to-latest") == {0: COUNT, 1: COUNT}
    assert reset(tools, name, read_topic, "--shift-by", "-5") == {0: COUNT - 5, 1: COUNT - 5}
    assert reset(tools, name, read_topic, "--shift-by", "100") == {0: COUNT, 1: COUNT}
    assert reset(tools, name, read_topic, "--to-offset", "7") == {0: 7, 1: 7}
    assert reset(tools, name, read_topic, "--to-current") == {0: 7, 1: 7}
    moment = iso(START_MS + 12 * STEP_MS - 500)
    assert reset(tools, name, read_topic, "--to-datetime", moment) == {0: 12, 1: 12}
    assert reset(tools, name, read_topic, "--by-duration", "P10000D") == {0: 0, 1: 0}
    assert reset(tools, name, f"{read_topic}:1", "--to-offset", "3") == {1: 3}
    assert offsets(tools, name) == {0: ("0", "20", "20"), 1: ("3", "20", "17")}


def test_reset_offsets_by_file(
    tools: Tools, name: str, read_topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = tmp_path_factory.mktemp("plan") / "offsets.csv"
    plan.write_text(f"{read_topic},0,4\n{read_topic},1,9\n")
    arguments = ("--reset-offsets", "--group", name, "--from-file", str(plan))
    tools.run("consumer-groups", *arguments, "--dry-run")
    assert offsets(tools, name) == {0: ("20", "20", "0"), 1: ("20", "20", "0")}
    tools.run("consumer-groups", *arguments, "--execute")
    assert offsets(tools, name) == {0: ("4", "20", "16"), 1: ("9", "20", "11")}


def test_reset_offsets_of_a_live_group(
    tools: Tools, name: str, read_topic: str, join: Callable[..., Member], client: str
) -> None:
    live = f"{name}-live"
    join(client, group=live, topics=[read_topic]).has(2 * COUNT)
    refused = tools.run(
        "consumer-groups", "--reset-offsets", "--group", live, "--topic", read_topic, "--to-earliest", "--execute",
        check=False,
    )  # fmt: skip
    assert "Assignments can only be reset if the group" in refused.out + refused.err, str(refused)


def test_delete_offsets(tools: Tools, name: str, read_topic: str) -> None:
    gone = tools.run("consumer-groups", "--delete-offsets", "--group", name, "--topic", f"{read_topic}:0")
    assert re.search("Request succeed(ed)? for deleting offsets", gone.out), str(gone)
    assert offsets(tools, name) == {1: ("20", "20", "0")}


def test_delete_group(tools: Tools, name: str, read_topic: str, join: Callable[..., Member], client: str) -> None:
    live = f"{name}-live"
    member = join(client, group=live, topics=[read_topic])
    member.has(2 * COUNT)
    refused = tools.run("consumer-groups", "--delete", "--group", live, check=False)
    assert "GroupNotEmptyException" in refused.out + refused.err, str(refused)
    deleted = tools.run("consumer-groups", "--delete", "--group", name)
    assert f"Deletion of requested consumer groups ('{name}') was successful." in deleted.out, str(deleted)
    assert name not in tools.run("consumer-groups", "--list").lines
    missing = tools.run("consumer-groups", "--delete", "--group", name, check=False)
    assert "GroupIdNotFoundException" in missing.out + missing.err, str(missing)
