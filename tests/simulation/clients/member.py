"""Members of one classic consumer group: they share the partitions, read them, and commit what they have read.

What no group may do is noted where it is seen: a partition with two owners in one generation, a commit that is accepted
from a member after those of a newer generation, a commit that is not there any more, and a static member that is heard
of after the next one with its instance id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from compat_tests.faults.history import Read, Reader
from kpybroker.wire.codec import encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.leave_group import LeaveGroupRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest
from tests.simulation.clients.client import Lost, Partition, only_partition
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.habits import Habits, Vanished
from tests.simulation.world import World

GROUP = 0
"""As a type of coordinator."""
SESSION_MS, REBALANCE_MS, HEARTBEAT_S = 6_000, 6_000, 1.0
JOIN_S = 10.0
PROTOCOL, RANGE = "consumer", "range"


class Rejoin(Exception):
    """The member's part in this generation is over."""


class Group:
    """What its members know together."""

    def __init__(self, name: str, partitions: Sequence[Partition]) -> None:
        self.name = name
        self.partitions = partitions
        self.reader = Reader(name, committed_only=True, reads={each: [] for each in partitions}, is_shared=True)
        self.owners: dict[tuple[int, Partition], str] = {}
        self.committed: dict[Partition, tuple[int, int]] = {}
        """The newest generation in which a commit was acknowledged, and the highest offset of that."""
        self.members = 0


