"""`group list`, `describe`, `delete` and `offset-delete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from kpybroker.client.actions.lag import Lag, behind, committed, lags_by_group, places_of
from kpybroker.client.actions.partitions import Place, matching, parse_places
from kpybroker.client.actions.queues import groups as queues
from kpybroker.client.actions.streams import groups as streams
from kpybroker.client.actions.topic_changes import DRY_RUN
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import FIXES, CommandError, Failures, note
from kpybroker.client.connect.groups import listing, raw_groups
from kpybroker.client.connect.groups.consumer_groups import describe_consumers
from kpybroker.client.connect.groups.listing import SHARE, STREAMS
from kpybroker.client.connect.groups.raw_groups import CONSUMER, RawGroup, RawMember, describe, shown_bytes
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output

NAMES = {
    "UNKNOWN": "Unknown",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": "Dead",
    "EMPTY": "Empty",
}
"""Kafka's names of states, by confluent-kafka's."""

CLASSIC = "classic"
UNNAMED = "Unknown"
"""The states of consumer groups for which librdkafka has no name, Assigning and Reconciling."""
UNREAD = frozenset({"_DESTROY", "_BAD_MSG", "_INVALID_ARG", "_UNDERFLOW", "_PARTIAL", "_FAIL"})
"""librdkafka's errors for a group whose description it cannot read."""

