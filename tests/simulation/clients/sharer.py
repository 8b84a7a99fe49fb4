"""Members of a share group: each record goes to one of them at a time, until one has accepted it.

What they were given and said is judged by the checker of the storms of share groups. A member accepts most records,
releases and rejects some, and says nothing of some until their locks have run out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import trio

from compat_tests.faults.history import record_of
from compat_tests.faults.share_groups.history import Acknowledgement, Delivery, Kind, ShareHistory, Span
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.messages.share_fetch import ShareFetchRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records
from tests.simulation.checks.excuses import identity
from tests.simulation.clients.client import Client, Lost, Partition, now_ns
from tests.simulation.clients.habits import Habits, Vanished
from tests.simulation.world import DRIFT_MAX, World

GROUP = 0
"""As a type of coordinator."""
HEARTBEAT_S, WAIT_MS, RECORDS_MAX, PAUSE_S = 1.0, 500, 50, 0.3
LOCK_MS, DELIVERIES_MAX = 2_000, 5
SURE_LOCK_MS = int(LOCK_MS * (1 - DRIFT_MAX))
"""So long a lock surely lasts: a broker's clock may be fast."""
KINDS = (*(Kind.ACCEPT,) * 16, Kind.RELEASE, Kind.RELEASE, Kind.REJECT, None)
"""What is said of some records, each as often; None is nothing."""
LOSES_CONNECTIONS = 0.02
"""Odds after each round."""


class Again(Exception):
    """A broker is not what it was, or the member is none any more."""


class _Said(NamedTuple):
    """Of which records something is said."""

    place: int
    first: int
    last: int
    kind: Kind


class ShareGroup:
    """`drains`: from now on everything is accepted."""

    def __init__(self, name: str, topic: str) -> None:
        self.name = name
        self.topic = topic
        self.history = ShareHistory(SURE_LOCK_MS, DELIVERIES_MAX)
        self.drains = False