class Member(Fetcher):
    """One of them."""

    def __init__(self, world: World, group: Group, name: str, habits: Habits) -> None:
        super().__init__(world, name, group.partitions, committed=True)
        self._group = group
        self._habits = habits
        self._instance_id = name if habits.is_static else None
        self._member_id = self._former_id = ""
        self._generation = -1
        self._owned: list[Partition] = []
        self._beat_at = 0.0
        group.members += 1

    async def run(self) -> None:
        while True:
            try:
                await self._join()
                await self._take_offsets()
                if await self._read():
                    break
            except Vanished:
                self._former_id, self._member_id = self._member_id, ""
                await self.vanish()
            except (Lost, Rejoin) as reason:
                self.note(f"joins again: {reason}")
                if isinstance(reason, Lost):
                    self.forget_coordinators()
                await self.pause()
        if self._habits.leaves(self.chance):
            await self._leave()
        self._group.members -= 1
        if not self._group.members:
            self._group.reader.finished = True
        self.close()

    # --- the group

    async def _ask(self, request: Any, version: int, timeout_s: float = 3.0) -> Any:
        response = await self.ask(await self.coordinator(self._group.name, GROUP), request, version, timeout_s)
        self._check(getattr(response, "error_code", 0))
        return response

    def _check(self, error_code: int) -> None:
        if error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            return
        error = ErrorCode(error_code)
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._member_id = ""
        if error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self.forget_coordinators()
        raise Rejoin(error.name)

    async def _join(self) -> None:
        subscription = b"\0\1" + encode(ConsumerProtocolSubscription(topics=[self._partitions[0][0]]), 1)
        while True:
            request = JoinGroupRequest(
                group_id=self._group.name,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=PROTOCOL,
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=RANGE, metadata=subscription)],
            )
            joined = await self._ask(request, 5, JOIN_S)
            self._member_id = joined.member_id
            if joined.error_code == ErrorCode.NONE:
                break
        self._generation = joined.generation_id
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = []
        if joined.leader == self._member_id:
            members = sorted(member.member_id for member in joined.members)
            for number, member in enumerate(members):
                indexes = [str(index) for _, index in self._partitions[number :: len(members)]]
                assignments.append(
                    SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=",".join(indexes).encode())
                )
        sync = SyncGroupRequest(
            group_id=self._group.name,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            assignments=assignments,
        )
        synced = await self._ask(sync, 3, JOIN_S)
        self._beat_at = trio.current_time()
        own = bytes(synced.assignment).decode().split(",")
        self._own([partition for partition in self._partitions if str(partition[1]) in own])
        if self._instance_id is not None and self._former_id:
            await self._check_fenced()

    def _own(self, owned: list[Partition]) -> None:
        group, name = self._group, self._instance_id or self._member_id
        self._owned = owned
        self.note(f"owns {[index for _, index in owned]} in generation {self._generation}")
        for partition in owned:
            owner = group.owners.setdefault((self._generation, partition), name)
            if owner != name:
                where = f"{partition[0]}-{partition[1]} in generation {self._generation}"
                self.world.problem(f"two owners: {where}: {owner} and {name}")

    async def _beat(self) -> None:
        if trio.current_time() < self._beat_at + HEARTBEAT_S:
            return
        self._beat_at = trio.current_time()
        await self._ask(self._heartbeat(self._member_id), 3)

    def _heartbeat(self, member_id: str) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group.name,
            generation_id=self._generation,
            member_id=member_id,
            group_instance_id=self._instance_id,
        )

    async def _check_fenced(self) -> None:
        """What was it before it vanished is not heard any more: the instance id is this one's."""
        former, self._former_id = self._former_id, ""
        coordinator = await self.coordinator(self._group.name, GROUP)
        if (await self.ask(coordinator, self._heartbeat(former), 3)).error_code == ErrorCode.NONE:
            where = f"{former} of {self.name}, which is {self._member_id}"
            self.world.problem(f"static member not fenced: {where} in generation {self._generation}")

    async def _leave(self) -> None:
        one = LeaveGroupRequest.MemberIdentity(member_id=self._member_id, group_instance_id=self._instance_id)
        try:
            await self._ask(LeaveGroupRequest(group_id=self._group.name, members=[one]), 3)
        except (Lost, Rejoin):
            pass  # its session ends without it

    # --- offsets

    async def _take_offsets(self) -> None:
        """Where to begin, which is where the last owner's commit says."""
        for partition in self._owned:
            known = self._group.committed.get(partition)
            topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=partition[0], partition_indexes=[partition[1]])
            request = OffsetFetchRequest(group_id=self._group.name, topics=[topic], require_stable=True)
            found = only_partition(await self._ask(request, 7), "topics", "partitions")
            self._check(found.error_code)
            if known is not None and found.committed_offset < known[1] and known[0] < self._generation:
                where = f"{partition[0]}-{partition[1]}: {found.committed_offset} after {known[1]}"
                self.world.problem(f"committed offset back: {where} of generation {known[0]}")
            self._positions[partition] = max(found.committed_offset, 0)
            self._aborted[partition].clear()

    async def _commit(self, partition: Partition) -> None:
        group, offset = self._group, self._positions[partition]
        owned = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=partition[1], committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group.name,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=partition[0], partitions=[owned])],
        )
        newest = group.committed.get(partition, (-1, -1))
        self._check(only_partition(await self._ask(request, 7), "topics", "partitions").error_code)
        if newest[0] > self._generation:
            where = f"{partition[0]}-{partition[1]} by {self.name} of generation {self._generation}"
            self.world.problem(f"commit of a former owner: {where}, after {newest[0]}")
        self.note(f"has committed {partition[0]}-{partition[1]}@{offset}")
        group.committed[partition] = max(group.committed.get(partition, (-1, -1)), (self._generation, offset))

    async def _read(self) -> bool:
        """Until the group is balanced again, or, once it is to stop, everything that it owns is read."""
        while True:
            at_end = True
            for partition in self._owned:
                stored = await self.fetch(partition)
                if stored is None:
                    self.forget(partition)
                if stored != []:
                    at_end = False
                if stored:
                    self._group.reader.reads[partition] += [Read(found.offset, found.record) for found in stored]
                    await self._commit(partition)
                await self._beat()
            if not self._owned:
                await self.pause(HEARTBEAT_S / 2)
            await self._beat()
            if self.is_stopping and at_end:
                return True
            if not self.is_stopping:
                self._habits.may_vanish(self.chance)