LIST = (
    Column("GROUP", "group"),
    Column("STATE", "state"),
    Column("TYPE", "type"),
    Column("MEMBERS", "members", wide=True),
    Column("ASSIGNOR", "assignor", wide=True),
    Column("COORDINATOR", "coordinator", wide=True),
    Column("LAG", "lag"),
    Column("UNREAD", "unread_partitions"),
)
OF_LAG = ("lag", "unread_partitions")
OFFSETS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("CURRENT-OFFSET", "current_offset"),
    Column("LOG-START-OFFSET", "log_start_offset", wide=True),
    Column("LOG-END-OFFSET", "log_end_offset"),
    Column("LAG", "lag", style=lambda row: "yellow" if row["lag"] else ""),
    Column("MEMBER-ID", "member_id", wide=True),
    Column("INSTANCE-ID", "instance_id", wide=True),
    Column("CLIENT-ID", "client_id"),
    Column("HOST", "host"),
)
MEMBERS = (
    Column("MEMBER-ID", "member_id"),
    Column("INSTANCE-ID", "instance_id"),
    Column("CLIENT-ID", "client_id"),
    Column("HOST", "host"),
    Column("PARTITIONS", lambda row: _assignment_cell(row)),
)
CONSUMER_MEMBERS = (
    *MEMBERS[:-1],
    Column("PROTOCOL", "protocol", wide=True),
    Column("RACK", "rack_id", wide=True),
    Column("EPOCH", "member_epoch"),
    Column("SUBSCRIPTION", lambda row: _subscription_cell(row)),
    MEMBERS[-1],
    Column("TARGET", lambda row: _places_cell(row["target"]), style=lambda row: "yellow" if _is_moving(row) else ""),
)
"""Of a consumer group: what each member has now, and what it is to have."""
STATUS = (Column("GROUP", "group"), Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""))
DELETED = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("OFFSET", "offset"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


class ListOptions(NamedTuple):
    """What `group list` is asked for."""

    patterns: Sequence[str] = ()
    states: Sequence[str] = ()
    types: Sequence[str] = ()
    lag: bool = False


OF_OWNERS = ("MEMBER-ID", "INSTANCE-ID", "CLIENT-ID", "HOST")


class DescribeOptions(NamedTuple):
    """What `group describe` is asked for."""

    groups: Sequence[str]
    members: bool = False
    only_lag: bool = False


# --- list


def show_list(connection: Connection, options: ListOptions, output: Output) -> int:
    """Print the groups."""
    cluster = Cluster(load(connection))
    failures = Failures()
    listed = list_groups(cluster, failures)
    states, types = ({word.lower() for word in words} for words in (options.states, options.types))
    names = [
        name
        for name in matching(listed, options.patterns)
        if (not states or state_name(listed[name]).lower() in states)
        and (not types or type_name(listed[name]) in types)
    ]
    described = describe_groups(cluster, names, failures) if output.is_detailed or options.lag else {}
    lags = lags_of(cluster, {name: described.get(name) for name in names}, failures) if options.lag else {}
    rows = []
    for name in names:
        row: dict[str, Any] = {"group": name, "state": state_name(listed[name]), "type": type_name(listed[name])}
        if output.is_detailed and name in described:
            row |= _summary(described[name])
        if options.lag:
            row |= {"lag": one.lag, "unread_partitions": one.unread} if (one := lags[name]) else dict.fromkeys(OF_LAG)
        rows.append(row)
    columns = LIST if options.lag else LIST[:-2]
    output.rows(rows, columns, empty="there is no such group")
    return failures.exit_code()


def list_groups(cluster: Cluster, failures: Failures) -> dict[str, Any]:
    """confluent-kafka's listings by group id, or our own description where it has no name for the state.

    Raises CommandError if the cluster cannot be reached.
    """
    result = cluster.result(cluster.admin.list_consumer_groups(**cluster.timeout))
    for error in result.errors:
        failures.add("a coordinator did not list its groups", cluster.error(KafkaException(error)))
    listed = {group.group_id: group for group in result.valid}
    unnamed = [name for name, group in listed.items() if _has_unnamed_state(group)]
    return listed | _found(_consumers(cluster, unnamed), failures) | listing.listed(cluster, failures)


def _is_unseen(group: Any, error: CommandError | None) -> bool:
    """A share or streams group is no group to the requests for others."""
    return error.name == "GROUP_ID_NOT_FOUND" if error is not None else state_name(group) == "Dead"


def _has_unnamed_state(group: Any) -> bool:
    return type_name(group) == CONSUMER and state_name(group) == UNNAMED


def state_name(group: Any) -> str:
    """Kafka's name of the state of a listed or described group."""
    if isinstance(group, RawGroup):
        return group.state
    name: str = group.state.name
    return NAMES.get(name, name)


def type_name(group: Any) -> str | None:
    """classic, consumer, share or streams; None where the broker is too old to say."""
    if isinstance(group, RawGroup):
        if group.protocol_type in listing.DESCRIBED_BY:
            return group.protocol_type
        return CLASSIC if group.group_epoch is None else CONSUMER
    return group.type.name.lower() if group.type is not None and group.type.name != "UNKNOWN" else None


def _summary(group: Any) -> dict[str, Any]:
    return {
        "members": len(group.members),
        "assignor": group.partition_assignor or None,
        "coordinator": coordinator_id(group),
    }


def coordinator_id(group: Any) -> int | None:
    """The broker that coordinates a described group."""
    if isinstance(group, RawGroup):
        return group.coordinator_id
    return group.coordinator.id if group.coordinator is not None else None


def lags_of(cluster: Cluster, groups: Mapping[str, Any], failures: Failures) -> dict[str, Lag | None]:
    """How far each described group, or None, is behind, with what its members have; None where that is not known.

    Groups that commit offsets are asked for together.
    """
    found: dict[str, Lag | None] = {}
    owners: dict[str, Mapping[Place, Row]] = {}
    for name, group in groups.items():
        kind = None if group is None else type_name(group)
        if kind not in (SHARE, STREAMS):
            owners[name] = places_of([] if group is None else [_member(member) for member in group.members])
            continue
        try:
            one = queues.lag_of(cluster, name) if kind == SHARE else streams.lag_of(cluster, name, group)
        except CommandError as error:
            failures.add(f"group {name}", error)
        else:
            found[name] = Lag(one.lag, one.unread)
    try:
        return dict.fromkeys(groups) | found | lags_by_group(cluster, owners, failures)
    except CommandError as error:
        failures.add("the lag of groups", error)
        return dict.fromkeys(groups) | found


# --- describe


def describe_groups(cluster: Cluster, names: Sequence[str], failures: Failures) -> dict[str, Any]:
    """confluent-kafka's description of each group, or our own where librdkafka makes nothing of it.

    One without members and without offsets does not exist.
    """
    if not names:
        return {}
    found: dict[str, Any] = {}
    unread, unnamed = [], []
    described = cluster.results(cluster.admin.describe_consumer_groups(list(names), **cluster.timeout))
    unseen = [name for name, group, error in described if _is_unseen(group, error)]
    others = dict(queues.described(cluster, unseen))
    others |= streams.described(cluster, [name for name in unseen if name not in others])
    for name, group, error in described:
        if name in others:
            continue
        if error is None and _has_unnamed_state(group):
            unnamed.append(name)
        elif error is None and _is_text(group):
            found[name] = group
        elif error is None or error.name in UNREAD:
            unread.append(name)
        else:
            failures.add(f"group {name}", error)
    found |= _found({**_described(cluster, unread), **_consumers(cluster, unnamed), **others}, failures)
    return {name: found[name] for name in names if name in found}


def _found(described: Mapping[str, RawGroup | CommandError], failures: Failures) -> dict[str, RawGroup]:
    """Those that could be described; the failures are added."""
    found = {}
    for name, raw in described.items():
        if isinstance(raw, CommandError):
            failures.add(f"group {name}", raw)
        else:
            found[name] = raw
    return found


def _consumers(cluster: Cluster, names: Sequence[str]) -> Mapping[str, RawGroup | CommandError]:
    """Consumer groups by ConsumerGroupDescribe."""
    try:
        if not names:
            return {}
        with cluster.wire() as wire:
            return describe_consumers(wire, names)
    except CommandError as error:
        return dict.fromkeys(names, error)


def _described(cluster: Cluster, names: Sequence[str]) -> Mapping[str, RawGroup | CommandError]:
    try:
        if not names:
            return {}
        with cluster.wire() as wire:
            return describe(wire, names)
    except CommandError as error:
        return dict.fromkeys(names, error)


def _is_text(group: Any) -> bool:
    """Whether the topics that its members read are UTF-8: else confluent-kafka raises when one is asked for."""
    if isinstance(group, RawGroup):
        return True
    try:
        return all(isinstance(one.topic, str) for member in group.members for one in _parts(member))
    except UnicodeDecodeError:
        return False


def _parts(member: Any) -> Sequence[Any]:
    return () if member.assignment is None else member.assignment.topic_partitions


def show_describe(connection: Connection, options: DescribeOptions, output: Output) -> int:
    """Print each group's state, the lag of its partitions, and its members."""
    cluster = Cluster(load(connection))
    failures = Failures()
    rows = []
    for name, group in describe_groups(cluster, list(dict.fromkeys(options.groups)), failures).items():
        try:
            row = describe_row(cluster, name, group)
        except CommandError as error:
            failures.add(f"group {name}", error)
            continue
        rows.append(row)
    if output.is_table:
        output.sections(part for row in rows for part in _sections(row, options, output))
    else:
        output.data(rows)
    return failures.exit_code()


def describe_row(cluster: Cluster, name: str, group: Any) -> dict[str, Any]:
    """A described group with its members and the lag of its partitions. Raises CommandError if it does not exist.

    A consumer group is described again, with its epochs.
    """
    if type_name(group) == SHARE:
        return queues.describe_row(cluster, name, group)
    if type_name(group) == STREAMS:
        return streams.describe_row(cluster, name, group)
    if type_name(group) == CONSUMER and not isinstance(group, RawGroup):
        again = _consumers(cluster, [name])[name]
        if isinstance(again, CommandError):
            raise again
        group = again
    offsets = committed(cluster, name)
    if state_name(group) == "Dead" and not offsets:
        raise no_such_group(name)
    members = [_member(member) for member in group.members]
    found = behind(cluster, offsets, places_of(members))
    protocol_type = group.protocol_type if isinstance(group, RawGroup) else CONSUMER
    head = {"group": name, "state": state_name(group), "type": type_name(group), "protocol_type": protocol_type}
    epochs = (group.group_epoch, group.assignment_epoch) if isinstance(group, RawGroup) else (None, None)
    of_epochs = dict(zip(("group_epoch", "assignment_epoch"), epochs, strict=True))
    of_lag = {"lag": found.lag, "unread_partitions": found.unread, "offsets": found.rows}
    return {**head, **of_epochs, **_summary(group), "members": members, **of_lag}


def no_such_group(name: str) -> CommandError:
    """The error for a group that has neither members nor offsets, as far as this user may see."""
    fix = f"{FIXES['GROUP_ID_NOT_FOUND']}; one that this user may not describe is hidden"
    return CommandError(f"there is no group {name}", fix, name="GROUP_ID_NOT_FOUND")


def _member(member: Any) -> dict[str, Any]:
    if isinstance(member, RawMember):
        places, unread = member.assignment, member.assignment_bytes
        rest = {name: getattr(member, name) for name in OF_CONSUMERS}
    else:
        places, unread = sorted((part.topic, part.partition) for part in _parts(member)), None
        rest = dict.fromkeys(OF_CONSUMERS)
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.host.lstrip("/"),
        "assignment": _placed(places),
        "assignment_bytes": None if unread is None else shown_bytes(unread),
        **rest,
        "target": None if rest["target"] is None else _placed(rest["target"]),
    }


