"""Members of one consumer group of the new protocol (KIP-848): partitions are handed over one by one.

What no group may do is noted where it is seen: a partition that is given to a member while another one has it without
doubt, a commit that is accepted from a member after the next owner got the partition, and a commit that is gone. One
that vanishes has its partitions for as long as its session cannot be over; so has a static one that will come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import trio

from compat_tests.faults.history import Read, Reader
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from tests.simulation.checks.observer import states
from tests.simulation.clients.client import BACKOFF_S, Lost, Partition, only_partition
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.habits import Habits, Vanished
from tests.simulation.world import KEYS, World

GROUP = 0
"""As a type of coordinator."""
SESSION_S, HEARTBEAT_S = 6.0, 1.0
SURE_S = 0.8 * SESSION_S
"""So long after a heartbeat was sent, to which there was a response, its member surely is one still: clocks drift."""
LEAVES = 0.01
"""Odds after each round of reading."""
LEAVES_GROUP, COMES_BACK = -1, -2
"""Epochs that say so."""
UNRELEASED_S = 1.0
"""Between tries to come back while the coordinator does not know that it was away."""
FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
COORDINATOR_AWAY = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Fenced(Exception):
    """It is no member any more, or what it asked for has to be asked for again."""


class Owner(NamedTuple):
    """Who has a partition: `number` counts how often it was given to anyone."""

    number: int
    member: str


class ConsumerGroup:
    """What its members know together."""

    def __init__(self, name: str, partitions: Sequence[Partition]) -> None:
        self.name = name
        self.partitions = partitions
        self.reader = Reader(name, committed_only=True, reads={each: [] for each in partitions}, is_shared=True)
        self.owners: dict[Partition, Owner] = {}
        """The last ones to whom they were given."""
        self.held: dict[Partition, Owner] = {}
        """Of those the ones that did not give them up, as far as they know."""
        self.sure_until: dict[str, float] = {}
        """Of each member that has partitions: until then no one else can have them."""
        self.committed: dict[Partition, tuple[int, int]] = {}
        """By which owner, and the highest offset."""
        self.read_to_end: set[Partition] = set()
        """After nothing more was written."""
        self.members = 0


class Consumer(Fetcher):
    """One member."""

    VERSION = 1
    """Of heartbeats."""

    def __init__(self, world: World, group: ConsumerGroup, name: str, habits: Habits) -> None:
        super().__init__(world, name, group.partitions, committed=True)
        self._group = group
        self._habits = habits
        self._instance_id = name if habits.is_static else None
        self._lives = 0
        self._member_id = ""
        self._epoch = 0
        self._says_all = True
        self._owned: dict[Partition, Owner] = {}
        self._begun: set[Partition] = set()
        """Those that it owns and knows where to read."""
        self._beat_at = 0.0
        group.members += 1

    async def run(self) -> None:
        self._member_id = f"{self.name}-{self._lives}"
        await self.refresh(self._partitions[0][0])
        while True:
            try:
                await self._beat(is_due=self._says_all)
                if await self._read():
                    break
                if not self.is_stopping and self.chance.random() < LEAVES:
                    await self._leave(for_good=self._instance_id is None)
                if not self.is_stopping:
                    self._habits.may_vanish(self.chance)
            except Vanished:
                self._new_life()
                await self.vanish()
            except (Lost, Fenced) as reason:
                self.note(f"begins again: {reason}")
                self._says_all = True
                if isinstance(reason, Lost):
                    self.forget_coordinators()
                    self._on_lost()
                await self.pause(UNRELEASED_S if reason.args == (ErrorCode.UNRELEASED_INSTANCE_ID.name,) else BACKOFF_S)
        if self._habits.leaves(self.chance):
            await self._leave(for_good=True)
        self._group.members -= 1
        if not self._group.members:
            self._group.reader.finished = True
        self.close()

    # --- membership

    async def _ask(self, request: Any, version: int) -> Any:
        return await self.ask(await self.coordinator(self._group.name, GROUP), request, version)

    def _check(self, error_code: int) -> None:
        if error_code == ErrorCode.NONE:
            return
        error = ErrorCode(error_code)
        if error in COORDINATOR_AWAY:
            self.forget_coordinators()
        if error in FENCED:
            self._release_all()
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._new_life()
        if error is ErrorCode.UNKNOWN_SERVER_ERROR:
            self.world.problem(f"UNKNOWN_SERVER_ERROR: {self.name}")
        raise Fenced(error.name)

    def _release_all(self) -> None:
        self._epoch, self._says_all = 0, True
        for partition in list(self._owned):
            self._release(partition)

    def _on_lost(self) -> None:
        """A response may have had what it is given now; it says all that it has, and hears it again."""

    def _new_life(self) -> None:
        """As another process, which has nothing. What it had is not released by that."""
        self._lives += 1
        self._member_id = f"{self.name}-{self._lives}"
        self._epoch, self._says_all = 0, True
        self._owned.clear()
        self._begun.clear()

    @property
    def _owner_name(self) -> str:
        return self._instance_id or self._member_id

    async def _beat(self, *, is_due: bool = True) -> None:
        """A heartbeat, and another one at once where partitions have to be given up."""
        if not is_due and trio.current_time() < self._beat_at + HEARTBEAT_S:
            return
        sent_s = self._beat_at = trio.current_time()
        response = await self._ask(self._heartbeat(), self.VERSION)
        self._check(response.error_code)
        self._epoch = response.member_epoch
        self._says_all = False
        if self._owned and await self._is_heard():
            self._group.sure_until[self._owner_name] = sent_s + SURE_S
        if (given := self._given(response)) is not None:
            await self._take({(self._partitions[0][0], index) for index in given}, sent_s)

    async def _is_heard(self) -> bool:
        """Whether the coordinator is one, as the tree has it. One that was deposed while it was cut off from the tree
        responds to heartbeats as before, as Kafka's does, while the next one waits for them in vain.
        """
        index = coordinator_partition(self._group.name, int(KEYS["offsets.topic.num.partitions"]))
        coordinator = await self.coordinator(self._group.name, GROUP)
        return any(
            state.leader == coordinator
            for partition, _, state in states(self.world)
            if partition == (GROUP_METADATA_TOPIC_NAME, index)
        )

    def _given(self, response: Any) -> list[int] | None:
        """Which partitions it is to have; None: those that it was given before."""
        if response.assignment is None:
            return None
        return [index for topic in response.assignment.topic_partitions for index in topic.partitions]

    def _short_heartbeat(self, epoch: int) -> Any:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group.name, member_id=self._member_id, member_epoch=epoch, instance_id=self._instance_id
        )

    def _heartbeat(self) -> Any:
        request = self._short_heartbeat(self._epoch)
        if self._says_all:
            owned = [index for _, index in self._owned]
            topic = self._partitions[0][0]
            topics = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=self.topic_ids[topic], partitions=owned)
                for _ in owned[:1]
            ]
            request.topic_partitions = topics
            request.subscribed_topic_names = [topic]
            request.rebalance_timeout_ms = int(SESSION_S * 1000)
        return request

    async def _take(self, given: set[Partition], sent_s: float) -> None:
        """Give up what is not in it, say so, and begin with what is new."""
        for partition, owner in list(self._group.held.items()):
            if owner.member == self._owner_name and partition not in self._owned and partition not in given:
                del self._group.held[partition]  # a former life of a static member had it, whose session is over
        lost = [partition for partition in self._owned if partition not in given]
        for partition in lost:
            self._release(partition)
        new = sorted(given - self._owned.keys())
        for partition in new:
            self._own(partition)
        if self._owned:
            self._group.sure_until[self._owner_name] = sent_s + SURE_S
        if lost or new:
            self.note(f"owns {sorted(index for _, index in self._owned)} in epoch {self._epoch}")
            self._says_all = True
            await self._beat()

    def _own(self, partition: Partition) -> None:
        group, before, name = self._group, self._group.owners.get(partition), self._owner_name
        if before is not None and before.member != name:
            is_sure = trio.current_time() < group.sure_until.get(before.member, -1.0)
            if is_sure and group.held.get(partition) == before:
                self.world.problem(
                    f"two owners: {partition[0]}-{partition[1]}: {before.member} and {name} in epoch {self._epoch}"
                )
        owner = Owner(0 if before is None else before.number + 1, name)
        self._owned[partition] = group.owners[partition] = group.held[partition] = owner

    def _release(self, partition: Partition) -> None:
        if self._group.held.get(partition) == self._owned.pop(partition):
            del self._group.held[partition]
        self._begun.discard(partition)
        if not self._owned:
            self._group.sure_until.pop(self._owner_name, None)

    async def _leave(self, *, for_good: bool) -> None:
        """A static member that is to come back keeps what it has for as long as a session."""
        request = self._short_heartbeat(LEAVES_GROUP if for_good else COMES_BACK)
        if for_good:
            self._release_all()
        self._new_life()
        try:
            await self._ask(request, self.VERSION)
        except Lost:
            self.forget_coordinators()

    # --- offsets

    async def _read(self) -> bool:
        """What it owns, once; whether they are to stop and have read everything."""
        for partition in list(self._owned):
            if partition not in self._owned:
                continue  # a heartbeat in between has taken it
            if partition not in self._begun:
                await self._take_offset(partition)
            owner = self._owned[partition]
            stored = await self.fetch(partition)
            if stored is None:
                self.forget(partition)
            if stored == [] and self.is_stopping:
                self._group.read_to_end.add(partition)
            if stored and self._owned.get(partition) == owner:
                self._group.reader.reads[partition] += [Read(found.offset, found.record) for found in stored]
                await self._commit(partition, owner)
            await self._beat(is_due=False)
        if not self._owned:
            await self.pause(HEARTBEAT_S / 2)
        return self._group.read_to_end == set(self._partitions)

    async def _take_offset(self, partition: Partition) -> None:
        """Where to begin, which is where the last owner's commit says."""
        owner, known = self._owned[partition], self._group.committed.get(partition)
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=partition[0], partition_indexes=[partition[1]])
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self._group.name, member_id=self._member_id, member_epoch=self._epoch, topics=[topic]
        )
        (described,) = (await self._ask(OffsetFetchRequest(groups=[group], require_stable=True), 9)).groups
        self._check(described.error_code)
        found = only_partition(described, "topics", "partitions")
        self._check(found.error_code)
        if known is not None and found.committed_offset < known[1] and known[0] < owner.number:
            where = f"{partition[0]}-{partition[1]}: {found.committed_offset} after {known[1]}"
            self.world.problem(f"committed offset back: {where}, of owner {known[0]}; now {owner.number}")
        self._positions[partition] = max(found.committed_offset, 0)
        self._aborted[partition].clear()
        self._begun.add(partition)

    async def _commit(self, partition: Partition, owner: Owner) -> None:
        group, offset, newest = self._group, self._positions[partition], self._group.owners[partition]
        owned = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=partition[1], committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group.name,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._member_id,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=partition[0], partitions=[owned])],
        )
        self._check(only_partition(await self._ask(request, 9), "topics", "partitions").error_code)
        if newest != owner:
            where = f"{partition[0]}-{partition[1]} by {owner.member}, owner {owner.number}"
            self.world.problem(f"commit of a former owner: {where}, after {newest}")
        self.note(f"has committed {partition[0]}-{partition[1]}@{offset}")
        group.committed[partition] = max(group.committed.get(partition, (-1, -1)), (owner.number, offset))
