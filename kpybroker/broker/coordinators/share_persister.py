"""`ShareStatePersister`: how share groups and share partitions reach the share coordinators (KIP-932).

Kafka's ``DefaultStatePersister`` and ``PersisterStateManager``. The coordinator of a share partition is the leader of
its partition of `__share_group_state`, which the metadata name; the first request creates the topic. This broker asks
itself without a message, and others with one request a broker for all that waits for it. What fails by something that
passes is asked again after a backoff, up to Kafka's number of attempts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from kpybroker.broker.coordinators.share_messages import DELETE, INITIALIZE, READ, SUMMARY, WRITE, ShareApi
from kpybroker.broker.loop.steps import Steps, run_to_end
from kpybroker.core.share_coordinator.machine import Asked, Result, StateRequest
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    SharePartitionKey,
    StateResult,
    SummaryResult,
    WriteState,
    coordinator_key,
    state_partition,
)
from kpybroker.core.topic_names import SHARE_GROUP_STATE_TOPIC_NAME
from kpybroker.wire.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.coordinators.share_states import ShareCoordinators
    from kpybroker.broker.coordinators.transaction_markers import AskPeer
    from kpybroker.broker.loop.host import Host

ATTEMPTS: Final = 5
BACKOFF_S: Final = 1.0
"""Before the second attempt; doubled before each later one."""
BACKOFF_S_MAX: Final = 30.0
JITTER: Final = 0.2

RETRIABLE: Final = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    )
)

logger = logging.getLogger("kafka.server.share.persister.PersisterStateManager")

CreateTopics = Callable[[Sequence[str]], Awaitable[object]]
"""Creates internal topics, or waits for another request to do so."""


class ShareStatePersister:
    """A `SharePersister` (`core.share_coordinator.values`, with what its methods return)."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        ask_peer: AskPeer,
        create_topics: CreateTopics,
        coordinators: Callable[[], ShareCoordinators],
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._ask_peer = ask_peer
        self._create_topics = create_topics
        self._coordinators = coordinators

    async def initialize(self, group_id: str, partitions: Sequence[InitializeState]) -> list[StateResult]:
        """See `SharePersister`."""
        return await run_to_end(self._ask(INITIALIZE, group_id, partitions))

    async def read(self, group_id: str, partitions: Sequence[ReadState]) -> list[ReadResult]:
        """See `SharePersister`."""
        return await run_to_end(self._ask(READ, group_id, partitions))

    async def read_summary(self, group_id: str, partitions: Sequence[ReadState]) -> list[SummaryResult]:
        """See `SharePersister`."""
        return await run_to_end(self._ask(SUMMARY, group_id, partitions))

    def write(self, group_id: str, partitions: Sequence[WriteState]) -> Steps[list[StateResult]]:
        """See `SharePersister`."""
        return self._ask(WRITE, group_id, partitions)

    async def delete(self, group_id: str, partitions: Sequence[DeleteState]) -> list[StateResult]:
        """See `SharePersister`."""
        return await run_to_end(self._ask(DELETE, group_id, partitions))

    # --- attempts

    def _ask(self, api: ShareApi, group_id: str, asked: Sequence[Asked]) -> Steps[list[Any]]:
        """One result a partition; the results of `api` are of the type that its method promises."""
        results: dict[int, Result] = {}
        waiting = list(range(len(asked)))
        for attempt in range(1, ATTEMPTS + 1):
            yield from self._attempt(api, group_id, {index: asked[index] for index in waiting}, results)
            waiting = [index for index in waiting if results[index].error in RETRIABLE]
            if not waiting or attempt == ATTEMPTS:
                break
            yield partial(self._host.clock.pause, self._backoff_s(attempt))
        if waiting:
            first = waiting[0]
            logger.error(
                "%s of share partition %s and %d others failed %d times: %s",
                api.key.name,
                coordinator_key(_key(group_id, asked[first])),
                len(waiting) - 1,
                ATTEMPTS,
                results[first].error.name,
            )
        return [results[index] for index in range(len(asked))]

    def _backoff_s(self, attempt: int) -> float:
        jitter = self._host.random.uniform(1 - JITTER, 1 + JITTER)
        return float(min(BACKOFF_S * 2 ** (attempt - 1) * jitter, BACKOFF_S_MAX))

    def _attempt(
        self, api: ShareApi, group_id: str, asked: dict[int, Asked], results: dict[int, Result]
    ) -> Steps[None]:
        """Ask about each partition once, all coordinators at a time."""
        if not self._metadata.contains(SHARE_GROUP_STATE_TOPIC_NAME):
            yield partial(self._create_topics, [SHARE_GROUP_STATE_TOPIC_NAME])
        by_broker: dict[int, dict[int, Asked]] = {}
        for index, one in asked.items():
            by_broker.setdefault(self._coordinator_of(_key(group_id, one)), {})[index] = one
        if len(by_broker) == 1:
            ((broker_id, some),) = by_broker.items()
            yield from self._ask_coordinator(api, broker_id, group_id, some, results)
        else:
            yield partial(self._ask_coordinators, api, group_id, by_broker, results)

    async def _ask_coordinators(
        self, api: ShareApi, group_id: str, by_broker: dict[int, dict[int, Asked]], results: dict[int, Result]
    ) -> None:
        async with trio.open_nursery() as nursery:
            for broker_id, some in by_broker.items():
                nursery.start_soon(run_to_end, self._ask_coordinator(api, broker_id, group_id, some, results))

    def _coordinator_of(self, key: SharePartitionKey) -> int:
        """The broker that leads the state's partition; -1 if none does."""
        topic = SHARE_GROUP_STATE_TOPIC_NAME
        count = self._metadata.partition_count(topic)
        if not count:
            return -1
        leader, _ = self._metadata.leader_and_epoch(topic, state_partition(key, count)) or (-1, -1)
        return leader if self._metadata.is_alive(leader) else -1

    def _ask_coordinator(
        self, api: ShareApi, broker_id: int, group_id: str, asked: dict[int, Asked], results: dict[int, Result]
    ) -> Steps[None]:
        if broker_id < 0:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            results |= {index: _failed(api, group_id, one, error) for index, one in asked.items()}
            return
        partitions = list(asked.values())
        if broker_id == self._host.node_id:
            local = yield from self._coordinators().ask(group_id, partitions, is_summary=api.is_summary)
            results |= zip(asked, local, strict=True)
            return
        found = yield partial(self._ask_broker, api, broker_id, group_id, partitions)
        for index, one in asked.items():
            missing = _failed(api, group_id, one, ErrorCode.NETWORK_EXCEPTION)
            results[index] = found.get((one.topic_id, one.partition), missing)

    async def _ask_broker(
        self, api: ShareApi, broker_id: int, group_id: str, asked: Sequence[Asked]
    ) -> dict[tuple[bytes, int], Result]:
        """Nothing if there is no response."""
        try:
            response = await self._ask_peer(broker_id, api.key, api.request(group_id, asked), api.version)
        except (OSError, ProtocolError, ValueError) as error:  # the last: an error code that is not known here
            logger.debug("%s at broker %d failed: %r", api.key.name, broker_id, error)
            return {}
        return {(result.topic_id, result.partition): result for result in api.results(response)}


def _key(group_id: str, asked: Asked) -> SharePartitionKey:
    return SharePartitionKey(group_id, asked.topic_id, asked.partition)


def _failed(api: ShareApi, group_id: str, asked: Asked, error: ErrorCode) -> Result:
    return StateRequest(group_id, asked, 0, api.is_summary).result(error)
