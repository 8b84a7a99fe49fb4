"""Commits that no coordinator takes: of strangers, of an earlier generation, of an epoch before a partition was had."""

from __future__ import annotations

from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Partition, only_partition
from tests.simulation.clients.consumer import Consumer, ConsumerGroup
from tests.simulation.clients.habits import NO_HABITS
from tests.simulation.clients.member import Group, Member
from tests.simulation.world import World

PLACES: list[Partition] = [("t", 0), ("t", 1)]
STRANGER = "no one"
COMMITS = 9
"""The version of OffsetCommit, of both protocols."""


async def commit_for_others(world: World) -> None:
    """To a classic group, and to one of the new protocol."""
    await world.start()
    administrator = Administrator(world, "administrator")
    await administrator.create_topic("t", len(PLACES), 1)
    await _classic(world)
    await _of_epochs(world)
    administrator.close()
    await world.stop()


class _Classic(Member):
    async def play(self) -> None:
        await self._join()
        earlier = self._generation
        await self._join()
        for member_id, generation, wanted in (
            (self._member_id, earlier, ErrorCode.ILLEGAL_GENERATION),
            (STRANGER, self._generation, ErrorCode.UNKNOWN_MEMBER_ID),
            (self._member_id, self._generation, ErrorCode.NONE),
        ):
            await _commit(self, self._group.name, member_id, generation, PLACES[0], wanted)


async def _classic(world: World) -> None:
    member = _Classic(world, Group("g", PLACES), "member1", NO_HABITS)
    await member.play()
    member.close()


class _Modern(Consumer):
    @property
    def owned(self) -> set[Partition]:
        return set(self._owned)

    async def begin(self) -> None:
        self._member_id = self.name
        await self.refresh(PLACES[0][0])

    async def beat_with(self, other: _Modern, count: int) -> int:
        """Both, until this one has so many partitions; its epoch then."""
        while len(self._owned) != count or len(other._owned) != len(PLACES) - count:
            for member in (self, other):
                await member._beat()
            await self.pause()
        return self._epoch

    async def go(self) -> None:
        await self._leave(for_good=True)

    async def beat_alone(self) -> int:
        while len(self._owned) != len(PLACES):
            await self._beat()
            await self.pause()
        return self._epoch


async def _of_epochs(world: World) -> None:
    group = ConsumerGroup("c", PLACES)
    stays, goes = (_Modern(world, group, name, NO_HABITS) for name in ("stays", "goes"))
    for member in (stays, goes):
        await member.begin()
    await stays.beat_alone()
    earlier = await stays.beat_with(goes, 1)
    (gained,) = goes.owned
    await goes.go()
    epoch = await stays.beat_alone()
    if epoch <= earlier:
        world.problem(f"group epoch: it was {earlier}, and is {epoch} after a member has gone")
    for member_id, of, wanted in (
        (stays.name, earlier, ErrorCode.STALE_MEMBER_EPOCH),
        (STRANGER, epoch, ErrorCode.UNKNOWN_MEMBER_ID),
        (stays.name, epoch, ErrorCode.NONE),
    ):
        await _commit(stays, group.name, member_id, of, gained, wanted)
    for member in (stays, goes):
        member.close()


async def _commit(
    client: Member | Consumer, group_id: str, member_id: str, epoch: int, place: Partition, wanted: ErrorCode
) -> None:
    """What the coordinator has to say is `wanted`."""
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=place[1], committed_offset=1)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=place[0], partitions=[partition])],
    )
    response = await client.ask(1, request, COMMITS)
    error = ErrorCode(only_partition(response, "topics", "partitions").error_code)
    if error is not wanted:
        client.world.problem(
            f"commit: of {member_id} in epoch {epoch} of {group_id} is {error.name}, not {wanted.name}"
        )
