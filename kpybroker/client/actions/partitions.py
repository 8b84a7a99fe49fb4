"""Topics with their partitions and offsets, as several commands need them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka.admin import OffsetSpec

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import FIXES, CommandError, Failures, usage
from kpybroker.client.records.offsets import Bounds

T = TypeVar("T", int, Bounds)

Place = tuple[str, int]
"""A topic and a partition."""


class Partition(NamedTuple):
    """A partition as Metadata has it; `leader` is None for none."""

    topic: str
    number: int
    leader: int | None
    replicas: list[int]
    isr: list[int]

    @property
    def place(self) -> Place:
        """Topic and number."""
        return self.topic, self.number


class Topic(NamedTuple):
    """A topic as Metadata has it; `topic_id` is None where the broker is too old to have one."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: list[Partition]


NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
NUMBER_MAX = 999_999
"""Of a partition that is named: no cluster has so many of a topic."""
PARTITION_MAX = 2**31 - 1
PARTITIONS_MAX = 100_000
"""Of a new topic: librdkafka asks for no more."""
LEGAL_NAME = re.compile("[a-zA-Z0-9._-]{1,249}")
"""Of a topic."""


def topics(cluster: Cluster, names: Sequence[str], failures: Failures) -> list[Topic]:
    """The topics of these names, in their order; those that do not exist are failures."""
    legal = [name for name in dict.fromkeys(names) if LEGAL_NAME.fullmatch(name)]
    for name in dict.fromkeys(names):
        if not LEGAL_NAME.fullmatch(name):
            failures.add(
                f"topic {name}", CommandError("no topic can have this name", FIXES["UNKNOWN_TOPIC_OR_PARTITION"])
            )
    if not legal:
        return []
    described = cluster.results(cluster.admin.describe_topics(TopicCollection(legal), **cluster.timeout))
    found = {}
    for name, result, error in described:
        if error is not None:
            failures.add(f"topic {name}", error)
        else:
            found[name] = _topic(result)
    return [found[name] for name in legal if name in found]


def of_topics(cluster: Cluster, names: Iterable[str]) -> set[Place]:
    """All partitions of those topics that the cluster has and shows us. Raises CommandError if it cannot be reached.

    A member may claim partitions of any name. librdkafka refuses some of them, and waits for others.
    """
    legal = sorted({name for name in names if _can_be((name, 0))})
    if not legal:
        return set()
    found = cluster.results(cluster.admin.describe_topics(TopicCollection(legal), **cluster.timeout))
    return {place for _, topic, error in found if error is None for place in _places_of(topic)}


def _places_of(described: Any) -> list[Place]:
    return [(described.name, partition.id) for partition in described.partitions]


def _topic(described: Any) -> Topic:
    topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")  # Kafka's alphabet
    partitions = [
        Partition(described.name, p.id, _node_id(p.leader), _node_ids(p.replicas), _node_ids(p.isr))
        for p in sorted(described.partitions, key=lambda p: p.id)
    ]
    return Topic(described.name, None if topic_id == NO_ID else topic_id, described.is_internal, partitions)


def _node_id(node: Any) -> int | None:
    return None if node is None or node.id < 0 else int(node.id)


