"""Odd records, members and offsets of `tests.support.requests.odd`, at any broker: what commands carry and show."""

from __future__ import annotations

import json

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support.command_line import CommandLine
from compat_tests.support.services import Broker
from tests.support.requests import odd

SEED = 40


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


@pytest.fixture
def full(broker: Broker, topic: MakeTopic) -> str:
    """A topic with all odd records."""
    made = topic()
    odd.append(broker.bootstrap, made, odd.records(SEED))
    assert odd.stored(broker.bootstrap, made) == odd.records(SEED)
    return made


def test_records_are_carried_as_they_are(cli: CommandLine, broker: Broker, topic: MakeTopic, full: str) -> None:
    by_lines, by_replay = topic(suffix="-lines"), topic(suffix="-replay")
    lines = cli.run("topic", "consume", full, "-e", "-f", "json").out
    cli.run("topic", "produce", by_lines, "-f", "json", stdin=lines)
    cli.run("replay", full, by_replay)
    for copy in (by_lines, by_replay):
        assert odd.stored(broker.bootstrap, copy) == odd.records(SEED), copy


@pytest.mark.parametrize("what", ["garbage", "two bytes", "a huge count", "of Connect", "partitions that cannot be"])
def test_a_group_is_shown_with_its_lag(cli: CommandLine, broker: Broker, full: str, name: str, what: str) -> None:
    generation, member_id = odd.join(broker.bootstrap, name, odd.members(full)[what])
    odd.commit(broker.bootstrap, name, {(full, 0): (7, "plain")}, generation, member_id)
    (described,) = cli.json("group", "describe", name)
    assert [one["member_id"] for one in described["members"]] == [member_id]
    lags = {(one["topic"], one["partition"]): one["lag"] for one in described["offsets"]}
    assert lags[full, 0] == len(odd.records(SEED)) - 7


def test_metadata_of_offsets_stays_as_it_is(cli: CommandLine, broker: Broker, full: str, name: str) -> None:
    """librdkafka reads beyond its end, and adds a zero byte."""
    odd.commit(broker.bootstrap, name, {(full, 0): (7, "plain")})
    exported = cli.run("offsets", "export", name, "--format", "json").out
    cli.run("offsets", "import", "-", "--group", f"{name}-2", "--execute", stdin=exported)
    again = json.loads(cli.run("offsets", "export", f"{name}-2", "--format", "json").out)
    assert [one["metadata"] for one in (*json.loads(exported), *again)] == ["plain", "plain"]
