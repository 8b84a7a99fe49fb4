"""Topics: the list, and one topic with its partitions and consumers.

The list is one Metadata request. Offsets are asked only for the topics of the page that is shown, and for PLACES_MAX
partitions at most: a page with more shows no sizes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.clusters import log_dir_rows
from kpybroker.client.actions.partitions import Partition, Topic, bounds, known
from kpybroker.client.actions.topics import Offsets, list_row, partition_row
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import FIXES, CommandError, Failures, usage
from kpybroker.client.show.cells import Row
from kpybroker.console.queries.pages import ANYTHING, Page, Query, sorted_by

PLACES_MAX: Final = 2000


class Filter(NamedTuple):
    """Which topics a list shows: a part of their name, internal ones or not, only those with a problem."""

    text: str = ""
    internal: bool = False
    problems: bool = False
    page: int = 1
    sizes: bool = False
    """Ask the brokers how large the topics are. The first page that a browser shows does without."""
    sort: str = "name"
    """A key of COLUMNS, with `-` before it for the largest first."""


class Listed(NamedTuple):
    """A page of the list. `leaders` counts the partitions that each broker leads."""

    rows: list[dict[str, Any]]
    page: Page
    topics: int
    partitions: int
    under_replicated: int
    leaderless: int
    leaders: list[tuple[int, int]]
    read_at: float
    """When the end offsets were read, in seconds since 1970."""


Rate = Callable[[str], float | None]
"""The records a second of a topic, as far as the console has seen them."""


def listed(cluster: Cluster, wanted: Filter, failures: Failures, rate: Rate = lambda _: None) -> Listed:
    """The topics of one page, with what is true of all of them. Raises CommandError."""
    metadata = cluster.metadata()
    everything = all_topics(metadata)
    chosen = [topic for topic in everything if _is_wanted(topic, wanted)]
    by_size, by_records = (wanted.sort.removeprefix("-") == key for key in ("size", "records"))
    sizes = _sizes(cluster, failures) if wanted.sizes or by_size else None
    read_at = time.time()
    offsets: Offsets = {}
    if by_records:
        count = sum(len(topic.partitions) for topic in chosen)
        if count > PLACES_MAX:
            cause = f"these topics have {count} partitions, and of {PLACES_MAX} at most the records are asked for"
            raise usage(cause, "filter by name, or sort by another column")
        offsets = read_offsets(cluster, [p for topic in chosen for p in topic.partitions])
    chosen = sorted_by(chosen, wanted.sort, _columns(offsets, sizes) | {"rate": lambda topic: rate(topic.name)})
    page = Page.of(len(chosen), wanted.page)
    shown = chosen[page.first : page.last]
    if not by_records:
        offsets = read_offsets(cluster, [p for topic in shown for p in topic.partitions])
    partitions = [partition for topic in everything for partition in topic.partitions]
    leaders = Counter(partition.leader for partition in partitions if partition.leader is not None)
    return Listed(
        [
            {
                **list_row(topic, offsets),
                "end": end_of(topic, offsets),
                "size": None if sizes is None else sizes[topic.name],
            }
            for topic in shown
        ],
        page,
        len(everything),
        len(partitions),
        sum(len(partition.isr) < len(partition.replicas) for partition in partitions),
        sum(partition.leader is None for partition in partitions),
        sorted((broker, leaders[broker]) for broker in metadata.brokers),
        read_at,
    )


def _columns(offsets: Offsets, sizes: Mapping[str, int] | None) -> dict[str, Callable[[Topic], Any]]:
    """What a list can be sorted by."""
    return {
        "name": lambda topic: topic.name,
        "partitions": lambda topic: len(topic.partitions),
        "replicas": lambda topic: max((len(p.replicas) for p in topic.partitions), default=0),
        "records": lambda topic: list_row(topic, offsets)["records"],
        "size": lambda topic: None if sizes is None else sizes.get(topic.name, 0),
        "isr": lambda topic: sum(len(p.replicas) - len(p.isr) + (p.leader is None) * 1000 for p in topic.partitions),
    }


def _sizes(cluster: Cluster, failures: Failures) -> Counter[str]:
    """Bytes of all replicas of each topic."""
    sizes: Counter[str] = Counter()
    with cluster.wire() as wire:
        for row in log_dir_rows(wire, sorted(wire.nodes), failures)[1]:
            sizes[row["topic"]] += row["size"]
    return sizes


def _is_wanted(topic: Topic, wanted: Filter) -> bool:
    if wanted.text.lower() not in topic.name.lower() or (topic.is_internal and not wanted.internal):
        return False
    return not wanted.problems or any(p.leader is None or len(p.isr) < len(p.replicas) for p in topic.partitions)


def all_topics(metadata: Any) -> list[Topic]:
    """Every topic, by name; `is_internal` by the name, since Metadata of librdkafka does not say."""
    return [_topic(name, found) for name, found in sorted(metadata.topics.items())]


def _topic(name: str, found: Any) -> Topic:
    partitions = [_partition(name, one) for _, one in sorted(found.partitions.items())]
    return Topic(name, None, name.startswith("__"), partitions)


def _partition(topic: str, found: Any) -> Partition:
    leader = None if found.leader < 0 else found.leader
    return Partition(topic, found.id, leader, list(found.replicas), list(found.isrs))


def read_offsets(cluster: Cluster, partitions: Sequence[Partition]) -> Offsets:
    """First and end offset of those with a leader; none if they are more than PLACES_MAX."""
    places = [partition.place for partition in partitions if partition.leader is not None]
    return known(bounds(cluster, places)) if len(places) <= PLACES_MAX else {}


def end_of(topic: Topic, offsets: Offsets) -> int | None:
    """The sum of the end offsets, whose growth is the topic's rate; None if one is unknown."""
    ends = [offsets[p.place].end for p in topic.partitions if p.place in offsets]
    return sum(ends) if len(ends) == len(topic.partitions) else None


