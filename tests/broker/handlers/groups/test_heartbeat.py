"""Heartbeat: members, strangers, a coordinator that loads."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.groups import heartbeat
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from tests.broker.handlers.groups.group_scenarios import stable_member
from tests.support.brokers.fake_broker import call, fake_broker, versions


@pytest.mark.parametrize("version", versions(heartbeat))
async def test_members_and_strangers(version: int) -> None:
    async with fake_broker() as broker:
        member_id = await stable_member(broker)

        async def beat(group_id: str, generation_id: int, member: str) -> int:
            request = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member)
            code: int = (await call(broker, heartbeat, request, version)).error_code
            return code

        assert await beat("g", 1, member_id) == ErrorCode.NONE
        assert await beat("g", 0, member_id) == ErrorCode.ILLEGAL_GENERATION
        assert await beat("g", 1, "x") == ErrorCode.UNKNOWN_MEMBER_ID
        assert await beat("", 1, "x") == ErrorCode.INVALID_GROUP_ID
        broker.authorizer.denied.add((Operation.READ, ResourceType.GROUP, "g"))
        assert await beat("g", 1, member_id) == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_while_the_coordinator_loads_all_is_well() -> None:
    async with fake_broker(leads=False) as broker:
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="x")
        assert (await call(broker, heartbeat, request, 4)).error_code == ErrorCode.NOT_COORDINATOR
        broker.begin_loading()
        assert (await call(broker, heartbeat, request, 4)).error_code == ErrorCode.NONE


async def test_static_members_wait_for_brokers_that_know_them() -> None:
    async with fake_broker(inter_broker_protocol_version="2.2") as broker:
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="x", group_instance_id="i")
        assert (await call(broker, heartbeat, request, 4)).error_code == ErrorCode.UNSUPPORTED_VERSION
