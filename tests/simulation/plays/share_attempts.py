"""One record of a share group is delivered as often as it may be, to who holds it and to no one else."""

from __future__ import annotations

from compat_tests.faults.history import History
from compat_tests.faults.share_groups.history import Kind
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.messages.share_fetch import ShareFetchRequest
from tests.simulation.clients.administrator import GROUP, Administrator
from tests.simulation.clients.client import only_partition
from tests.simulation.clients.habits import NO_HABITS
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.sharer import DELIVERIES_MAX, WAIT_MS, ShareGroup, Sharer
from tests.simulation.plays.parts import PLACE
from tests.simulation.world import World

GROUP_ID = "s"
SHARES = 2
"""The version of ShareFetch and ShareAcknowledge."""


class _Member(Sharer):
    """Its one session is with broker 1."""

    _session_epoch = 0

    async def join(self) -> None:
        await self.refresh(PLACE[0])
        while not self._assigned:
            await self._beat(self._epoch)
            await self.pause()

    async def acquire(self) -> int:
        """How often the first record was delivered, this time included; 0: it is not."""
        await self._beat(self._epoch)
        partition = ShareFetchRequest.FetchPartition(partition_index=PLACE[1])
        request = ShareFetchRequest(
            group_id=GROUP_ID,
            member_id=self._member_id,
            share_session_epoch=self._session_epoch,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_records=1,
            batch_size=1,
            share_acquire_mode=1,
            topics=[ShareFetchRequest.FetchTopic(topic_id=self.topic_ids[PLACE[0]], partitions=[partition])],
        )
        response = await self.ask(1, request, SHARES)
        self._session_epoch += 1
        rows = [row for topic in response.responses for one in topic.partitions for row in one.acquired_records]
        return next((row.delivery_count for row in rows if row.first_offset == 0), 0)

    async def say(self, kind: Kind) -> ErrorCode:
        """Of the first record."""
        batch = ShareAcknowledgeRequest.AcknowledgementBatch(
            first_offset=0, last_offset=0, acknowledge_types=[kind.value]
        )
        partition = ShareAcknowledgeRequest.AcknowledgePartition(
            partition_index=PLACE[1], acknowledgement_batches=[batch]
        )
        topic = ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=self.topic_ids[PLACE[0]], partitions=[partition])
        request = ShareAcknowledgeRequest(
            group_id=GROUP_ID,
            member_id=self._member_id,
            share_session_epoch=self._session_epoch,
            topics=[topic],
        )
        response = await self.ask(1, request, SHARES)
        self._session_epoch += 1
        return ErrorCode(only_partition(response, "responses", "partitions").error_code)


async def attempt_again(world: World) -> None:
    """It is released each time until it is archived; another member has nothing to say of it."""
    await world.start()
    administrator = Administrator(world, "administrator")
    producer = Producer(world, History(), "producer1", [PLACE])
    await administrator.create_topic(PLACE[0], 1, 1)
    await administrator.set_config(GROUP, GROUP_ID, "share.auto.offset.reset", "earliest")
    await producer.init()
    await producer.produce(PLACE)
    group = ShareGroup(GROUP_ID, PLACE[0])
    holder, other = (_Member(world, group, name, NO_HABITS) for name in ("holder", "other"))
    for member in (holder, other):
        await member.join()
    count = 0
    while not count:  # the group's start may not be known yet
        count = await holder.acquire()
    for wanted in range(1, DELIVERIES_MAX + 1):
        if count != wanted:
            world.problem(f"attempts: the record is delivered {count} times, after {wanted - 1} before")
            break
        if wanted == 1:
            await other.acquire()  # the session that an acknowledgement needs
            if (error := await other.say(Kind.ACCEPT)) is not ErrorCode.INVALID_RECORD_STATE:
                world.problem(f"holder: another member says that it has the record: {error.name}")
        assert await holder.say(Kind.RELEASE) is ErrorCode.NONE
        count = await holder.acquire()
    else:
        if count:
            world.problem(f"attempts: the record is delivered {count} times, of {DELIVERIES_MAX}")
    for client in (administrator, producer, holder, other):
        client.close()
    await world.stop()
