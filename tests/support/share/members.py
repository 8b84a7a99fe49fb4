"""Members of share groups at a broker in this process, and a persister in memory in place of the share coordinator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.core.features import SHARE_VERSION, Finalized
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateResult,
    SummaryResult,
    WriteState,
)
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kpybroker.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import NOW_MS, batch

Rows = list[tuple[int, int, int]]
Acks = Mapping[int, Sequence[tuple[int, int, Sequence[int]]]]


class State:
    """What the coordinator has of one share partition: (state, delivery count) by offset."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.leader_epoch = -1
        self.offsets: dict[int, tuple[int, int]] = {}

    def batches(self) -> tuple[StateBatch, ...]:
        found: list[StateBatch] = []
        for offset in sorted(self.offsets):
            if offset < self.start_offset:
                continue
            if found and found[-1].last == offset - 1 and found[-1][2:] == self.offsets[offset]:
                found[-1] = found[-1]._replace(last=offset)
            else:
                found.append(StateBatch(offset, offset, *self.offsets[offset]))
        return tuple(found)


class MemoryPersister:
    """As the contract of `SharePersister`; all states are initialized. `errors`: those of the next writes.

    While `gate` is not set, writes wait for it.
    """

    def __init__(self, start_offset: int = 0) -> None:
        self.start_offset = start_offset
        self.states: dict[SharePartitionKey, State] = {}
        self.read_error = ErrorCode.NONE
        self.errors: list[ErrorCode] = []
        self.writes: list[WriteState] = []
        self.reads = 0
        self.gate = trio.Event()
        self.gate.set()

    def state(self, key: SharePartitionKey) -> State:
        return self.states.setdefault(key, State(self.start_offset))

    async def initialize(self, group_id: str, partitions: Sequence[InitializeState]) -> list[StateResult]:
        raise NotImplementedError

    async def read(self, group_id: str, partitions: Sequence[ReadState]) -> list[ReadResult]:
        await trio.lowlevel.checkpoint()
        self.reads += 1
        results = []
        for topic_id, index, leader_epoch in ((one.topic_id, one.partition, one.leader_epoch) for one in partitions):
            if self.read_error is not ErrorCode.NONE:
                results.append(ReadResult(topic_id, index, self.read_error, "as the test says"))
                continue
            state = self.state(SharePartitionKey(group_id, topic_id, index))
            state.leader_epoch = max(state.leader_epoch, leader_epoch)
            results.append(
                ReadResult(
                    topic_id,
                    index,
                    state_epoch=1,
                    start_offset=state.start_offset,
                    state_batches=state.batches(),
                )
            )
        return results

    async def read_summary(self, group_id: str, partitions: Sequence[ReadState]) -> list[SummaryResult]:
        raise NotImplementedError

    def write(self, group_id: str, partitions: Sequence[WriteState]) -> Steps[list[StateResult]]:
        yield self.gate.wait
        yield trio.lowlevel.checkpoint
        results = []
        for one in partitions:
            self.writes.append(one)
            error = self.errors.pop(0) if self.errors else ErrorCode.NONE
            state = self.state(SharePartitionKey(group_id, one.topic_id, one.partition))
            if one.leader_epoch < state.leader_epoch:
                error = ErrorCode.FENCED_LEADER_EPOCH
            if error is ErrorCode.NONE:
                state.start_offset = max(state.start_offset, one.start_offset)
                for first, last, delivery_state, count in one.state_batches:
                    state.offsets |= dict.fromkeys(range(first, last + 1), (delivery_state, count))
            results.append(StateResult(one.topic_id, one.partition, error))
        return results

    async def delete(self, group_id: str, partitions: Sequence[DeleteState]) -> list[StateResult]:
        raise NotImplementedError


@asynccontextmanager
async def share_broker(directory: Path, persister: MemoryPersister, **options: Any) -> AsyncIterator[Broker]:
    """A broker whose states of share partitions are in memory."""
    async with running_broker(directory, **options) as broker:
        broker.coordinators.share_persister = persister
        yield broker


