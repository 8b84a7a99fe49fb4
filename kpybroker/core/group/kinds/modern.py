"""The groups of newer protocols of one machine, of each kind: what happens to all kinds alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kpybroker.core.budget import StateBudget
from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.group.kinds.consumers import Consumers
from kpybroker.core.group.kinds.streams import StreamsGroups
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.modern_group.values import Topics
from kpybroker.core.share_group.groups import ShareGroups
from kpybroker.core.share_group.values import ShareSurroundings
from kpybroker.core.streams_group.records import STREAMS_RECORDS
from kpybroker.core.streams_group.values import StreamsSurroundings
from kpybroker.wire.yield_budget import WorkBudget

Groups = Mapping[str, Group]
_NONE: Final = (None, None, None)


class ModernGroups:
    """`consumers` and `streams` are the members' sides of groups of the machine's table; `shares` have their own."""

    __slots__ = ("_heaps", "consumers", "shares", "streams")

    def __init__(
        self, budget: StateBudget, consumers: Surroundings, shares: ShareSurroundings, streams: StreamsSurroundings
    ) -> None:
        self.consumers = Consumers(consumers, budget)
        self.shares = ShareGroups(shares, consumers.counts, budget)
        self.streams = StreamsGroups(streams, consumers.counts, budget)
        shared = (self.consumers.shared, self.shares.shared, self.streams.shared)
        self._heaps = tuple(one.timers.heap for one in shared)

    @property
    def deadline(self) -> float | None:
        """The earliest end of a timer; None without timers."""
        consumer, share, streams = self._heaps
        deadlines = (consumer.deadline, share.deadline, streams.deadline)
        if deadlines == _NONE:  # first: asked after every request
            return None
        return min(at for at in deadlines if at is not None)

    def expire(self, step: GroupStep, groups: Groups) -> None:
        """Run the timers that are due."""
        self.consumers.expire(step, groups)
        self.shares.expire(step)
        self.streams.expire(step, groups)

    def on_topics_changed(self, groups: Groups, topics: Topics, changed: Iterable[str], *, has_new: bool) -> None:
        """There is new metadata, in which some topics were made, altered or deleted."""
        for kind in (self.consumers, self.streams):
            for group_id in kind.shared.update_topics(topics, changed, has_new=has_new):
                if (group := groups.get(group_id)) is not None and group.modern is not None:
                    group.modern.metadata_checked_epoch = None
        self.shares.on_topics_changed(topics, changed, has_new=has_new)

    def replay(self, group: Group, record: Any, offset: int) -> None:
        """Apply a record of a consumer or a streams group."""
        if isinstance(record, STREAMS_RECORDS):
            self.streams.replay(group, record, offset)
        else:
            self.consumers.replay(group, record, offset)

    def activate(self, step: GroupStep, group: Group, budget: WorkBudget) -> Iterator[None]:
        """Start the timers of a group's members, after the whole partition has been replayed. In slices."""
        if group.consumer is not None:
            yield from self.consumers.activate(step, group.consumer, budget)
        if group.streams is not None:
            yield from self.streams.activate(step, group.streams, budget)