OF_OFFSETS: Final = ("log_start_offset", "log_end_offset")


def _of_partitions(offsets: Offsets) -> dict[str, Callable[[Partition], Any]]:
    """What the partitions of a topic can be sorted by."""
    return {
        "partition": lambda one: one.number,
        "leader": lambda one: one.leader,
        "replicas": lambda one: one.replicas,
        "isr": lambda one: (len(one.isr) - len(one.replicas), one.isr),
        "log_start_offset": lambda one: offsets[one.place].start if one.place in offsets else None,
        "log_end_offset": lambda one: offsets[one.place].end if one.place in offsets else None,
    }


class NoTopic(CommandError):
    """There is no such topic, or the user may not describe it."""


class Described(NamedTuple):
    """One topic, with one page of its partitions."""

    head: dict[str, Any]
    partitions: list[Row]
    page: Page
    leaders: list[tuple[int, int]]


def described(cluster: Cluster, name: str, page_number: int, wanted: Query = ANYTHING) -> Described:
    """A topic. Raises NoTopic; CommandError where its partitions cannot be sorted as `wanted` has it."""
    topic = find(cluster, name)
    page = Page.of(len(topic.partitions), page_number)
    is_small = len(topic.partitions) <= PLACES_MAX
    offsets = read_offsets(cluster, topic.partitions) if is_small else {}
    if not is_small and wanted.sorts.get("sort", "").removeprefix("-") in OF_OFFSETS:
        cause = f"{name} has {len(topic.partitions)} partitions, and of {PLACES_MAX} at most the offsets are asked for"
        raise usage(cause, "sort by another column")
    shown = wanted.sorted("sort", topic.partitions, _of_partitions(offsets))[page.first : page.last]
    if not is_small:
        offsets = read_offsets(cluster, shown)
    read_at = time.time()
    leaders = Counter(p.leader for p in topic.partitions if p.leader is not None)
    brokers = sorted({broker for p in topic.partitions for broker in p.replicas})
    return Described(
        {**list_row(topic, offsets), "end": end_of(topic, offsets), "read_at": read_at},
        [{**partition_row(p, offsets), "preferred": p.leader == p.replicas[0]} for p in shown],
        page,
        [(broker, leaders[broker]) for broker in brokers],
    )


def find(cluster: Cluster, name: str) -> Topic:
    """A topic without creating it. Raises NoTopic."""
    found = cluster.topic(name)
    if found is not None:
        return _topic(name, found)
    fix = f"{FIXES['UNKNOWN_TOPIC_OR_PARTITION']}; one that this user may not describe is hidden"
    raise NoTopic(f"there is no topic {name}", fix)


def places(topic: Topic, numbers: Iterable[int] = ()) -> list[tuple[str, int]]:
    """Partitions with a leader: those of `numbers`, or all."""
    wanted = set(numbers)
    return [p.place for p in topic.partitions if p.leader is not None and (not wanted or p.number in wanted)]


def end_offset(cluster: Cluster, name: str) -> tuple[int | None, float]:
    """The sum of the end offsets, None if one is unknown; and when it was read, in seconds since 1970."""
    topic = find(cluster, name)
    offsets = read_offsets(cluster, topic.partitions)
    return end_of(topic, offsets), time.time()