def _node_ids(nodes: Iterable[Any]) -> list[int]:
    return [node.id for node in nodes]


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that a shell pattern matches, sorted; all without patterns."""
    return sorted(name for name in names if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns))


def bounds(
    cluster: Cluster, places: Iterable[Place], *, committed_only: bool = False
) -> dict[Place, Bounds | CommandError]:
    """First offset and end of each partition; `committed_only`: the end of what a read_committed consumer sees."""
    wanted = list(places)
    starts = _list_offsets(cluster, dict.fromkeys(wanted, OffsetSpec.earliest()))
    level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
    ends = _list_offsets(cluster, dict.fromkeys(wanted, OffsetSpec.latest()), isolation_level=level)
    found: dict[Place, Bounds | CommandError] = {}
    for place in wanted:
        start, end = starts[place], ends[place]
        if isinstance(start, CommandError) or isinstance(end, CommandError):
            found[place] = start if isinstance(start, CommandError) else end  # type: ignore[assignment]
        else:
            found[place] = Bounds(start, end)
    return found


def first_offsets(cluster: Cluster, places: Iterable[Place]) -> dict[Place, int | CommandError]:
    """The first offset of each partition."""
    return _list_offsets(cluster, dict.fromkeys(places, OffsetSpec.earliest()))


def last_offsets(cluster: Cluster, places: Iterable[Place]) -> dict[Place, int | CommandError]:
    """The end of each partition."""
    return _list_offsets(cluster, dict.fromkeys(places, OffsetSpec.latest()))


def known(found: Mapping[Place, T | CommandError]) -> dict[Place, T]:
    """Those offsets, or bounds, that are known."""
    return {place: one for place, one in found.items() if not isinstance(one, CommandError)}


def at_timestamps(cluster: Cluster, times: Mapping[Place, int]) -> dict[Place, int | CommandError]:
    """The first offset whose timestamp is the given one or later; -1 for none."""
    return _list_offsets(cluster, {place: OffsetSpec.for_timestamp(time) for place, time in times.items()})


def time_lookup(cluster: Cluster, found: Mapping[Place, Bounds]) -> Callable[[Place, int], int]:
    """`at_time(place, timestamp)`, which gives the end for a time after the last record. Raises CommandError.

    All partitions are asked at once, the first time that a timestamp is.
    """
    cache: dict[int, dict[Place, int | CommandError]] = {}

    def at_time(place: Place, timestamp_ms: int) -> int:
        if timestamp_ms not in cache:
            cache[timestamp_ms] = at_timestamps(cluster, dict.fromkeys(found, timestamp_ms))
        offset = cache[timestamp_ms][place]
        if isinstance(offset, CommandError):
            raise offset
        return found[place].end if offset < 0 else offset

    return at_time


def _list_offsets(cluster: Cluster, specs: Mapping[Place, Any], **options: Any) -> dict[Place, int | CommandError]:
    request = {TopicPartition(*place): spec for place, spec in specs.items() if _can_be(place)}
    found: dict[Place, int | CommandError] = {
        place: CommandError("no topic has such a partition", FIXES["UNKNOWN_TOPIC_OR_PARTITION"])
        for place in specs
        if not _can_be(place)
    }
    if request:
        listed = cluster.results(cluster.admin.list_offsets(request, **cluster.timeout, **options))
        found |= {(part.topic, part.partition): error or result.offset for part, result, error in listed}
    return found


def _can_be(place: Place) -> bool:
    """Whether a topic may have this name, and this partition: librdkafka raises for some others."""
    return bool(LEGAL_NAME.fullmatch(place[0])) and 0 <= place[1] <= PARTITION_MAX


def parse_places(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """`TOPIC`, `TOPIC:0,1`, `TOPIC:0-3`, with commas: partitions by topic, None for all. Raises CommandError."""
    found: dict[str, list[int] | None] = {}
    current: str | None = None
    for part in (part.strip() for text in texts for part in [*text.split(","), ""]):
        name, colon, rest = part.partition(":")
        if not part:
            current = None
        elif colon:
            current = name
            found[name] = [*(found.get(name) or []), *_numbers(rest, part)]
        elif current is not None and part[0].isdigit() and part.replace("-", "").isdigit():
            found[current] = [*(found[current] or []), *_numbers(part, part)]
        else:
            current = None
            found[name] = None
    return found


def parse_partitions(texts: Iterable[str]) -> list[int]:
    """`0`, `0,2`, `0-3`, in any number. Raises CommandError."""
    return [number for text in texts for part in text.split(",") for number in _numbers(part.strip(), text)]


def _numbers(text: str, whole: str) -> list[int]:
    first, dash, last = text.partition("-")
    if not (_is_number(first) and (not dash or _is_number(last))):
        raise usage(f"{whole!r} does not name partitions", "write TOPIC, TOPIC:0, TOPIC:0,2 or TOPIC:0-3")
    if max(len(first), len(last)) > len(str(NUMBER_MAX)) or int(last or first) > NUMBER_MAX:
        raise usage(f"{whole[:100]!r} names a partition beyond {NUMBER_MAX}", "kpybroker topic describe shows them")
    return list(range(int(first), int(last if dash else first) + 1))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