def finalize_share_version(broker: Broker, level: int) -> None:
    features = broker.metadata.snapshot.features
    broker.metadata.finalize(Finalized({**features.levels, SHARE_VERSION: level}, features.epoch + 1))


def produce(broker: Broker, *values: bytes, topic: str = "t", partition: int = 0, **fields: Any) -> int:
    """Append one batch; its first offset."""
    records = bytearray(batch(*values, **fields))
    return broker.replicas.hosted(topic, partition).append(ProducedBatches(records, NOW_MS, 9), 1).first_offset


class Member:
    """A member on a connection of its own; `epoch` is that of its next request."""

    def __init__(self, broker: Broker, topic_id: bytes, member_id: str = "m", group_id: str = "g") -> None:
        self.broker = broker
        self.topic_id = topic_id
        self.member_id = member_id
        self.group_id = group_id
        self.epoch = 0
        self.connection = PlainConnectionInfo(connection_id=f"connection of {group_id} {member_id}")
        self.version = 2

    async def fetch(
        self, partitions: Sequence[int] = (), acks: Acks | None = None, forget: Sequence[int] = (), **fields: Any
    ) -> ShareFetchResponse:
        """Partitions are those to name; the first request names partition 0 by default."""
        named = list(partitions) or ([0] if self.epoch == 0 else [])
        acks = acks or {}
        asked = [
            ShareFetchRequest.FetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareFetchRequest.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=list(types)
                    )
                    for first, last, types in acks.get(index, ())
                ],
            )
            for index in dict.fromkeys([*named, *acks])
        ]
        topics = [ShareFetchRequest.FetchTopic(topic_id=self.topic_id, partitions=asked)] if asked else []
        forgotten = [ShareFetchRequest.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))]
        defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "share_session_epoch": self.epoch,
                "topics": topics,
                "forgotten_topics_data": forgotten if forget else [],
                **defaults,
                **fields,
            }
        )
        response: ShareFetchResponse = await ask(self.broker, request, self.version, connection=self.connection)
        self._next(response.error_code)
        return response

    async def acknowledge(self, acks: Acks, **fields: Any) -> ShareAcknowledgeResponse:
        partitions = [
            ShareAcknowledgeRequest.AcknowledgePartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareAcknowledgeRequest.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=list(types)
                    )
                    for first, last, types in batches
                ],
            )
            for index, batches in acks.items()
        ]
        topics = [ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=self.topic_id, partitions=partitions)]
        request = ShareAcknowledgeRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "share_session_epoch": self.epoch,
                "topics": topics if acks else [],
                **fields,
            }
        )
        response: ShareAcknowledgeResponse = await ask(self.broker, request, self.version, connection=self.connection)
        self._next(response.error_code)
        return response

    def _next(self, error: int) -> None:
        if error == ErrorCode.NONE and self.epoch >= 0:
            self.epoch += 1

    async def open(self, partitions: Sequence[int] = (0,)) -> None:
        """Open the session, and wait until the state of its partitions is read."""
        await self.fetch(partitions)
        await trio.testing.wait_all_tasks_blocked()


def data_of(response: ShareFetchResponse, partition: int = 0) -> ShareFetchResponse.PartitionData | None:
    """The partition of the response, if it names it."""
    found = [data for topic in response.responses for data in topic.partitions if data.partition_index == partition]
    return found[0] if found else None


def rows(response: ShareFetchResponse, partition: int = 0) -> Rows:
    """The acquired records of a partition: (first, last, delivery count)."""
    data = data_of(response, partition)
    assert data is None or data.error_code == ErrorCode.NONE
    found = [] if data is None else data.acquired_records
    return [(row.first_offset, row.last_offset, row.delivery_count) for row in found]


def offsets(response: ShareFetchResponse, partition: int = 0) -> list[int]:
    """The offsets of all records in the response, acquired or not."""
    data = data_of(response, partition)
    records = b"" if data is None or data.records is None else bytes(data.records)
    return [
        header.base_offset + place
        for position, header in iter_batches(records, strict=True)
        for place, _ in enumerate(iter_records(records, header, position))
    ]
