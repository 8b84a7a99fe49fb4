"""A share coordinator in memory: what `SharePersister` promises, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers import routes
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.core.authorizer import AllowAll, Authorizer
from kpybroker.core.share_coordinator.values import (
    UNINITIALIZED_START_OFFSET,
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    SharePartitionKey,
    StateResult,
    SummaryResult,
    WriteState,
)
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import running_broker
from tests.support.requests.consumer_group_requests import loaded
from tests.support.requests.handling import response_of


class FakePersister:
    """`states` has (state epoch, start offset, offsets that are done). `error` is that of the next initialization or
    deletion of a partition.
    """

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, tuple[int, int, int]] = {}
        self.error = ErrorCode.NONE

    async def initialize(self, group_id: str, partitions: Sequence[InitializeState]) -> list[StateResult]:
        await trio.lowlevel.checkpoint()
        results = []
        for one in partitions:
            key = SharePartitionKey(group_id, one.topic_id, one.partition)
            error, self.error = self.error, ErrorCode.NONE
            if error is ErrorCode.NONE and one.state_epoch < self.states.get(key, (-1, 0, 0))[0]:
                error = ErrorCode.FENCED_STATE_EPOCH
            if error is ErrorCode.NONE:
                self.states[key] = (one.state_epoch, one.start_offset, 0)
            results.append(StateResult(one.topic_id, one.partition, error, error.message))
        return results

    async def read(self, group_id: str, partitions: Sequence[ReadState]) -> list[ReadResult]:
        raise NotImplementedError

    async def read_summary(self, group_id: str, partitions: Sequence[ReadState]) -> list[SummaryResult]:
        await trio.lowlevel.checkpoint()
        results = []
        for one in partitions:
            known = self.states.get(SharePartitionKey(group_id, one.topic_id, one.partition))
            epoch, start, done = (0, UNINITIALIZED_START_OFFSET, -1) if known is None else known
            results.append(
                SummaryResult(
                    one.topic_id,
                    one.partition,
                    state_epoch=epoch,
                    leader_epoch=3,
                    start_offset=start,
                    delivery_complete_count=done,
                )
            )
        return results

    def write(self, group_id: str, partitions: Sequence[WriteState]) -> Steps[list[StateResult]]:
        raise NotImplementedError

    async def delete(self, group_id: str, partitions: Sequence[DeleteState]) -> list[StateResult]:
        await trio.lowlevel.checkpoint()
        results = []
        for one in partitions:
            error, self.error = self.error, ErrorCode.NONE
            if error is ErrorCode.NONE:
                self.states.pop(SharePartitionKey(group_id, one.topic_id, one.partition), None)
            results.append(StateResult(one.topic_id, one.partition, error, error.message))
        return results


@asynccontextmanager
async def share_broker(
    directory: Path, *, group_id: str = "g", **options: Any
) -> AsyncIterator[tuple[Broker, FakePersister]]:
    """A broker that has loaded the group, in a cluster with share groups; nothing delays an assignment."""
    persister = FakePersister()
    async with whole_share_broker(directory, group_id=group_id, **options) as broker:
        broker.coordinators.__dict__["share_persister"] = persister
        yield broker, persister


@asynccontextmanager
async def whole_share_broker(directory: Path, *, group_id: str = "g", **options: Any) -> AsyncIterator[Broker]:
    """The same with its own share coordinator."""
    options.setdefault("group_share_assignment_interval_ms", "0")
    async with running_broker(directory, **options) as broker:
        await loaded(broker, group_id)
        yield broker


async def ask_as(
    broker: Broker, request: Any, version: int, authorizer: Authorizer | None = None, client_id: str = "test"
) -> Any:
    """The response to a request of a client with these rights: the handler's, through the codec both ways."""
    name = type(request).__name__.removesuffix("Request").lower()
    key = next(key for key in ApiKey if key.name.replace("_", "").lower() == name)
    context = RequestContext(PlainConnectionInfo(), authorizer or AllowAll(), key, version, 0, client_id)
    return await response_of(routes.load(key), broker, request, context)
