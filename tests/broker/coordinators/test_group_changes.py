"""Groups whose protocol or feature level changes, compared with Kafka 4.3.1's responses to the same requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.core.features import GROUP_VERSION, VersionRange
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.consumer_group_requests import DEADLINE_S, Member, described, group_broker, loaded
from tests.support.requests.group_plays import (
    GROUPS,
    SAFE_DOWNGRADE,
    UPGRADE,
    Play,
    commit,
    downgrade,
    fetch,
    finalize,
    joined,
    leave,
    listed,
    migration,
    shown,
)

RECORDED: dict[str, list[list[Any]]] = json.loads((Path(__file__).parent / "kafka_4_3_1_group_plays.json").read_text())
"""Of each play the name and the response of every request. """


async def played(broker: Broker, play: Play) -> list[list[Any]]:
    """The play in the form of the record."""
    found: list[list[Any]] = []
    response = None
    while True:
        try:
            request, version = play.send(response)
        except StopIteration:
            return found
        response = await ask(broker, request, version)
        found.append([type(request).__name__.removesuffix("Request"), shown(response)])


async def ready(broker: Broker) -> None:
    await create_topic(broker, "t", 2)
    for group_id in GROUPS:
        await loaded(broker, group_id)


async def test_a_downgrade_leaves_groups_as_kafka_does(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await ready(broker)
        assert await played(broker, downgrade()) == RECORDED["levels"]


@pytest.mark.parametrize("policy", ["bidirectional", "upgrade", "downgrade", "disabled", "Upgrade"])
async def test_each_policy_lets_happen_what_it_does_in_kafka(tmp_path: Path, policy: str) -> None:
    async with group_broker(tmp_path, group_consumer_migration_policy=policy) as broker:
        await ready(broker)
        assert await played(broker, migration()) == RECORDED[f"policy {policy.lower()}"]


def _joined(group_id: str) -> Play:
    yield from joined(group_id)


async def states(broker: Broker) -> dict[str, tuple[str, str]]:
    request, version = listed()
    return {g.group_id: (g.group_type, g.group_state) for g in (await ask(broker, request, version)).groups}


async def test_members_go_with_their_sessions_after_a_downgrade_and_offsets_stay(tmp_path: Path) -> None:
    short = {"group_consumer_min_session_timeout_ms": "1", "group_consumer_session_timeout_ms": "300"}
    async with group_broker(tmp_path, **short) as broker:
        await ready(broker)
        await Member(broker, "m1").join("t")
        await ask(broker, *commit("g", "m1", 2, 7))
        assert (await ask(broker, *finalize(0, SAFE_DOWNGRADE))).error_code == ErrorCode.NONE
        with trio.fail_after(DEADLINE_S):
            while (await states(broker))["g"] != ("consumer", "Empty"):
                await trio.lowlevel.checkpoint()
        assert shown(await ask(broker, *fetch("g"))) == [[ErrorCode.NONE, [[0, 7]]]]
        # The next classic member takes the group over, as it does an empty group at any level.
        assert await played(broker, _joined("g")) == [["JoinGroup", [79, -1, False, 0]], ["JoinGroup", [0, 1, True, 1]]]
        assert (await states(broker))["g"] == ("classic", "CompletingRebalance")


async def test_a_broker_of_classic_groups_only_keeps_consumer_groups_for_the_way_back(tmp_path: Path) -> None:
    groups_alone = {GROUP_VERSION: VersionRange(0, 1)}
    async with group_broker(tmp_path, keeps=True, features=groups_alone) as broker:
        await ready(broker)
        for group_id in GROUPS:
            await Member(broker, "m1", group_id).join("t")
            await ask(broker, *commit(group_id, "m1", 2, 7))
        await ask(broker, *leave("e", "m1"))
        await ask(broker, *finalize(0, SAFE_DOWNGRADE))
    # A program that does not know the feature; with the level finalized it would not start.
    async with running_broker(tmp_path, keeps=True, features={}, group_consumer_assignment_interval_ms="0") as broker:
        for group_id in GROUPS:
            await loaded(broker, group_id)
        consumers = {"g": ("consumer", "Stable"), "n": ("consumer", "Stable")}
        assert await states(broker) == {**consumers, "e": ("consumer", "Empty")}
        assert (await Member(broker, "m1").send(member_epoch=2)).error_code == ErrorCode.UNSUPPORTED_VERSION
        await played(broker, _joined("e"))
        await played(broker, _joined("g"))
        assert await states(broker) == {
            "g": ("consumer", "Reconciling"),
            "n": ("consumer", "Stable"),
            "e": ("classic", "CompletingRebalance"),
        }
    async with group_broker(tmp_path, keeps=True) as broker:
        for group_id in GROUPS:
            await loaded(broker, group_id)
            assert shown(await ask(broker, *fetch(group_id))) == [[ErrorCode.NONE, [[0, 7]]]]
        assert (await ask(broker, *finalize(1, UPGRADE))).error_code == ErrorCode.NONE
        member = Member(broker, "m1", "n")
        await member.join("t")
        group = await described(broker, "n")
        assert (group.group_state, [one.member_id for one in group.members]) == ("Stable", ["m1"])
