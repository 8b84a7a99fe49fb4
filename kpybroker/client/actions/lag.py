"""How far a group is behind: the lag of each of its partitions, and how many of its topics it has never read.

As in Kafka's own tool, a partition without a committed offset has no lag: where the group would begin, only its
consumers know. It is not left out of a sum in silence either: it is counted as unread, if it has records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions

from kpybroker.client.actions.partitions import Place, bounds, first_offsets, known, last_offsets, of_topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.show.cells import Row

T = TypeVar("T", int, Bounds)

ASKED_MAX: Final = 1000
"""Partitions of one request: what it takes, and the values of its response, stay small."""


class Lag(NamedTuple):
    """Of a group: the sum of its partitions whose lag is known, and `unread` as `Behind` has it."""

    lag: int
    unread: int


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
    places = of_topics(cluster, {topic for topic, _ in (*offsets, *owners)})
    return _behind(offsets, owners, _in_parts(cluster, places, bounds))


def lags_by_group(cluster: Cluster, owners: Mapping[str, Iterable[Place]], failures: Failures) -> dict[str, Lag | None]:
    """The lag of each of these groups, whose members have these partitions; None where it is not known.

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
    topics = {name: {topic for topic, _ in (*of_group, *owners[name])} for name, of_group in offsets.items()}
    ends = _in_parts(cluster, of_topics(cluster, {topic for named in topics.values() for topic in named}), last_offsets)
    with_records: dict[str, list[Place]] = {}
    for place, end in ends.items():
        if end > 0:
            with_records.setdefault(place[0], []).append(place)
    uncommitted = {
        name: [place for topic in topics[name] for place in with_records.get(topic, ()) if place not in of_group]
        for name, of_group in offsets.items()
    }
    starts = _in_parts(cluster, {place for places in uncommitted.values() for place in places}, first_offsets)
    return dict.fromkeys(owners) | {
        name: Lag(
            sum(ends[place] - offset for place, offset in of_group.items() if place in ends),
            sum(place in starts and ends[place] > starts[place] for place in uncommitted[name]),
        )
        for name, of_group in offsets.items()
    }


def _in_parts(
    cluster: Cluster,
    places: Iterable[Place],
    ask: Callable[[Cluster, Sequence[Place]], Mapping[Place, T | CommandError]],
) -> dict[Place, T]:
    """What is known of these partitions, which are asked for in parts."""
    wanted = sorted(places)
    found: dict[Place, T] = {}
    for first in range(0, len(wanted), ASKED_MAX):
        found |= known(ask(cluster, wanted[first : first + ASKED_MAX]))
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
