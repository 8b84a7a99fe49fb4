"""OffsetDelete: partitions that no member is subscribed to."""

from __future__ import annotations

from typing import Any

from kpybroker.broker.handlers.groups import offset_delete
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.offset_delete import OffsetDeleteRequest
from tests.broker.handlers.groups.group_scenarios import codes, commit, committed, stable_member
from tests.support.brokers.fake_broker import FakeBroker, call, fake_broker


async def delete(broker: FakeBroker, group_id: str, **topics: list[int]) -> Any:
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )
    return await call(broker, offset_delete, request, 0)


async def test_offsets_of_an_empty_group() -> None:
    async with fake_broker() as broker:
        await commit(broker, {"t": {0: 1, 1: 2}, "u": {0: 3}})
        broker.authorizer.denied.add((Operation.READ, ResourceType.TOPIC, "u"))
        response = await delete(broker, "g", t=[0, 2, 9], u=[0], none=[0])
        assert response.error_code == ErrorCode.NONE
        assert codes(response) == {
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("t", 0): ErrorCode.NONE,
            ("t", 2): ErrorCode.NONE,
        }
        assert [await committed(broker, "t", index) for index in (0, 1)] == [-1, 2]


async def test_offsets_that_a_member_uses_stay() -> None:
    async with fake_broker() as broker:
        await commit(broker, {"t": {0: 1}, "u": {0: 3}})
        await stable_member(broker)
        response = await delete(broker, "g", t=[0], u=[0])
        assert codes(response) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): ErrorCode.NONE}


async def test_what_is_wrong_with_the_group_stands_on_top() -> None:
    async with fake_broker() as broker:
        response = await delete(broker, "none", t=[0])
        assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
        assert (await delete(broker, "", t=[0])).error_code == ErrorCode.INVALID_GROUP_ID
        broker.authorizer.denied.add((Operation.DELETE, ResourceType.GROUP, "g"))
        assert (await delete(broker, "g", t=[0])).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        broker.groups.on_resigned(0)
        assert (await delete(broker, "none", t=[0])).error_code == ErrorCode.NOT_COORDINATOR
