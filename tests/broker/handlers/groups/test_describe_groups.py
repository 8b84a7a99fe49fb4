"""DescribeGroups: members of stable groups, authorized operations, groups that are not here."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.groups import describe_groups
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from tests.broker.handlers.groups.group_scenarios import SUBSCRIPTION_TO_T, stable_member
from tests.support.brokers.fake_broker import call, fake_broker, versions

NO_OPERATIONS = -(2**31)


@pytest.mark.parametrize("version", versions(describe_groups))
async def test_a_stable_group_and_one_that_does_not_exist(version: int) -> None:
    async with fake_broker() as broker:
        member_id = await stable_member(broker)
        response = await call(broker, describe_groups, DescribeGroupsRequest(groups=["none", "g"]), version)
        nothing, group = response.groups
        error, text = (
            (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.") if version >= 6 else (ErrorCode.NONE, None)
        )
        assert (nothing.error_code, nothing.error_message) == (error, text)
        assert (nothing.group_id, nothing.group_state) == ("none", "Dead")
        assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
        assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
        (member,) = group.members
        assert (member.member_id, member.client_id, member.client_host) == (member_id, "c", "/127.0.0.1")
        assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION_TO_T, b"all")
        assert group.authorized_operations == NO_OPERATIONS


@pytest.mark.parametrize("version", versions(describe_groups, 3))
async def test_operations_that_are_allowed_if_asked_for(version: int) -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        broker.authorizer.denied.update((Operation.DELETE, ResourceType.GROUP, name) for name in ("g", "none"))
        request = DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=True)
        group, nothing = (await call(broker, describe_groups, request, version)).groups
        allowed = 1 << Operation.READ | 1 << Operation.DESCRIBE
        assert group.authorized_operations == allowed
        assert nothing.authorized_operations == (NO_OPERATIONS if version >= 6 else allowed)


async def test_refused_groups_come_first_and_show_nothing() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        request = DescribeGroupsRequest(groups=["none", "g"], include_authorized_operations=True)
        refused, nothing = (await call(broker, describe_groups, request, 5)).groups
        assert (refused.group_id, refused.error_code) == ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert (refused.group_state, refused.members) == ("", [])
        assert refused.authorized_operations == NO_OPERATIONS
        assert nothing.group_id == "none"
        broker.groups.on_resigned(0)
        _, moved = (await call(broker, describe_groups, request, 5)).groups
        assert (moved.error_code, moved.group_state) == (ErrorCode.NOT_COORDINATOR, "")
        assert moved.authorized_operations == NO_OPERATIONS
