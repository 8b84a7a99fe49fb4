"""Consumer groups: the list, one group, the groups of a topic.

Only the groups of the page that is shown are described, and their lag is asked for only when the page wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final, NamedTuple

from confluent_kafka import TopicPartition

from kpybroker.client.actions import seek
from kpybroker.client.actions.groups import (
    coordinator_id,
    describe_groups,
    describe_row,
    lags_of,
    list_groups,
    no_such_group,
    state_name,
    type_name,
)
from kpybroker.client.actions.lag import behind, committed
from kpybroker.client.actions.partitions import Place
from kpybroker.client.actions.queues import groups as queues
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, usage
from kpybroker.client.connect.groups.listing import SHARE, STREAMS
from kpybroker.client.connect.groups.raw_groups import RawMember
from kpybroker.client.records.offsets import Bounds
from kpybroker.console.queries.pages import Page, Query, by_keys, sorted_by
from kpybroker.console.queries.topics import PLACES_MAX, find, read_offsets

GROUPS_MAX: Final = 200
"""Groups whose offsets are asked for to find the readers of a topic, or those that lag."""
STATES: Final = (
    *("Stable", "Empty", "PreparingRebalance", "CompletingRebalance"),
    *("Assigning", "Reconciling", "NotReady", "Dead", "Unknown"),
)
TYPES: Final = ("classic", "consumer", SHARE, STREAMS)


class Filter(NamedTuple):
    """Which groups a list shows."""

    text: str = ""
    state: str = ""
    type: str = ""
    lag: str = ""
    """`1` shows it, `only` leaves those out that have none."""
    page: int = 1
    sort: str = "group"
    """A key of COLUMNS, with `-` before it for the largest first."""


COLUMNS: Final = ("group", "state", "type", "members", "coordinator", "lag")
ASKED: Final = frozenset(("members", "coordinator", "lag"))
"""Columns for which each group is asked, so that only GROUPS_MAX can be sorted by them."""


class Listed(NamedTuple):
    """One page of the list; `total` counts all groups. The first `asked` were asked, to leave some out or to sort."""

    rows: list[dict[str, Any]]
    page: Page
    total: int
    asked: int | None = None


Trend = Callable[[str], str]
"""Of a group's lag, as far as the console has seen it: one of TRENDS, or empty."""
TRENDS: Final = ("falls", "steady", "grows")


def listed(cluster: Cluster, wanted: Filter, failures: Failures, trend: Trend = lambda _: "") -> Listed:
    """The groups of one page. Raises CommandError."""

    def grown(name: str) -> int | None:
        return TRENDS.index(trend(name)) if trend(name) else None

    everything = list_groups(cluster, failures)
    names = sorted(
        name
        for name, group in everything.items()
        if wanted.text.lower() in name.lower()
        and wanted.state in ("", state_name(group))
        and wanted.type in ("", type_name(group))
    )
    key = wanted.sort.removeprefix("-")
    asked = min(len(names), GROUPS_MAX) if wanted.lag == "only" or key in ASKED else None
    if asked is None:
        by: dict[str, Callable[[str], Any]] = {
            "group": str,
            "state": lambda one: state_name(everything[one]),
            "type": lambda one: type_name(everything[one]),
            "trend": grown,
        }
        names = sorted_by(names, wanted.sort, by)
        page = Page.of(len(names), wanted.page)
        rows = _rows(cluster, names[page.first : page.last], everything, bool(wanted.lag), failures)
        return Listed(rows, page, len(everything))
    rows = _rows(cluster, names[:asked], everything, bool(wanted.lag) or key == "lag", failures)
    if wanted.lag == "only":
        rows = [row for row in rows if row["lag"] or row["unread_partitions"]]
    columns: dict[str, Callable[[dict[str, Any]], Any]] = by_keys(*COLUMNS)
    rows = sorted_by(rows, wanted.sort, columns | {"trend": lambda row: grown(row["group"])})
    page = Page.of(len(rows), wanted.page)
    return Listed(rows[page.first : page.last], page, len(everything), asked)


def _rows(
    cluster: Cluster, names: Sequence[str], everything: Mapping[str, Any], lags: bool, failures: Failures
) -> list[dict[str, Any]]:
    """A row for each group that can be described; `lag` is None where it is not wanted or not known."""
    found = describe_groups(cluster, list(names), failures)
    behind = lags_of(cluster, found, failures) if lags else {}
    rows = []
    for name in names:
        if name not in found:
            continue
        group = found[name]
        row: dict[str, Any] = {"group": name, "state": state_name(group), "type": type_name(everything[name])}
        row |= {"members": len(group.members), "coordinator": coordinator_id(group)}
        lag = behind.get(name)
        row |= {"lag": lag.lag, "unread_partitions": lag.unread} if lag else {"lag": None, "unread_partitions": None}
        rows.append(row)
    return rows


