"""SyncGroup: the assignment, the protocol check of version 5, refusals."""

from __future__ import annotations

from typing import Any, cast

import pytest
import trio.testing

from kpybroker.broker.handlers.groups import join_group, sync_group
from kpybroker.broker.loop.steps import Pending, run_steps
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.sync_group import SyncGroupResponse
from tests.broker.handlers.groups.group_scenarios import join_request, sync_request
from tests.support.brokers.fake_broker import call, fake_broker, versions


@pytest.mark.parametrize("version", versions(sync_group))
async def test_the_leader_assigns_in_every_version(version: int) -> None:
    async with fake_broker() as broker:
        joined = await call(broker, join_group, join_request(), 3)
        fields = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
        request = sync_request(joined.generation_id, joined.member_id, **fields)
        response = await call(broker, sync_group, request, version)
        assert (response.error_code, response.assignment) == (ErrorCode.NONE, b"all")
        expected = ("consumer", "range") if version >= 5 else (None, None)
        assert (response.protocol_type, response.protocol_name) == expected


async def test_a_member_that_waits_for_the_leader_is_suspended() -> None:
    """No task waits, and what its client has sent after it is served though the client has left."""
    async with fake_broker() as broker:
        leader = await call(broker, join_group, join_request(), 3)
        async with trio.open_nursery() as nursery:
            joined: list[Any] = []

            @nursery.start_soon
            async def join() -> None:
                joined.append(await call(broker, join_group, join_request(), 3))

            await trio.testing.wait_all_tasks_blocked()
            leader = await call(broker, join_group, join_request(member_id=leader.member_id), 3)
        (follower,) = joined
        context = broker.context(ApiKey.SYNC_GROUP, 3)
        asked = sync_request(follower.generation_id, follower.member_id, assignments={})
        waiting = run_steps(sync_group.handle(cast(Any, broker), asked, context))
        assert isinstance(waiting, Pending)
        assert waiting.wait is not None
        assert waiting.wait.serves_rest
        assigned = {follower.member_id: b"some", leader.member_id: b"rest"}
        await call(broker, sync_group, sync_request(leader.generation_id, leader.member_id, assignments=assigned), 3)
        assert waiting.wait.is_over
        response = waiting.resume()
        assert isinstance(response, SyncGroupResponse)
        assert (response.error_code, response.assignment) == (ErrorCode.NONE, b"some")


async def test_version_5_must_say_which_protocol() -> None:
    async with fake_broker() as broker:
        joined = await call(broker, join_group, join_request(), 3)
        for fields in ({}, {"protocol_type": "consumer"}, {"protocol_type": "consumer", "protocol_name": "other"}):
            request = sync_request(joined.generation_id, joined.member_id, **fields)
            response = await call(broker, sync_group, request, 5)
            assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_refusals() -> None:
    async with fake_broker() as broker:
        unknown = await call(broker, sync_group, sync_request(1, "x"), 3)
        assert (unknown.error_code, unknown.assignment) == (ErrorCode.UNKNOWN_MEMBER_ID, b"")
        no_group = await call(broker, sync_group, sync_request(1, "x", group_id=""), 3)
        assert no_group.error_code == ErrorCode.INVALID_GROUP_ID
        broker.authorizer.denied.add((Operation.READ, ResourceType.GROUP, "g"))
        denied = await call(broker, sync_group, sync_request(1, "x"), 3)
        assert denied.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_loading_coordinator_has_lost_the_rebalance() -> None:
    async with fake_broker(leads=False) as broker:
        assert (await call(broker, sync_group, sync_request(1, "x"), 3)).error_code == ErrorCode.NOT_COORDINATOR
        broker.begin_loading()
        response = await call(broker, sync_group, sync_request(1, "x"), 3)
        assert response.error_code == ErrorCode.REBALANCE_IN_PROGRESS


async def test_static_members_wait_for_brokers_that_know_them() -> None:
    async with fake_broker(inter_broker_protocol_version="2.2") as broker:
        response = await call(broker, sync_group, sync_request(1, "x", group_instance_id="i"), 3)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
