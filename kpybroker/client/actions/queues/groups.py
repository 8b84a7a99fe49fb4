"""Share groups for `group describe`, `seek`, `offset-delete` and the console: rows as those of other groups.

A partition's start offset is where it begins: everything below was processed. Its lag is what waits or is in flight, as
the coordinator counts it: records above the start offset may be done already, so it is not a difference of offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kpybroker.client.actions.lag import Behind
from kpybroker.client.actions.partitions import Place, bounds, known, parse_places
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, usage
from kpybroker.client.connect.groups.listing import SHARE, can_ask
from kpybroker.client.connect.groups.raw_groups import RawGroup, RawMember
from kpybroker.client.share import groups as share
from kpybroker.client.share.groups import ShareOffset
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output

OFFSETS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("START-OFFSET", "start_offset"),
    Column("LOG-START-OFFSET", "log_start_offset", wide=True),
    Column("LOG-END-OFFSET", "log_end_offset"),
    Column("LAG", "lag", style=lambda row: "yellow" if row["lag"] else ""),
)
MEMBERS: Final = (
    Column("MEMBER-ID", "member_id"),
    Column("CLIENT-ID", "client_id"),
    Column("HOST", "host"),
    Column("RACK", "rack_id", wide=True),
    Column("EPOCH", "member_epoch"),
    Column("SUBSCRIPTION", "topics"),
    Column("PARTITIONS", lambda row: [f"{one['topic']}:{one['partition']}" for one in row["assignment"]]),
)
DELETED: Final = (
    Column("TOPIC", "topic"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


def described(cluster: Cluster, names: Sequence[str]) -> Mapping[str, RawGroup | CommandError]:
    """Those of these names that are share groups, or why that is not known."""
    try:
        if not names or not can_ask(cluster.settings):
            return {}
        with cluster.wire() as wire:
            return share.describe(wire, names)
    except CommandError as error:
        return dict.fromkeys(names, error)


def is_share_group(cluster: Cluster, name: str) -> bool:
    """Whether this is a share group. Raises CommandError if that is not known."""
    if not can_ask(cluster.settings):
        return False
    with cluster.wire() as wire:
        found = share.describe(wire, [name]).get(name)
    if isinstance(found, CommandError):
        raise found
    return found is not None


def describe_row(cluster: Cluster, name: str, group: RawGroup) -> dict[str, Any]:
    """A described share group with its members, start offsets and lag. Raises CommandError."""
    found = _offsets(cluster, name)
    edges = known(bounds(cluster, [(one.topic, one.partition) for one in found]))
    rows = [_offset_row(one, edges.get((one.topic, one.partition))) for one in found]
    counted = [row["lag"] for row in rows if row["lag"] is not None]
    return {
        "group": name,
        "state": group.state,
        "type": SHARE,
        "protocol_type": SHARE,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.partition_assignor or None,
        "coordinator": group.coordinator_id,
        "members": [_member_row(one) for one in group.members],
        "lag": sum(counted) if counted else None,
        "unread_partitions": sum(row["lag"] is None for row in rows),
        "offsets": rows,
    }


def lag_of(cluster: Cluster, name: str) -> Behind:
    """The lag of a share group; `unread` are the partitions whose lag is not known. Raises CommandError."""
    rows = [_offset_row(one, None) for one in _offsets(cluster, name)]
    return Behind(rows, sum(row["lag"] is None for row in rows))


def _offsets(cluster: Cluster, name: str) -> list[ShareOffset]:
    with cluster.wire() as wire:
        return share.offsets(wire, name)


def _offset_row(one: ShareOffset, edges: Any) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "start_offset": one.start_offset,
        "log_start_offset": edges.start if edges else None,
        "log_end_offset": edges.end if edges else None,
        "lag": one.lag,
        "error": None if one.error is None else one.error.cause,
    }


def _member_row(member: RawMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host.lstrip("/"),
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "topics": member.topics,
        "assignment": [{"topic": topic, "partition": partition} for topic, partition in member.assignment],
    }


def sections(row: Row, members: bool, only_lag: bool, output: Output) -> list[str]:
    """The texts of `group describe`."""
    summary = [
        ("GROUP", row["group"]),
        ("STATE", row["state"]),
        ("TYPE", row["type"]),
        ("ASSIGNOR", row["assignor"]),
        ("EPOCH", row["group_epoch"]),
        ("TARGET-EPOCH", row["assignment_epoch"]),
        ("COORDINATOR", row["coordinator"]),
        ("MEMBERS", len(row["members"])),
        ("LAG", row["lag"]),
        *([("UNKNOWN", row["unread_partitions"])] if row["unread_partitions"] else []),
    ]
    offsets = [one for one in row["offsets"] if one["lag"] or not only_lag]
    parts = [output.pairs(summary)]
    if offsets:
        parts.append(output.text(offsets, OFFSETS))
    if members and row["members"]:
        parts.append(output.text(row["members"], MEMBERS))
    return parts


# --- offsets


def start_offsets(cluster: Cluster, name: str) -> dict[Place, int]:
    """The start offset of each partition that has one. Raises CommandError."""
    found = _offsets(cluster, name)
    return {(one.topic, one.partition): one.start_offset for one in found if one.start_offset is not None}


def move(cluster: Cluster, name: str, to: Mapping[Place, int]) -> Mapping[Place, CommandError | None]:
    """Give partitions new start offsets; why it failed, by partition. Raises CommandError."""
    with cluster.wire() as wire:
        return share.alter_offsets(wire, name, to)


def offset_delete(
    cluster: Cluster, name: str, texts: Sequence[str], execute: bool, failures: Failures
) -> list[dict[str, Any]]:
    """Delete what a share group knows of topics, or say which; a row for each. Raises CommandError."""
    wanted = parse_places(texts)
    if any(numbers is not None for numbers in wanted.values()):
        raise usage("a share group forgets topics, not partitions of them", "name topics only: -t TOPIC")
    known_topics = {one.topic for one in _offsets(cluster, name)}
    for topic in wanted:
        if topic not in known_topics:
            fix = "kpybroker group describe shows the offsets"
            failures.add(f"group {name}", CommandError(f"it has no start offset of {topic}", fix))
    topics = [topic for topic in wanted if topic in known_topics]
    errors: Mapping[str, CommandError | None] = {}
    if execute and topics:
        with cluster.wire() as wire:
            errors = share.delete_offsets(wire, name, topics)
    rows = []
    for topic in topics:
        error = errors.get(topic)
        status = "failed" if error else "deleted" if execute else "would be deleted"
        rows.append({"topic": topic, "status": status, "error": failures.add(topic, error) if error else None})
    return rows