def _by(*names: str) -> dict[str, Callable[[Any], Any]]:
    """Columns that groups of some types have."""
    return {name: methodcaller("get", name) for name in names}


OF_OFFSETS: Final = _by("topic", "partition", "start_offset", "current_offset", "log_end_offset", "lag", "client_id")
OF_MEMBERS: Final = _by("member_id", "client_id", "host", "process_id", "member_epoch", "topics")


def described(cluster: Cluster, name: str) -> dict[str, Any]:
    """The group with its members and offsets, as `group describe` has it. Raises CommandError."""
    found = describe_groups(cluster, [name], _Raising())
    if name not in found:
        raise no_such_group(name)
    return describe_row(cluster, name, found[name])


class _Raising(Failures):
    """Of one group: a failure is that of the page."""

    def add(self, item: str, error: CommandError) -> dict[str, str]:
        """Raises it."""
        raise error


def lag(cluster: Cluster, name: str) -> int:
    """The lag of all that the group has read, or of all that a share group has. Raises CommandError."""
    if queues.is_share_group(cluster, name):
        return queues.lag_of(cluster, name).lag
    return behind(cluster, committed(cluster, name), {}).lag


# --- who reads a topic


class Readers(NamedTuple):
    """A row for each group with committed offsets of a topic, and for each consumer that has partitions of it now;
    `asked` of `total` groups were asked.
    """

    rows: list[dict[str, Any]]
    consumers: list[dict[str, Any]]
    asked: int
    total: int


OF_READERS: Final = ("group", "state", "partitions", "lag")
OF_CONSUMERS: Final = ("group", "client_id", "host", "partitions")


def readers(cluster: Cluster, name: str, wanted: Query, failures: Failures) -> Readers:
    """The groups that have committed offsets of the topic. Raises CommandError."""
    topic = find(cluster, name)
    if len(topic.partitions) > PLACES_MAX:
        raise usage(f"{name} has more than {PLACES_MAX} partitions", "look at one group: Groups")
    everything = list_groups(cluster, failures)
    names = sorted(name for name, group in everything.items() if type_name(group) != SHARE)[:GROUPS_MAX]
    parts = [TopicPartition(*partition.place) for partition in topic.partitions]
    edges = read_offsets(cluster, topic.partitions)
    rows = []
    for group, result, error in cluster.group_offsets(names, parts):
        if error is not None:
            failures.add(f"group {group}", error)
            continue
        offsets = {(p.topic, p.partition): p.offset for p in result.topic_partitions if not p.error and p.offset >= 0}
        if offsets:
            rows.append({"group": group, "state": state_name(everything[group]), **_behind(offsets, edges)})
    running = [name for name in sorted(everything) if state_name(everything[name]) not in IDLE][:GROUPS_MAX]
    rows = wanted.sorted("sort", rows, by_keys(*OF_READERS))
    consumers = _consumers(cluster, name, running, failures)
    consumers = wanted.sorted("sort_consumers", consumers, by_keys(*OF_CONSUMERS))
    return Readers(rows, consumers, len(names), len(everything))


IDLE: Final = frozenset(("Empty", "Dead"))
"""Groups in these states have no members."""


def _consumers(cluster: Cluster, topic: str, names: Sequence[str], failures: Failures) -> list[dict[str, Any]]:
    """The members of these groups that have partitions of the topic: their clients, hosts and partitions."""
    return [
        {
            "group": name,
            "client_id": member.client_id,
            "host": member.host.lstrip("/"),
            "partitions": numbers,
        }
        for name, group in describe_groups(cluster, names, failures).items()
        for member in group.members
        if (numbers := sorted(number for of, number in _assigned(member) if of == topic))
    ]


def _assigned(member: Any) -> Sequence[Place]:
    if isinstance(member, RawMember):
        return member.assignment
    parts = () if member.assignment is None else member.assignment.topic_partitions
    return [(one.topic, one.partition) for one in parts]


def _behind(offsets: Mapping[Place, int], edges: Mapping[Place, Bounds]) -> dict[str, int]:
    lags = [edges[place].end - offset for place, offset in offsets.items() if place in edges]
    unread = sum(place not in offsets and one.end > one.start for place, one in edges.items())
    return {"partitions": len(offsets), "lag": sum(lags), "unread_partitions": unread}


def require_empty(cluster: Cluster, group: str) -> None:
    """Raises CommandError for a group that has members, or that does not exist."""
    try:
        seek.require_empty(cluster, group, _Raising())
    except SystemExit:
        raise no_such_group(group) from None
