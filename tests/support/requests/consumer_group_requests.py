"""Members of consumer groups (KIP-848) as clients know them, for tests that send their requests to a whole broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kpybroker.broker.app import Broker
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.brokers.running_broker import ask, running_broker

DEADLINE_S = 60
Partitions = Mapping[bytes, frozenset[int]]


@asynccontextmanager
async def group_broker(directory: Path, *, group_id: str = "g", **options: Any) -> AsyncIterator[Broker]:
    """A broker that has loaded the group; nothing delays an assignment."""
    options.setdefault("group_consumer_assignment_interval_ms", "0")
    async with running_broker(directory, **options) as broker:
        await loaded(broker, group_id)
        yield broker


async def loaded(broker: Broker, group_id: str = "g") -> None:
    """Return when the broker is the group's coordinator."""
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
    with trio.fail_after(DEADLINE_S):
        while (await ask(broker, find, 4)).coordinators[0].error_code or broker.groups.partitions.is_loading:
            await trio.lowlevel.checkpoint()


class Member:
    """A member: its epoch, as it last received it, and what it owns. It gives up and takes over partitions at once."""

    def __init__(self, broker: Broker, member_id: str, group_id: str = "g", version: int = 1) -> None:
        self.broker = broker
        self.member_id = member_id
        self.group_id = group_id
        self.version = version
        self.epoch = 0
        self.owned: Partitions = {}

    async def send(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat; the response changes nothing here."""
        known: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
        }
        request = ConsumerGroupHeartbeatRequest(**known | fields)
        response = await ask(self.broker, request, self.version, self.member_id)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        return response

    async def join(self, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """The first heartbeat, or that after it was fenced; it owns nothing any more."""
        self.epoch, self.owned = 0, {}
        if topics:
            fields["subscribed_topic_names"] = list(topics)
        return await self._take(await self.send(rebalance_timeout_ms=60_000, topic_partitions=[], **fields))

    async def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat with what it owns."""
        owned = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in self.owned.items()
        ]
        return await self._take(await self.send(topic_partitions=owned, **fields))

    async def _take(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        assert response.error_code == ErrorCode.NONE, response
        self.member_id = response.member_id or self.member_id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.owned = {topic.topic_id: frozenset(topic.partitions) for topic in topics}
        return response

    async def leave(self, epoch: int = -1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """It leaves, with -2 for a while."""
        return await self.send(member_epoch=epoch, **fields)


async def settle(members: list[Member], is_settled: Callable[[], bool]) -> None:
    """Each member sends heartbeats in turn until it is as it should be. No partition is ever owned twice."""
    with trio.fail_after(DEADLINE_S):
        while not is_settled():
            for member in members:
                await member.beat()
                owned = [
                    (topic_id, partition)
                    for one in members
                    for topic_id, partitions in one.owned.items()
                    for partition in partitions
                ]
                assert len(owned) == len(set(owned)), "a partition has two owners"
            await trio.lowlevel.checkpoint()


async def described(broker: Broker, group_id: str = "g", version: int = 1, **fields: Any) -> Any:
    """The group in ConsumerGroupDescribe."""
    request = ConsumerGroupDescribeRequest(group_ids=[group_id], **fields)
    (group,) = (await ask(broker, request, version)).groups
    return group
