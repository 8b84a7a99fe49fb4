"""LeaveGroup: one member until version 2, several after."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.groups import join_group, leave_group
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import Leave, LeaveResult
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.leave_group import LeaveGroupRequest
from tests.broker.handlers.groups.group_scenarios import join_request, stable_member
from tests.support.brokers.fake_broker import call, fake_broker, versions

Member = LeaveGroupRequest.MemberIdentity


@pytest.mark.parametrize("version", range(3))
async def test_one_member_and_its_error_on_top(version: int) -> None:
    async with fake_broker() as broker:
        member_id = await stable_member(broker)
        for member, expected in (("x", ErrorCode.UNKNOWN_MEMBER_ID), (member_id, ErrorCode.NONE)):
            response = await call(broker, leave_group, LeaveGroupRequest(group_id="g", member_id=member), version)
            assert (response.error_code, response.members) == (expected, [])


@pytest.mark.parametrize("version", versions(leave_group, 3))
async def test_several_members_each_with_its_error(version: int) -> None:
    async with fake_broker() as broker:
        joined = await call(broker, join_group, join_request(group_instance_id="i"), 9)
        members = [Member(member_id="x"), Member(group_instance_id="i"), Member(member_id=joined.member_id)]
        response = await call(broker, leave_group, LeaveGroupRequest(group_id="g", members=members), version)
        assert response.error_code == ErrorCode.NONE
        assert [(m.member_id, m.group_instance_id, m.error_code) for m in response.members] == [
            ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", "i", ErrorCode.NONE),
            (joined.member_id, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ]


@pytest.mark.parametrize("version", versions(leave_group))
async def test_a_departure_that_could_not_be_written_is_an_error_on_top(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a consumer group names no members, whether the first part of many failed or a later one."""
    async with fake_broker() as broker:

        async def ask(request: Leave) -> LeaveResult:
            if request.members[0].member_id == "fails":
                return LeaveResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return LeaveResult(ErrorCode.NONE, tuple((one, ErrorCode.NONE) for one in request.members))

        monkeypatch.setattr(broker.groups, "ask", ask)
        monkeypatch.setattr(leave_group, "MEMBERS_AT_ONCE", 1)
        members = [Member(member_id=name) for name in ("leaves", "fails", "leaves")]
        request = LeaveGroupRequest(group_id="g", **({"members": members} if version >= 3 else {"member_id": "fails"}))
        response = await call(broker, leave_group, request, version)
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert [one.member_id for one in response.members] == (["leaves", "leaves"] if version >= 3 else [])


@pytest.mark.parametrize("version", versions(leave_group))
async def test_refusals(version: int) -> None:
    async with fake_broker() as broker:
        request = LeaveGroupRequest(group_id="", **({"members": [Member()]} if version >= 3 else {"member_id": "x"}))
        assert (await call(broker, leave_group, request, version)).error_code == ErrorCode.INVALID_GROUP_ID
        request.group_id = "g"
        broker.groups.on_resigned(0)
        assert (await call(broker, leave_group, request, version)).error_code == ErrorCode.NOT_COORDINATOR
        broker.authorizer.denied.add((Operation.READ, ResourceType.GROUP, "g"))
        response = await call(broker, leave_group, request, version)
        assert (response.error_code, response.members) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