OF_CONSUMERS = ("protocol", "rack_id", "member_epoch", "topics", "regex", "target")
"""What only members of consumer groups have."""


def _placed(places: Sequence[Place]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for topic, partition in places]


def _assignment_cell(row: Row) -> list[str] | str:
    if row["assignment_bytes"] is not None:
        return f"unread: {row['assignment_bytes']}"
    return _places_cell(row["assignment"])


def _places_cell(places: Sequence[Row]) -> list[str]:
    return [f"{one['topic']}:{one['partition']}" for one in places]


def _subscription_cell(row: Row) -> list[str]:
    """The topics that a member names, and its regular expression between slashes."""
    return [*row["topics"], *([f"/{row['regex']}/"] if row["regex"] else [])]


def _is_moving(row: Row) -> bool:
    return bool(row["target"] != row["assignment"])


def _sections(row: Row, options: DescribeOptions, output: Output) -> list[str]:
    if row["type"] == SHARE:
        return queues.sections(row, options.members, options.only_lag, output)
    is_consumer, is_streams = row["type"] == CONSUMER, row["type"] == STREAMS
    summary = [
        ("GROUP", row["group"]),
        ("STATE", row["state"]),
        *([("TYPE", row["type"])] if is_consumer else []),
        *([("PROTOCOL-TYPE", row["protocol_type"])] if row["protocol_type"] != CONSUMER else []),
        ("ASSIGNOR", row["assignor"]),
        *([("EPOCH", row["group_epoch"]), ("TARGET-EPOCH", row["assignment_epoch"])] if is_consumer else []),
        ("COORDINATOR", row["coordinator"]),
        ("MEMBERS", len(row["members"])),
        ("LAG", row["lag"]),
        *([("UNREAD", row["unread_partitions"])] if row["unread_partitions"] else []),
    ]
    offsets = [one for one in row["offsets"] if one["lag"] or not options.only_lag]
    columns = OFFSETS if any(one["client_id"] for one in offsets) else [c for c in OFFSETS if c.title not in OF_OWNERS]
    parts = [output.pairs(streams.summary(row) if is_streams else summary)]
    if offsets:
        parts.append(output.text(offsets, columns))
    if is_streams:
        return [*parts, *streams.sections(row, options.members, output)]
    if options.members and row["members"]:
        parts.append(output.text(row["members"], CONSUMER_MEMBERS if is_consumer else MEMBERS))
    return parts


