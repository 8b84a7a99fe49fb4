"""How far a group is behind: the lag of each of its partitions, and how many of its topics it has never read.

As in Kafka's own tool, a partition without a committed offset has no lag: where the group would begin, only its
consumers know. It is not left out of a sum in silence either: it is counted as unread, if it has records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions

from kpybroker.client.actions.partitions import Place, bounds, known, of_topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.show.cells import Row


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
    parts = cluster.result(futures[group]).topic_partitions
    return {(part.topic, part.partition): part.offset for part in parts if part.error is None and part.offset >= 0}


def behind(cluster: Cluster, offsets: Mapping[Place, int], owners: Mapping[Place, Row]) -> Behind:
    """How far a group with these offsets, and with members that have these partitions, is behind."""
    places = sorted({*offsets, *owners})
    edges = known(bounds(cluster, sorted(of_topics(cluster, (topic for topic, _ in places)))))
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