class Sharer(Client):
    """One member. It ends once it is to stop: what is left is drained by then."""

    def __init__(self, world: World, group: ShareGroup, name: str, habits: Habits) -> None:
        super().__init__(world, name)
        self._group = group
        self._habits = habits
        self._lives = 0
        self._member_id = name
        self._epoch = 0
        self._says_all = True
        """What it subscribes to: the response then has the assignment, which may have been in one that was lost."""
        self._beat_at = -HEARTBEAT_S
        self._assigned: list[int] = []
        self._records: set[tuple[int, int]] = set()
        self._sessions: dict[int, int] = {}
        """The epochs of the sessions with leaders."""

    async def run(self) -> None:
        await self.refresh(self._group.topic)
        while not self.is_stopping:
            try:
                await self._round()
            except Vanished:
                self._give_up()
                self._lives += 1
                self._member_id = f"{self.name}-{self._lives}"
                self._epoch, self._assigned = 0, []
                self._records.clear()
                await self.vanish()
            except (Again, Lost) as reason:
                self.note(f"begins again: {reason}")
                self._says_all = True
                self._give_up()
                await self.pause()
        try:
            if self._habits.leaves(self.chance):
                await self._beat(-1)
        except (Again, Lost):
            pass  # its session ends without it
        self._give_up()
        self.close()

    async def _round(self) -> None:
        if trio.current_time() >= self._beat_at + HEARTBEAT_S:
            await self._beat(self._epoch)
        by_leader: dict[int, list[int]] = defaultdict(list)
        for index in self._assigned:
            by_leader[await self.leader((self._group.topic, index))].append(index)
        for leader, indexes in sorted(by_leader.items()):
            await self._fetch(leader, indexes)
        await self.pause(PAUSE_S)
        if not self._group.drains and self.chance.random() < LOSES_CONNECTIONS:
            raise Again("it has lost its connections")
        if not self._group.drains:
            self._habits.may_vanish(self.chance)

    def _give_up(self) -> None:
        """Connections end, and with them sessions, and with these locks."""
        now = now_ns()
        for broker_id in list(self._sessions):
            self.disconnect(broker_id)
        if self._sessions:
            self._group.history.given_up.append((self._member_id, Span(now, now + 1)))
        self._sessions.clear()
        self.leaders.clear()
        self.forget_coordinators()

    async def _beat(self, epoch: int) -> None:
        self._beat_at = trio.current_time()
        request = ShareGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id=self._member_id,
            member_epoch=epoch,
            subscribed_topic_names=[self._group.topic] if epoch == 0 or self._says_all else None,
        )
        response = await self.ask(await self.coordinator(self._group.name, GROUP), request, 1)
        if response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self._epoch, self._assigned = 0, []
        if response.error_code:
            raise Again(ErrorCode(response.error_code).name)
        if epoch >= 0:
            self._epoch, self._says_all = response.member_epoch, False
            if response.assignment is not None:
                topics = response.assignment.topic_partitions
                self._assigned = sorted(index for topic in topics for index in topic.partitions)
                self.note(f"is given {self._assigned}")

    # --- records

    async def _fetch(self, leader: int, indexes: list[int]) -> None:
        group, history = self._group, self._group.history
        partitions = [ShareFetchRequest.FetchPartition(partition_index=index) for index in indexes]
        request = ShareFetchRequest(
            group_id=group.name,
            member_id=self._member_id,
            share_session_epoch=self._sessions.get(leader, 0),
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_records=RECORDS_MAX,
            batch_size=RECORDS_MAX,
            share_acquire_mode=self.chance.randrange(2),
            topics=[ShareFetchRequest.FetchTopic(topic_id=self.topic_ids[group.topic], partitions=partitions)],
        )
        asked = now_ns()
        self._sessions.setdefault(leader, 0)
        try:
            response = await self.ask(leader, request, 2)
        except Lost:
            history.lost.append((self._member_id, Span(asked, now_ns())))
            raise
        if response.error_code:
            raise Again(ErrorCode(response.error_code).name)
        self._sessions[leader] += 1
        data = [one for topic in response.responses for one in topic.partitions]
        said = [each for one in data for each in self._take(one, leader, Span(asked, now_ns()))]
        if said:
            await self._acknowledge(leader, said)
        for one in data:
            if one.error_code:
                raise Again(ErrorCode(one.error_code).name)

    def _take(self, data: Any, leader: int, span: Span) -> Iterator[_Said]:
        """Note what was acquired of a partition; what is said of it."""
        values = dict(_values(bytes(data.records or b"")))
        partition = (self._group.topic, data.partition_index)
        for row in data.acquired_records:
            for offset in range(row.first_offset, row.last_offset + 1):
                if offset in values:  # not that of a marker
                    self._records.add((data.partition_index, offset))
                    self._group.history.deliveries.append(
                        Delivery(self._member_id, partition, offset, values[offset], row.delivery_count, *span, leader)
                    )
            self.note(f"acquires {data.partition_index}@{row.first_offset}-{row.last_offset}")
            first = row.first_offset
            while first <= row.last_offset:
                last = min(row.last_offset, first + self.chance.randrange(RECORDS_MAX))
                kind = Kind.ACCEPT if self._group.drains else self.chance.choice(KINDS)
                if kind is not None:
                    yield _Said(data.partition_index, first, last, kind)
                first = last + 1

    async def _acknowledge(self, leader: int, said: list[_Said]) -> None:
        partitions = [
            ShareAcknowledgeRequest.AcknowledgePartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareAcknowledgeRequest.AcknowledgementBatch(
                        first_offset=each.first, last_offset=each.last, acknowledge_types=[each.kind.value]
                    )
                    for each in said
                    if each.place == index
                ],
            )
            for index in sorted({each.place for each in said})
        ]
        topic_id = self.topic_ids[self._group.topic]
        request = ShareAcknowledgeRequest(
            group_id=self._group.name,
            member_id=self._member_id,
            share_session_epoch=self._sessions[leader],
            topics=[ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=topic_id, partitions=partitions)],
        )
        sent, done = now_ns(), None
        errors: dict[int, int] = {}
        try:
            response = await self.ask(leader, request, 2)
            if response.error_code == ErrorCode.NONE:
                self._sessions[leader] += 1
                done = now_ns()
                parts = [one for topic in response.responses for one in topic.partitions]
                errors = {one.partition_index: one.error_code for one in parts}
        finally:
            for each in said:
                self._note_said(each, sent, done, errors.get(each.place))
        if done is None:
            raise Again(ErrorCode(response.error_code).name)

    def _note_said(self, said: _Said, sent: int, done: int | None, error: int | None) -> None:
        partition: Partition = (self._group.topic, said.place)
        is_refused = error == ErrorCode.INVALID_RECORD_STATE
        done_ns = done if error == ErrorCode.NONE or is_refused else None
        self._group.history.acknowledgements += [
            Acknowledgement(self._member_id, partition, offset, said.kind, sent, done_ns, is_refused)
            for offset in range(said.first, said.last + 1)
            if (said.place, offset) in self._records
        ]


def _values(data: bytes) -> Iterator[tuple[int, bytes]]:
    for position, header in iter_batches(data):
        if not header.is_control:
            for record in iter_records(data, header, position):
                yield record.offset, identity(record_of(None if record.value is None else bytes(record.value)))
