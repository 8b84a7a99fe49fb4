"""How far a group is behind: the lag of each of its partitions, and how many of its topics it has never read.

As in Kafka's own tool, a partition without a committed offset has no lag: where the group would begin, only its
consumers know. It is not left out of a sum in silence either: it is counted as unread, if it has records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions

from kpybroker.client.actions.partitions import Place, bounds, known, of_topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.show.cells import Row

ASKED_MAX: Final = 1000
"""Partitions of one request: what it takes, and the values of its response, stay small."""


class Behind(NamedTuple):
    """A row for each partition that has a committed offset or a member; lag is None where it is unknown.

    `unread`: partitions of their topics that have records, and no committed offset.
    """

    rows: list[dict[str, Any]]
    unread: int

    @property
    def lag(self) -> int:
        """Of the partitions whose lag is known."""
        return sum(row["lag"] for row in self.rows if row["lag"] is not None)


def committed(cluster: Cluster, group: str) -> dict[Place, int]:
    """The group's committed offsets. Raises CommandError."""
    request = [ConsumerGroupTopicPartitions(group)]
    futures = cluster.admin.list_consumer_group_offsets(request, **cluster.timeout)
    return _offsets_of(cluster.result(futures[group]))


def _offsets_of(found: Any) -> dict[Place, int]:
    parts = found.topic_partitions
    return {(part.topic, part.partition): part.offset for part in parts if part.error is None and part.offset >= 0}


def behind(cluster: Cluster, offsets: Mapping[Place, int], owners: Mapping[Place, Row]) -> Behind:
    """How far a group with these offsets, and with members that have these partitions, is behind."""
    return _behind(offsets, owners, _edges(cluster, {topic for topic, _ in (*offsets, *owners)}))


def behind_all(
    cluster: Cluster, owners: Mapping[str, Mapping[Place, Row]], failures: Failures
) -> dict[str, Behind | None]:
    """How far each of these groups is behind, by what its members have; None where that is not known.

    All offsets are asked for together. Raises CommandError if the cluster cannot be reached.
    """
    if not owners:
        return {}
    offsets: dict[str, dict[Place, int]] = {}
    for name, found, error in cluster.group_offsets(owners):
        if error is not None:
            failures.add(f"group {name}", error)
        else:
            offsets[name] = _offsets_of(found)
    edges = _edges(cluster, {topic for name, of_group in offsets.items() for topic, _ in (*of_group, *owners[name])})
    by_topic: dict[str, dict[Place, Bounds]] = {}
    for place, one in edges.items():
        by_topic.setdefault(place[0], {})[place] = one
    behind_by_name: dict[str, Behind | None] = dict.fromkeys(owners)
    for name, of_group in offsets.items():
        of_its_topics: dict[Place, Bounds] = {}
        for topic in {topic for topic, _ in (*of_group, *owners[name])}:
            of_its_topics |= by_topic.get(topic, {})
        behind_by_name[name] = _behind(of_group, owners[name], of_its_topics)
    return behind_by_name


def _edges(cluster: Cluster, topics: Iterable[str]) -> dict[Place, Bounds]:
    """First and end offset of all partitions of the topics that there are, asked for in parts."""
    places = sorted(of_topics(cluster, topics))
    found: dict[Place, Bounds] = {}
    for first in range(0, len(places), ASKED_MAX):
        found |= known(bounds(cluster, places[first : first + ASKED_MAX]))
    return found


def _behind(offsets: Mapping[Place, int], owners: Mapping[Place, Row], edges: Mapping[Place, Bounds]) -> Behind:
    places = sorted({*offsets, *owners})
    rows = [_row(place, offsets.get(place), edges.get(place), owners.get(place, {})) for place in places]
    return Behind(rows, sum(place not in offsets and one.end > one.start for place, one in edges.items()))


def _row(place: Place, current: int | None, edges: Bounds | None, owner: Row) -> dict[str, Any]:
    return {
        "topic": place[0],
        "partition": place[1],
        "current_offset": current,
        "log_start_offset": edges.start if edges else None,
        "log_end_offset": edges.end if edges else None,
        "lag": edges.end - current if edges and current is not None else None,
        **{key: owner.get(key) for key in ("member_id", "instance_id", "client_id", "host")},
    }


def places_of(members: Sequence[Row]) -> dict[Place, Row]:
    """Which member has a partition."""
    return {(one["topic"], one["partition"]): member for member in members for one in member["assignment"]}
