"""ListGroups: states and types where the version has them, and what a client may see."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.groups import list_groups
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from tests.broker.handlers.groups.group_scenarios import commit, stable_member
from tests.support.brokers.fake_broker import call, fake_broker, versions


@pytest.mark.parametrize("version", versions(list_groups))
async def test_groups_in_every_version(version: int) -> None:
    async with fake_broker(3) as broker:
        await stable_member(broker)
        await commit(broker, {"t": {0: 1}}, "h")
        response = await call(broker, list_groups, ListGroupsRequest(), version)
        assert response.error_code == ErrorCode.NONE
        rows = sorted((g.group_id, g.protocol_type, g.group_state, g.group_type) for g in response.groups)
        state_g, state_h = ("Stable", "Empty") if version >= 4 else ("", "")
        kind = "classic" if version >= 5 else ""
        assert rows == [("g", "consumer", state_g, kind), ("h", "", state_h, kind)]


async def test_filters() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        await commit(broker, {"t": {0: 1}}, "h")
        response = await call(broker, list_groups, ListGroupsRequest(states_filter=["STABLE"]), 4)
        assert [group.group_id for group in response.groups] == ["g"]
        response = await call(broker, list_groups, ListGroupsRequest(types_filter=["Consumer"]), 5)
        assert response.groups == []


async def test_without_describe_on_the_cluster_one_sees_what_one_may_describe() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        await commit(broker, {"t": {0: 1}}, "h")
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        assert len((await call(broker, list_groups, ListGroupsRequest(), 5)).groups) == 2
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
        response = await call(broker, list_groups, ListGroupsRequest(), 5)
        assert [group.group_id for group in response.groups] == ["h"]


async def test_while_a_partition_loads_the_rest_is_listed() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        broker.groups.on_elected(1, 0)
        response = await call(broker, list_groups, ListGroupsRequest(), 5)
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert [group.group_id for group in response.groups] == ["g"]