# --- delete


def delete(connection: Connection, groups: Sequence[str], execute: bool, output: Output) -> int:
    """Delete the groups with their offsets, or show which ones would be deleted."""
    failures = Failures()
    output.rows(delete_rows(Cluster(load(connection)), groups, execute, failures), STATUS)
    if not execute:
        note(DRY_RUN)
    return failures.exit_code()


def delete_rows(cluster: Cluster, groups: Sequence[str], execute: bool, failures: Failures) -> list[Row]:
    """Delete the groups, or say which would be deleted: what became of each."""
    if not execute:
        listed = list_groups(cluster, failures)
        return [_status(name, "would be deleted", failures, _obstacle(listed, name)) for name in groups]
    results = cluster.results(cluster.admin.delete_consumer_groups(list(dict.fromkeys(groups)), **cluster.timeout))
    return [_status(name, "deleted", failures, error) for name, _, error in results]


def _obstacle(listed: Mapping[str, Any], name: str) -> CommandError | None:
    if name not in listed:
        return no_such_group(name)
    state = state_name(listed[name])
    cause, name = f"the group has members ({state})", "NON_EMPTY_GROUP"
    return None if state == "Empty" else CommandError(cause, FIXES[name], name=name)


def _status(name: str, done: str, failures: Failures, error: CommandError | None) -> Row:
    reported = failures.add(f"group {name}", error) if error else None
    return {"group": name, "status": "failed" if error else done, "error": reported}


def offset_delete(connection: Connection, group: str, texts: Sequence[str], execute: bool, output: Output) -> int:
    """Delete a group's committed offsets of topics or partitions, or show which."""
    cluster = Cluster(load(connection))
    failures = Failures()
    if queues.is_share_group(cluster, group):
        output.rows(queues.offset_delete(cluster, group, texts, execute, failures), queues.DELETED)
        if not execute:
            note(DRY_RUN)
        return failures.exit_code()
    wanted = parse_places(texts)
    offsets = committed(cluster, group)
    places = [place for place in sorted(offsets) if is_wanted(place, wanted)]
    for topic in wanted:
        if not any(place[0] == topic for place in places):
            fix = "kpybroker group describe shows the offsets"
            failures.add(f"group {group}", CommandError(f"it has no committed offset of {topic}", fix))
    rows = [
        {"topic": t, "partition": p, "offset": offsets[t, p], "status": "would be deleted", "error": None}
        for t, p in places
    ]
    if execute and places:
        with WireCluster(cluster.settings) as wire:
            delete_offsets(wire, group, rows, failures)
    output.rows(rows, DELETED)
    if not execute:
        note(DRY_RUN)
    return failures.exit_code()


def is_wanted(place: Place, wanted: Mapping[str, list[int] | None]) -> bool:
    """Whether a partition is one of those of `parse_places`."""
    if place[0] not in wanted:
        return False
    numbers = wanted[place[0]]
    return numbers is None or place[1] in numbers


def delete_offsets(wire: WireCluster, group: str, rows: Sequence[dict[str, Any]], failures: Failures) -> None:
    """Delete these committed offsets, and say in each row how it went. Raises CommandError."""
    errors = raw_groups.delete(wire, group, [(row["topic"], row["partition"]) for row in rows])
    for row in rows:
        error = errors.get((row["topic"], row["partition"]))
        row["status"] = "failed" if error else "deleted"
        row["error"] = failures.add(f"{row['topic']}-{row['partition']}", error) if error else None
