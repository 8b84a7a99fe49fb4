"""Requests as clients send them, for the tests of the group handlers."""

from __future__ import annotations

from typing import Any

from kpybroker.broker.handlers.groups import join_group, offset_commit, offset_fetch, sync_group
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest
from tests.support.brokers.fake_broker import FakeBroker, call, topic_id_of, topic_of

SUBSCRIPTION_TO_T = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def join_request(group_id: str = "g", member_id: str = "", **fields: Any) -> JoinGroupRequest:
    fields.setdefault("protocol_type", "consumer")
    fields.setdefault("rebalance_timeout_ms", 60_000)
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION_TO_T)]
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=10_000,
        protocols=fields.pop("protocols", protocols),
        **fields,
    )


def sync_request(generation_id: int, member_id: str, group_id: str = "g", **fields: Any) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=data)
            for member, data in fields.pop("assignments", {member_id: b"all"}).items()
        ],
        **fields,
    )


async def stable_member(broker: FakeBroker, group_id: str = "g", client_id: str = "c") -> str:
    """The only member of a group that has its assignment; returns its id."""
    joined = await call(broker, join_group, join_request(group_id), 3, client_id)
    assert joined.error_code == ErrorCode.NONE
    synced = await call(broker, sync_group, sync_request(joined.generation_id, joined.member_id, group_id), 3)
    assert synced.error_code == ErrorCode.NONE
    member_id: str = joined.member_id
    return member_id


def commit_request(
    offsets: dict[str, dict[int, int]], group_id: str = "g", metadata: str | None = "", **fields: Any
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id_of(topic),
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for index, offset in partitions.items()
                ],
            )
            for topic, partitions in offsets.items()
        ],
        **fields,
    )


async def commit(broker: FakeBroker, offsets: dict[str, dict[int, int]], group_id: str = "g", version: int = 9) -> None:
    """As a consumer that manages its partitions itself."""
    response = await call(broker, offset_commit, commit_request(offsets, group_id), version)
    assert {p.error_code for topic in response.topics for p in topic.partitions} == {ErrorCode.NONE}


async def committed(broker: FakeBroker, topic: str = "t", index: int = 0, group_id: str = "g") -> int:
    wanted = [OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[index])]
    response = await call(broker, offset_fetch, OffsetFetchRequest(group_id=group_id, topics=wanted), 7)
    assert response.error_code == ErrorCode.NONE
    offset: int = response.topics[0].partitions[0].committed_offset
    return offset


def codes(response: Any) -> dict[tuple[str, int], int]:
    """(topic, partition) -> error code, of any response with topics of partitions."""
    return {
        (topic_of(topic), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
