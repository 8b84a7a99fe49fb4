"""Brokers, their log directories, and which replicas are behind their leaders.

How far a replica is behind is what its broker says of it in DescribeLogDirs. A cluster has many replicas, so pages show
the largest and the furthest behind, ROWS_MAX of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.clusters import log_dir_rows, overview
from kpybroker.client.actions.partitions import Partition
from kpybroker.client.actions.placement import asking
from kpybroker.client.actions.placement.moves import move_rows
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.wire import WireCluster, WireError
from kpybroker.client.show.cells import Row
from kpybroker.console.queries.pages import Query, by_keys
from kpybroker.console.queries.topics import all_topics

ROWS_MAX: Final = 50

Rows = list[dict[str, Any]]
Columns = dict[str, Callable[[Any], Any]]

OF_BROKERS: Final[Columns] = {
    **by_keys("broker", "rack", "looks_like", "replicas", "disk", "usable"),
    "address": lambda row: (row["host"], row["port"]),
}
"""What each list is sorted by."""
OF_DIRECTORIES: Final[Columns] = {
    **by_keys("directory", "broker", "replicas", "size", "total", "usable"),
    "status": lambda row: "online" if row["error"] is None else "offline",
}
_PLACE: Final[Columns] = {"partition": lambda row: (row["topic"], row["partition"])}
OF_REPLICAS: Final[Columns] = {**by_keys("broker", "size", "directory"), **_PLACE}
OF_REPLICATION: Final[Columns] = {
    **by_keys("broker", "leads", "preferred", "replicas"),
    "not_in_sync": lambda row: row["replicas"] - row["in_sync"],
}
OF_MOVES: Final[Columns] = {**by_keys("replicas", "adding", "removing", "copied", "size"), **_PLACE}
OF_PROBLEMS: Final[Columns] = {
    "partition": lambda one: one.place,
    "leader": lambda one: one.leader,
    "replicas": lambda one: one.replicas,
    "isr": lambda one: (len(one.isr) - len(one.replicas), one.isr),
}
OF_BEHIND: Final[Columns] = {**by_keys("broker", "offset_lag"), **_PLACE}


def described(cluster: Cluster, failures: Failures) -> dict[str, Any]:
    """The cluster with a row for each broker, and its log directories; `disk` is the size of a broker's replicas, None
    if it does not say.
    """
    with cluster.wire() as wire:
        found = overview(wire, failures)
        directories, _ = log_dir_rows(wire, sorted(wire.nodes), failures)
    for row in found["brokers"]:
        own = [one for one in directories if one["broker"] == row["broker"]]
        row["disk"] = sum(one["size"] for one in own) if own else None
        row["usable"] = _sum(one["usable"] for one in own)
        row["replicas"] = sum(one["replicas"] for one in own) if own else None
        row["offline"] = sum(one["error"] is not None for one in own)
    found["directories"] = directories
    return found


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Directories(NamedTuple):
    """A row for each log directory, and the first ROWS_MAX replicas of `total`: the largest, or as they are sorted."""

    rows: Rows
    largest: Rows
    total: int


def directories(cluster: Cluster, wanted: Query, failures: Failures) -> Directories:
    """The log directories of all brokers, and the largest replicas of topics with this name. Raises CommandError."""
    with cluster.wire() as wire:
        rows, replicas = log_dir_rows(wire, sorted(wire.nodes), failures)
    rows = wanted.sorted("sort", rows, OF_DIRECTORIES)
    chosen = [row for row in replicas if wanted.text in row["topic"].lower()]
    chosen.sort(key=lambda row: -row["size"])
    largest = wanted.sorted("sort_replicas", chosen, OF_REPLICAS)
    return Directories(rows, largest[:ROWS_MAX], len(chosen))


class Replication(NamedTuple):
    """A row for each broker; partitions with a problem, the worst first, the replicas that are behind, and the moves
    that are under way, None where it is not known.
    """

    brokers: Rows
    problems: list[Partition]
    problem_count: int
    behind: Rows
    partitions: int
    moves: list[Row] | None = None


def replication(cluster: Cluster, wanted: Query, failures: Failures) -> Replication:
    """Who leads, who follows, and who is behind, of topics with this name. Raises CommandError."""
    metadata = cluster.metadata()
    partitions = [partition for topic in all_topics(metadata) for partition in topic.partitions]
    with cluster.wire() as wire:
        _, replicas = log_dir_rows(wire, sorted(wire.nodes), failures)
        moving = _moves(wire, wanted, failures)
    leads = Counter(p.leader for p in partitions)
    preferred = Counter(p.replicas[0] for p in partitions if p.replicas)
    hosts = Counter(broker for p in partitions for broker in p.replicas)
    in_sync = Counter(broker for p in partitions for broker in p.isr)
    ids = sorted({*metadata.brokers, *hosts})
    rows = [
        {
            "broker": one,
            "is_up": one in metadata.brokers,
            "leads": leads[one],
            "preferred": preferred[one],
            "replicas": hosts[one],
            "in_sync": in_sync[one],
        }
        for one in ids
    ]
    rows = wanted.sorted("sort", rows, OF_REPLICATION)
    problems = [p for p in partitions if wanted.text in p.topic.lower() and _is_problem(p)]
    problems.sort(key=lambda p: (p.leader is not None, len(p.isr) - len(p.replicas), p.place))
    problems = wanted.sorted("sort_problems", problems, OF_PROBLEMS)
    late = [row for row in replicas if wanted.text in row["topic"].lower() and row["offset_lag"] > 0]
    late.sort(key=lambda row: -row["offset_lag"])
    behind = wanted.sorted("sort_behind", late, OF_BEHIND)
    return Replication(rows, problems[:ROWS_MAX], len(problems), behind[:ROWS_MAX], len(partitions), moving)


def _is_problem(partition: Partition) -> bool:
    return partition.leader is None or len(partition.isr) < len(partition.replicas)


def _moves(wire: WireCluster, wanted: Query, failures: Failures) -> list[Row] | None:
    try:
        found = move_rows(wire, asking.moves(wire), failures)
    except WireError:
        raise
    except CommandError as error:
        failures.add("moves under way", error)
        return None
    chosen = [row for row in found if wanted.text in str(row["topic"]).lower()]
    return wanted.sorted("sort_moves", chosen, OF_MOVES)[:ROWS_MAX]
