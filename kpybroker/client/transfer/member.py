"""`MirrorReader`: a member of the mirror's group, which commits what was copied, and knows when all of it is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition

from kpybroker.client.actions.consume import ConsumeOptions, GroupReader
from kpybroker.client.actions.partitions import Place
from kpybroker.client.connect.errors import CommandError, kafka_error
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.offsets import START, Bounds, Span

NEW_PARTITIONS_MS: Final = 10_000
"""How often the source is asked for its partitions: librdkafka's own five minutes are long for a user who adds one."""
LOOK_S: Final = 1.0
"""How often the offsets are looked up that other members commit."""
PASSING: Final = frozenset(
    {
        *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "_STATE", "_NO_OFFSET"),
        *("_WAIT_COORD", "_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT", "NOT_COORDINATOR"),
        *("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
    }
)
"""A commit that failed so: another member copies these records again, or the next commit contains this one."""


class MirrorReader(GroupReader):
    """A member of a group that commits each batch before it reads the next one.

    With `ends` it is done when the group has copied everything below them. Another member may hold partitions: one that
    works, or one that was killed, which the group keeps for session.timeout.ms.
    """

    def __init__(self, settings: Settings, options: ConsumeOptions, ends: Mapping[Place, Bounds]) -> None:
        keys: dict[str, Any] = {"enable_auto_commit": False}
        if "topic.metadata.refresh.interval.ms" not in settings.properties:
            keys["topic_metadata_refresh_interval_ms"] = NEW_PARTITIONS_MS
        self._ends = ends
        self._own: set[Place] = set()
        self._at_end: dict[Place, int] = {}
        self._looked = 0.0
        self._timeout_s = settings.timeout_s
        super().__init__(settings, options, Span(START), **keys)

    def _assigned(self, consumer: Any, parts: Sequence[Any]) -> None:
        super()._assigned(consumer, parts)
        self._own = {(part.topic, part.partition) for part in parts}
        self._at_end = {}

    def read(self, count: int) -> list[Any]:
        """The next messages. Raises CommandError."""
        messages = super().read(count)
        if not messages and self._at_end:
            self.printed([])
        self.is_done = self._exit_at_end and self._left == set() and self._others_are_done()
        return messages

    def at_end(self, place: Place, offset: int) -> None:
        """The end may be behind the last record: the markers of transactions have offsets too."""
        super().at_end(place, offset)
        self._at_end[place] = offset

    def printed(self, messages: Sequence[Any]) -> None:
        """Their offsets are committed, unless the group has moved on. Raises CommandError if they never can be."""
        last: dict[Place, int] = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
        for place, offset in self._at_end.items():
            last[place] = max(offset, last.get(place, 0))
        self._at_end = {}
        offsets = [TopicPartition(*place, offset) for place, offset in last.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() not in PASSING:
                found = kafka_error(error)
                raise CommandError(f"the offsets were not committed in the source: {found.cause}", found.fix) from None

    def _others_are_done(self) -> bool:
        """Whether other members have copied what there was at the start. Their commits say so."""
        wanted = {place: edges.end for place, edges in self._ends.items() if edges.end > edges.start}
        others = [TopicPartition(*place) for place in wanted if place not in self._own]
        if not others:
            return True
        if time.monotonic() - self._looked < LOOK_S:
            return False
        self._looked = time.monotonic()
        try:
            found = self.consumer.committed(others, timeout=self._timeout_s)
        except KafkaException:
            return False
        return all(part.error is None and part.offset >= wanted[part.topic, part.partition] for part in found)
