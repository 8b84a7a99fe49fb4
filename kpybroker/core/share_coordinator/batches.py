"""State batches that are put over others, as Kafka's ``PersisterStateBatchCombiner`` does it.

Of two batches that have an offset in common, the one with the higher delivery count has it, and of equal counts the one
with the higher state: so acknowledged and archived win over available, and an old write that arrives late changes
nothing. Neighbours of one state become one batch, at once; Kafka leaves some of them apart until its next write.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from kpybroker.core.share_coordinator.values import UNINITIALIZED_START_OFFSET, StateBatch

Batches = tuple[StateBatch, ...]


def combine(so_far: Batches, new: Sequence[StateBatch], start_offset: int) -> Batches:
    """Both, in order and without overlaps, from the start offset on, unless it is -1.

    `so_far` is what this function has returned. Only what touches a new batch is looked at.
    """
    if start_offset != UNINITIALIZED_START_OFFSET:
        so_far = _from(start_offset, so_far)
        new = _from(start_offset, new)
    if not new:
        return so_far
    first = min(batch.first for batch in new)
    last = max(batch.last for batch in new)
    begin = bisect_left(so_far, first - 1, key=attrgetter("last"))
    end = bisect_right(so_far, last + 1, key=attrgetter("first"))
    return (*so_far[:begin], *_overlay([*so_far[begin:end], *new]), *so_far[end:])


def _from(start_offset: int, batches: Iterable[StateBatch]) -> Batches:
    """What is at the start offset and after it."""
    return tuple(
        batch if batch.first >= start_offset else batch._replace(first=start_offset)
        for batch in batches
        if batch.last >= start_offset
    )


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _overlay(batches: list[StateBatch]) -> list[StateBatch]:
    """From left to right: `ahead` has what is not compared yet, by first offset, and `placed` is final but its end."""
    ahead = batches
    heapq.heapify(ahead)
    placed: list[StateBatch] = []
    while ahead:
        batch = heapq.heappop(ahead)
        if not placed or placed[-1].last < batch.first:
            _place(placed, batch)
            continue
        under = placed[-1]
        if _rank(batch) <= _rank(under):
            if batch.last > under.last:
                heapq.heappush(ahead, batch._replace(first=under.last + 1))
            continue
        del placed[-1]
        if under.first < batch.first:
            placed.append(under._replace(last=batch.first - 1))
        if under.last > batch.last:
            heapq.heappush(ahead, under._replace(first=batch.last + 1))
        _place(placed, batch)
    return placed


def _place(placed: list[StateBatch], batch: StateBatch) -> None:
    """Add a batch after the others, or to the last of them."""
    if placed and placed[-1].last + 1 == batch.first and _rank(placed[-1]) == _rank(batch):
        placed[-1] = placed[-1]._replace(last=batch.last)
    else:
        placed.append(batch)
