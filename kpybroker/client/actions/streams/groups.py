"""Streams groups for `group describe` and the console: rows as those of other groups, with topology and tasks.

A task is a subtopology and a partition, such as 0_1. What the active tasks read is what a member "has" of the offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kpybroker.client.actions.lag import Behind, behind, committed, places_of
from kpybroker.client.actions.partitions import of_topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.groups import streams_groups
from kpybroker.client.connect.groups.listing import STREAMS, can_ask
from kpybroker.client.connect.groups.raw_groups import RawGroup, RawMember
from kpybroker.client.connect.groups.streams_groups import StreamsMember, Tasks
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output

NOT_READY: Final = "NotReady"
"""The state of a group whose topics are missing, or do not fit."""
MEMBERS: Final = (
    Column("MEMBER-ID", "member_id"),
    Column("CLIENT-ID", "client_id"),
    Column("HOST", "host"),
    Column("PROCESS-ID", "process_id", wide=True),
    Column("ENDPOINT", "endpoint", wide=True),
    Column("RACK", "rack_id", wide=True),
    Column("EPOCH", "member_epoch"),
    Column("TOPOLOGY-EPOCH", "topology_epoch", wide=True),
    Column("TASKS", lambda row: tasks_cell(row["tasks"])),
    Column(
        "TARGET",
        lambda row: tasks_cell(row["target_tasks"]),
        style=lambda row: "yellow" if row["target_tasks"] != row["tasks"] else "",
    ),
)
SUBTOPOLOGIES: Final = (
    Column("SUBTOPOLOGY", "subtopology"),
    Column("SOURCES", "source_topics"),
    Column("REPARTITION", "repartition_topics"),
    Column("CHANGELOGS", "changelog_topics"),
)


def described(cluster: Cluster, names: Sequence[str]) -> Mapping[str, RawGroup | CommandError]:
    """Those of these names that are streams groups, or why that is not known."""
    try:
        if not names or not can_ask(cluster.settings):
            return {}
        with cluster.wire() as wire:
            return streams_groups.describe(wire, names)
    except CommandError as error:
        return dict.fromkeys(names, error)


def describe_row(cluster: Cluster, name: str, group: RawGroup) -> dict[str, Any]:
    """A described streams group with its topology, its members, and the lag of its partitions. Raises CommandError."""
    members = [_member_row(cluster, one) for one in group.members]
    found = behind(cluster, committed(cluster, name), places_of(members))
    return {
        "group": name,
        "state": group.state,
        "type": STREAMS,
        "protocol_type": STREAMS,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.streams.topology_epoch,
        "assignor": group.partition_assignor,
        "coordinator": group.coordinator_id,
        "subtopologies": [
            {
                "subtopology": one.name,
                "source_topics": one.source_topics,
                "repartition_topics": one.repartition_topics,
                "changelog_topics": one.changelog_topics,
            }
            for one in group.streams.subtopologies
        ],
        "members": members,
        "lag": found.lag,
        "unread_partitions": found.unread,
        "offsets": found.rows,
    }


def lag_of(cluster: Cluster, name: str, group: RawGroup) -> Behind:
    """How far it is behind, with what its members have. Raises CommandError."""
    return behind(cluster, committed(cluster, name), places_of([_member_row(cluster, one) for one in group.members]))


def _member_row(cluster: Cluster, member: RawMember) -> dict[str, Any]:
    there = set(of_topics(cluster, {topic for topic, _ in member.assignment}))
    of_streams: StreamsMember = member.streams
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.host.lstrip("/"),
        "process_id": of_streams.process_id,
        "endpoint": of_streams.endpoint or None,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "topology_epoch": of_streams.topology_epoch,
        "tasks": _tasks(of_streams.tasks),
        "target_tasks": _tasks(of_streams.target_tasks),
        "assignment": [{"topic": t, "partition": p} for t, p in member.assignment if (t, p) in there],
    }


def _tasks(tasks: Tasks) -> dict[str, list[str]]:
    return tasks._asdict()


def tasks_cell(tasks: Mapping[str, Sequence[str]]) -> list[str]:
    """The active tasks, then the others with their kind."""
    others = [f"{name} ({kind})" for kind in ("standby", "warmup") for name in tasks[kind]]
    return [*tasks["active"], *others]


def summary(row: Row) -> list[tuple[str, Any]]:
    """The head of `group describe`."""
    return [
        ("GROUP", row["group"]),
        ("STATE", row["state"]),
        ("TYPE", row["type"]),
        ("ASSIGNOR", row["assignor"]),
        ("EPOCH", row["group_epoch"]),
        ("TARGET-EPOCH", row["assignment_epoch"]),
        ("TOPOLOGY-EPOCH", row["topology_epoch"]),
        ("COORDINATOR", row["coordinator"]),
        ("MEMBERS", len(row["members"])),
        ("LAG", row["lag"]),
        *([("UNREAD", row["unread_partitions"])] if row["unread_partitions"] else []),
    ]


def sections(row: Row, members: bool, output: Output) -> list[str]:
    """The topology, and the members with their tasks."""
    parts = [output.text(row["subtopologies"], SUBTOPOLOGIES)] if row["subtopologies"] else []
    return [*parts, output.text(row["members"], MEMBERS)] if members and row["members"] else parts
