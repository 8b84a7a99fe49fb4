"""`topic produce --create`: topics and partitions that records need, made when the first of them is met.

A record that was read from another topic of the same cluster (`topic` of a JSON line) makes a topic like that one: its
number of partitions and its own settings. Else a new topic has the broker's number of partitions, and as many more as
the records name.
"""

from __future__ import annotations

from kpybroker.client.actions.partitions import LEGAL_NAME, PARTITIONS_MAX, topics
from kpybroker.client.actions.producing.room import Room, TargetTopic
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.record import Record


class Creation:
    """What exists is asked once a topic, and again for a partition beyond."""

    def __init__(self, settings: Settings) -> None:
        self._cluster = Cluster(settings)
        self._room = Room(self._cluster, settings.bootstrap, creates=True)
        self._counts: dict[str, int] = {}

    def require(self, record: Record, topic: str, partition: int | None) -> bool:
        """There is such a topic with this partition afterwards; whether that is news. Raises CommandError.

        A partition of None or -1 may be any. A name that no topic can have is left to the producer.
        """
        count = (-1 if partition is None else partition) + 1
        known = self._counts.get(topic)
        if (known is not None and count <= known) or not LEGAL_NAME.fullmatch(topic):
            return False
        if count > PARTITIONS_MAX:
            cause = f"partition {count - 1} of topic {topic} cannot be made: a topic gets {PARTITIONS_MAX} at most"
            raise CommandError(cause, "correct it, or spread records by their keys: -p -1")
        if known is None and not self._room.has(topic):
            self._create(record, topic)
        if count > 1:
            self._room.require(topic, count)
        self._counts[topic] = max(count, known or 0)
        return True

    def _create(self, record: Record, topic: str) -> None:
        source = record.topic
        if source is not None and source != topic and self._room.has(source):
            found = topics(self._cluster, [source], Failures())
            self._room.prepare(self._cluster, [TargetTopic(one, topic, 0) for one in found], by_key=True)
        if not self._room.has(topic):
            self._room.create(topic)
