"""DeleteGroups: empty groups go, others stay, each with its own response."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.groups import delete_groups
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from tests.broker.handlers.groups.group_scenarios import commit, committed, stable_member
from tests.support.brokers.fake_broker import call, fake_broker, versions


@pytest.mark.parametrize("version", versions(delete_groups))
async def test_each_group_gets_its_response_once(version: int) -> None:
    async with fake_broker(3) as broker:
        await stable_member(broker)
        for group_id in ("a", "b"):
            await commit(broker, {"t": {0: 1}}, group_id)
        broker.authorizer.denied.add((Operation.DELETE, ResourceType.GROUP, "b"))
        request = DeleteGroupsRequest(groups_names=["b", "a", "g", "none", "a"])
        response = await call(broker, delete_groups, request, version)
        assert [(result.group_id, result.error_code) for result in response.results] == [
            ("a", ErrorCode.NONE),
            ("g", ErrorCode.NON_EMPTY_GROUP),
            ("none", ErrorCode.GROUP_ID_NOT_FOUND),
            ("b", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ]
        assert await committed(broker, group_id="a") == -1
        assert await committed(broker, group_id="b") == 1


async def test_no_coordinator_here() -> None:
    async with fake_broker(leads=False) as broker:
        response = await call(broker, delete_groups, DeleteGroupsRequest(groups_names=["a"]), 2)
        assert response.results[0].error_code == ErrorCode.NOT_COORDINATOR
