"""JoinGroup: ids given out, versions, refusals."""

from __future__ import annotations

from functools import partial
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest
import trio.testing

from kpybroker.broker.handlers.groups import describe_groups, join_group
from kpybroker.broker.loop.steps import Pending, run_steps
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.join_group import JoinGroupResponse
from tests.broker.handlers.groups.group_scenarios import SUBSCRIPTION_TO_T, join_request
from tests.support.brokers.fake_broker import call, fake_broker, versions
from tests.support.brokers.running_broker import ask, create_topic, running_broker


@pytest.mark.parametrize("version", versions(join_group))
async def test_a_new_member_joins_in_every_version(version: int) -> None:
    async with fake_broker() as broker:
        response = await call(broker, join_group, join_request(), version)
        if version >= 4:
            assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert (response.generation_id, response.leader, response.members) == (-1, "", [])
            assert response.protocol_name == (None if version >= 7 else "")
            response = await call(broker, join_group, join_request(member_id=response.member_id), version)
        assert response.error_code == ErrorCode.NONE
        assert response.member_id.startswith("c-")
        assert response.leader == response.member_id
        assert (response.generation_id, response.protocol_name) == (1, "range")
        assert response.protocol_type == ("consumer" if version >= 7 else None)
        assert [(m.member_id, m.metadata) for m in response.members] == [(response.member_id, SUBSCRIPTION_TO_T)]


async def test_a_static_member_is_named_after_its_instance_and_not_asked_back() -> None:
    async with fake_broker() as broker:
        response = await call(broker, join_group, join_request(group_instance_id="i"), 9)
        assert response.error_code == ErrorCode.NONE
        assert response.member_id.startswith("i-")
        assert response.members[0].group_instance_id == "i"


async def test_a_client_without_an_id_of_its_own_is_given_one_all_the_same() -> None:
    async with fake_broker() as broker:
        response = await call(broker, join_group, join_request(), 3, client_id=None)
        assert response.error_code == ErrorCode.NONE
        assert response.member_id.startswith("-")


async def test_what_waits_is_suspended_and_serves_what_its_client_has_sent_after_it() -> None:
    """A client that closes in a rebalance sends LeaveGroup after JoinGroup. No task waits; one whose client has left
    is not woken.
    """
    async with fake_broker() as broker:
        first = await call(broker, join_group, join_request(), 3)

        def joins(member_id: str) -> Any:
            context = broker.context(ApiKey.JOIN_GROUP, 3)
            return run_steps(join_group.handle(cast(Any, broker), join_request(member_id=member_id), context))

        woken: list[str] = []
        waiting: dict[str, Pending[JoinGroupResponse]] = {"stays": joins(""), "leaves": joins("")}
        for name, pending in waiting.items():
            assert pending.wait is not None
            assert (pending.wait.serves_rest, pending.wait.deadline) == (True, inf)
            pending.wait.on_end = partial(woken.append, name)
        waiting["leaves"].close()
        assert joins(first.member_id).generation_id == 2
        assert woken == ["stays"]
        joined = waiting["stays"].resume()
        assert isinstance(joined, JoinGroupResponse)
        assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 2)


async def test_version_0_rebalances_within_the_session_timeout(autojump_clock: trio.testing.MockClock) -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        await call(broker, join_group, join_request(), 0)
        nursery.start_soon(call, broker, join_group, join_request(), 0)
        await trio.sleep(9.9)
        described = await call(broker, describe_groups, DescribeGroupsRequest(groups=["g"]), 5)
        assert (described.groups[0].group_state, len(described.groups[0].members)) == ("PreparingRebalance", 2)
        await trio.sleep(0.2)
        described = await call(broker, describe_groups, DescribeGroupsRequest(groups=["g"]), 5)
        assert (described.groups[0].group_state, len(described.groups[0].members)) == ("CompletingRebalance", 1)
        nursery.cancel_scope.cancel()


async def test_members_show_their_host_as_java_prints_it() -> None:
    async with fake_broker() as broker:
        await call(broker, join_group, join_request(), 3)
        described = await call(broker, describe_groups, DescribeGroupsRequest(groups=["g"]), 5)
        (member,) = described.groups[0].members
        assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")


@pytest.mark.parametrize("version", versions(join_group))
async def test_refusals_name_the_member_that_was_refused(version: int) -> None:
    async with fake_broker() as broker:
        unknown = await call(broker, join_group, join_request(member_id="x"), version)
        assert (unknown.error_code, unknown.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "x")
        empty = await call(broker, join_group, join_request(group_id="", member_id="x"), version)
        assert (empty.error_code, empty.member_id) == (ErrorCode.INVALID_GROUP_ID, "x")
        broker.groups.on_resigned(0)
        moved = await call(broker, join_group, join_request(member_id="x"), version)
        assert (moved.error_code, moved.member_id) == (ErrorCode.NOT_COORDINATOR, "x")
        broker.authorizer.denied.add((Operation.READ, ResourceType.GROUP, "g"))
        denied = await call(broker, join_group, join_request(member_id="x"), version)
        assert (denied.error_code, denied.member_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
        assert denied.generation_id == -1


async def test_static_members_wait_for_brokers_that_know_them() -> None:
    async with fake_broker(inter_broker_protocol_version="2.2") as broker:
        response = await call(broker, join_group, join_request(group_instance_id="i"), 9)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_two_brokers_with_one_seed_give_the_same_member_ids(tmp_path: Path) -> None:
    member_ids = []
    for name in ("one", "two"):
        async with running_broker(tmp_path / name) as broker:
            await create_topic(broker, "__consumer_offsets")
            responses = [await ask(broker, join_request(), 4) for _ in range(3)]
            member_ids.append([response.member_id for response in responses])
    assert member_ids[0] == member_ids[1]
    assert len(set(member_ids[0])) == 3
