"""Consumer groups: the list, one group, the groups of a topic, and moving a group's offsets.

Only the groups of the page that is shown are described, and their lag is asked for only when the page wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from confluent_kafka import TopicPartition

from kpybroker.client.actions import seek
from kpybroker.client.actions.groups import (
    coordinator_id,
    delete_offsets,
    describe_groups,
    describe_row,
    is_wanted,
    lags_of,
    list_groups,
    no_such_group,
    state_name,
    type_name,
)
from kpybroker.client.actions.lag import behind, committed
from kpybroker.client.actions.partitions import Place, parse_places
from kpybroker.client.actions.queues import groups as queues
from kpybroker.client.actions.seek import SeekOptions
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, usage
from kpybroker.client.connect.groups.listing import SHARE, STREAMS
from kpybroker.client.records.offsets import Bounds
from kpybroker.console.queries.pages import Page, sorted_by
from kpybroker.console.queries.topics import PLACES_MAX, find, read_offsets

GROUPS_MAX: Final = 200
"""Groups whose offsets are asked for to find the readers of a topic, or those that lag."""
STATES: Final = (
    *("Stable", "Empty", "PreparingRebalance", "CompletingRebalance"),
    *("Assigning", "Reconciling", "NotReady", "Dead", "Unknown"),
)
TYPES: Final = ("classic", "consumer", SHARE, STREAMS)
TARGETS: Final = ("start", "end", "offset", "shift", "time")


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


def listed(cluster: Cluster, wanted: Filter, failures: Failures) -> Listed:
    """The groups of one page. Raises CommandError."""
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
        }
        names = sorted_by(names, wanted.sort, by)
        page = Page.of(len(names), wanted.page)
        rows = _rows(cluster, names[page.first : page.last], everything, bool(wanted.lag), failures)
        return Listed(rows, page, len(everything))
    rows = _rows(cluster, names[:asked], everything, bool(wanted.lag) or key == "lag", failures)
    if wanted.lag == "only":
        rows = [row for row in rows if row["lag"] or row["unread_partitions"]]
    rows = sorted_by(rows, wanted.sort, {one: itemgetter(one) for one in COLUMNS})
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
    """A row for each group with committed offsets of a topic; `asked` of `total` groups were asked."""

    rows: list[dict[str, Any]]
    asked: int
    total: int


def readers(cluster: Cluster, name: str, failures: Failures) -> Readers:
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
    return Readers(rows, len(names), len(everything))


def _behind(offsets: Mapping[Place, int], edges: Mapping[Place, Bounds]) -> dict[str, int]:
    lags = [edges[place].end - offset for place, offset in offsets.items() if place in edges]
    unread = sum(place not in offsets and one.end > one.start for place, one in edges.items())
    return {"partitions": len(offsets), "lag": sum(lags), "unread_partitions": unread}


# --- move


def options(to: str, at: str, topics: str) -> SeekOptions:
    """What the form asks for. Raises CommandError."""
    if to not in TARGETS:
        raise usage(f"{to[:50]!r} is no place to move to", f"one of {', '.join(TARGETS)}")
    text = {"start": "start", "end": "end", "offset": at, "shift": at, "time": f"@{at.removeprefix('@')}"}[to].strip()
    if to == "offset" and not (text.isascii() and text.isdigit()):
        raise usage(f"{text[:50]!r} is no offset", "write a number such as 120; a shift is +5 or -5")
    if to == "shift" and not seek.SHIFT.fullmatch(text):
        raise usage(f"{text[:50]!r} is no shift", "write +5 or -5")
    wanted = SeekOptions(text, topics=[topics] if topics.strip() else [])
    seek.check_options(wanted)
    return wanted


def preview(cluster: Cluster, group: str, wanted: SeekOptions, failures: Failures) -> list[dict[str, Any]]:
    """From where to where each partition would move. Raises CommandError, also for a group with members."""
    require_empty(cluster, group)
    return seek.preview(cluster, group, wanted, failures)


def move(cluster: Cluster, group: str, rows: Sequence[dict[str, Any]], failures: Failures) -> list[dict[str, Any]]:
    """Commit exactly what a preview showed. Raises CommandError where the group has moved since."""
    require_empty(cluster, group)
    now = seek.current(cluster, group)
    for row in rows:
        if now.get((row["topic"], row["partition"])) != row["from"]:
            where = f"{row['topic']}-{row['partition']}"
            raise CommandError(f"{where} was committed since the preview", "look at the preview again")
    is_shared = queues.is_share_group(cluster, group)
    moved = [{**row, "status": seek.status_of(row, is_shared=is_shared), "error": None} for row in rows]
    seek.commit(cluster, group, moved, failures)
    return moved


# --- forget


def committed_rows(cluster: Cluster, group: str, topics: str) -> list[dict[str, Any]]:
    """The committed offsets of the topics and partitions, or all of them for an empty text. Raises CommandError."""
    if queues.is_share_group(cluster, group):
        fix = f"kpybroker group offset-delete {group} -t TOPIC forgets what the group knows of a topic"
        raise CommandError(f"{group} is a share group: it has start offsets, and commits none", fix)
    wanted = parse_places([topics]) if topics.strip() else None
    return [
        {"topic": place[0], "partition": place[1], "offset": offset, "status": "would be deleted"}
        for place, offset in sorted(committed(cluster, group).items())
        if wanted is None or is_wanted(place, wanted)
    ]


def forget(cluster: Cluster, group: str, rows: Sequence[dict[str, Any]], failures: Failures) -> list[dict[str, Any]]:
    """Delete exactly the offsets that a preview showed. Raises CommandError where one has moved since."""
    now = committed(cluster, group)
    for row in rows:
        if now.get((row["topic"], row["partition"])) != row["offset"]:
            where = f"{row['topic']}-{row['partition']}"
            raise CommandError(f"{where} was committed since the preview", "look at the preview again")
    deleted = [dict(row) for row in rows]
    with cluster.wire() as wire:
        delete_offsets(wire, group, deleted, failures)
    return deleted


def require_empty(cluster: Cluster, group: str) -> None:
    """Raises CommandError for a group that has members, or that does not exist."""
    try:
        seek.require_empty(cluster, group, _Raising())
    except SystemExit:
        raise no_such_group(group) from None
