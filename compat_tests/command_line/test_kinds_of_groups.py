"""`kpybroker group` on the four kinds of groups, of Kafka 4.3.1 and of ours: the same commands show and do the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.streams.groups import streams_broker
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.waiting import eventually
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from tests.support.requests.streams_application import SETTLE_S, Application
from tests.support.requests.streams_group_requests import topology

pytestmark = pytest.mark.wide

COUNT = 10
KINDS = ("classic", "consumer", "share", "streams")


@pytest.fixture(params=["kafka", "kpybroker"])
def cli(request: pytest.FixtureRequest, own_broker: StartBroker, tmp_path: Path) -> Iterator[CommandLine]:
    keys = {"offsets.topic.num.partitions": "4", "share.coordinator.state.topic.num.partitions": "4"}
    if request.param == "kpybroker":
        yield CommandLine(streams_broker(own_broker, **{key.replace(".", "_"): keys[key] for key in keys}).bootstrap)
        return
    kafka = KraftBroker(tmp_path / "kafka", keys)
    try:
        kafka.start()
        yield CommandLine(kafka.bootstrap)
    finally:
        kafka.close()


def read_all(cli: CommandLine, kind: str) -> None:
    """A group of that kind and name has read its topic, of the same name, and has no members any more."""
    quick.create_topic(cli.bootstrap, kind)
    quick.fill(cli.bootstrap, kind, [str(number) for number in range(COUNT)], 0)
    if kind == "streams":
        with WireCluster(Settings(cli.bootstrap, {}, SETTLE_S, "the test")) as cluster:
            application = Application(cluster, kind)
            application.join(topology(kind))
            application.commit(COUNT)
            application.beat(-1)
    elif kind == "share":
        cli.run("config", "set", "group", kind, "share.auto.offset.reset=earliest")
        cli.run("topic", "consume", kind, "--share-group", kind, "-n", str(COUNT))
    else:
        cli.run("topic", "consume", kind, "-g", kind, "-n", str(COUNT), "-X", f"group.protocol={kind}")
    eventually(lambda: listed(cli, kind)[0]["state"] == "Empty", f"the {kind} group is empty")


def listed(cli: CommandLine, kind: str, *more: str) -> Any:
    return cli.json("group", "list", kind, *more)


def lag(cli: CommandLine, kind: str) -> int | None:
    """How much is left. Where a share group starts is written with what is acknowledged next, in Kafka too."""
    (row,) = cli.json("group", "describe", kind)
    (partition,) = row["offsets"]
    left: int | None = partition["lag"]
    return left


def shows(cli: CommandLine, kind: str, expected: int) -> None:
    eventually(lambda: lag(cli, kind) == expected, f"a lag of {expected} of the {kind} group", 30.0)


def test_each_kind_is_listed_described_moved_and_deleted(cli: CommandLine) -> None:
    for kind in KINDS:
        read_all(cli, kind)
    assert {row["group"]: row["type"] for row in cli.json("group", "list")} == dict(zip(KINDS, KINDS, strict=True))
    for kind in KINDS:
        assert [row["group"] for row in cli.json("group", "list", "--type", kind)] == [kind]
        (row,) = cli.json("group", "describe", kind)
        assert (row["type"], row["state"], row["members"]) == (kind, "Empty", [])
        shows(cli, kind, 0)
        seek = ("group", "seek", kind, "--to", "start", "-t", kind)
        cli.run(*seek)
        shows(cli, kind, 0)
        cli.run(*seek, "--execute")
        shows(cli, kind, COUNT)
        (row,) = listed(cli, kind, "--lag")
        assert row["lag"] == COUNT
        cli.run("group", "offset-delete", kind, "-t", kind, "--execute")
        (row,) = cli.json("group", "describe", kind)
        assert row["offsets"] == []
        cli.run("group", "delete", kind, "--execute")
        assert listed(cli, kind) == []
        assert "there is no group" in cli.run("group", "describe", kind, code=1).err
