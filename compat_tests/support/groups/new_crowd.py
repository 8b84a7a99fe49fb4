"""A crowd of members of one group of the new protocol (KIP-848), each a bare connection.

A member gives up and takes over partitions the moment that it hears of them, and says so at once, as Java's client does
when its rebalance listener is done; else it sends a heartbeat as often as the broker asks. The crowd is settled when
every partition of the topic has an owner and all own as many. No two may own one at the same time.
"""

from __future__ import annotations

import uuid
from typing import Any

import trio

from compat_tests.support.groups.crowd import Connection, CrowdOf, find_coordinator
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

REBALANCE_TIMEOUT_MS = 60_000
LEAVING = -1
Owned = frozenset[tuple[bytes, int]]


class NewMember:
    """`owned` are its partitions, each a topic's id and a number."""

    def __init__(self, crowd: NewCrowd, connection: Connection) -> None:
        self.member_id = str(uuid.uuid4())
        self.owned: Owned = frozenset()
        self.is_gone = False
        self._crowd = crowd
        self._connection = connection
        self._epoch = 0
        self._end = trio.Event()

    async def live(self) -> None:
        """Join, and follow the assignments, until `leave`."""
        response = await self._beat(is_join=True)
        while not self.is_gone:
            if self._has_changed(response):
                response = await self._beat()
                continue
            with trio.move_on_after(response.heartbeat_interval_ms / 1000):
                await self._end.wait()
            if not self.is_gone:
                response = await self._beat(says_owned=False)

    async def leave(self) -> None:
        """On a connection of its own, as a heartbeat may be under way."""
        self.is_gone = True
        self._end.set()
        self.owned = frozenset()
        connection = await Connection.open(self._crowd.port)
        try:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._crowd.group, member_id=self.member_id, member_epoch=LEAVING
            )
            response = await connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
        finally:
            await connection.aclose()
        assert response.error_code == ErrorCode.NONE, f"the leave was refused: {response.error_message}"

    def _has_changed(self, response: Any) -> bool:
        """Give up and take over what the response says, if it says anything new."""
        if self.is_gone or response.assignment is None:
            return False
        assigned = frozenset(
            (topic.topic_id, index) for topic in response.assignment.topic_partitions for index in topic.partitions
        )
        has_changed = assigned != self.owned
        self.owned = assigned
        self._crowd.look()
        return has_changed

    async def _beat(self, *, is_join: bool = False, says_owned: bool = True) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._crowd.group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            topic_partitions=_topics(self.owned) if says_owned else None,
        )
        if is_join:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [self._crowd.topic]
        response = await self._connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
        if self.is_gone:
            return response
        assert response.error_code == ErrorCode.NONE, f"{ErrorCode(response.error_code).name} {response.error_message}"
        self._epoch = response.member_epoch
        return response


def _topics(owned: Owned) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    by_id: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(owned):
        by_id.setdefault(topic_id, []).append(index)
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=indexes)
        for topic_id, indexes in by_id.items()
    ]


class NewCrowd(CrowdOf[NewMember]):
    """The members of `group`, which read `topic`, on the broker at `port`; they live in `nursery`."""

    def __init__(self, nursery: trio.Nursery, port: int, group: str, topic: str, partitions: int) -> None:
        super().__init__(nursery, port, group)
        self.topic = topic
        self._partitions = partitions

    async def connect(self, count: int) -> list[NewMember]:
        """New members with a connection each, that have not joined yet."""
        await find_coordinator(self.port, self.group)
        made = [NewMember(self, await Connection.open(self.port)) for _ in range(count)]
        self.members += made
        return made

    def look(self) -> None:
        """Somebody was assigned something."""
        owned = [one for member in self.members for one in member.owned]
        assert len(set(owned)) == len(owned), "two members own one partition"
        if len(owned) == self._partitions and len({len(member.owned) for member in self.members}) == 1:
            self._settled.set()

    async def settled(self) -> None:
        """Wait until all partitions are shared."""
        await self._settled.wait()

    async def state(self) -> str:
        """The group's, as ConsumerGroupDescribe has it."""
        connection = await Connection.open(self.port)
        try:
            request = ConsumerGroupDescribeRequest(group_ids=[self.group])
            (group,) = (await connection.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, request)).groups
            return str(group.group_state)
        finally:
            await connection.aclose()
