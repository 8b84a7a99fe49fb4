"""Results by partition as responses list them, by topic: what AddPartitionsToTxn and WriteTxnMarkers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.core.topic_partition import PartitionKey, by_topic
from kpybroker.wire.errors import ErrorCode

P = TypeVar("P")
T = TypeVar("T")


async def results_by_topic(
    errors: Mapping[PartitionKey, ErrorCode],
    budget: YieldBudget,
    partition: Callable[[int, ErrorCode], P],
    topic: Callable[[str, list[P]], T],
) -> list[T]:
    """The result of each topic, made of those of its partitions. There may be any number: others run in between."""
    await budget.spend(ELEMENT * len(errors))
    topics = by_topic(errors.items())
    await budget.spend(ELEMENT * len(errors))
    return [
        topic(name, await listed((partition(index, code) for index, code in codes), budget))
        for name, codes in topics.items()
    ]
