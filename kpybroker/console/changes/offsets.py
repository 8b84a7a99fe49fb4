"""The committed offsets of a group, partition by partition; and groups deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from kpybroker.client.actions import groups as actions
from kpybroker.client.actions import seek
from kpybroker.client.actions.partitions import Place, bounds
from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.records.offsets import Bounds
from kpybroker.console.changes.change import Ask, Change, Field, InField, Raising, Rows, Values, in_field, lines
from kpybroker.console.queries import groups


def _text(values: Values) -> str:
    return "".join(f"{line}\n" for line in lines(values, "offsets"))


def _fill(ask: Ask) -> Mapping[str, str]:
    if not ask.values["group"]:
        return {}
    found = seek.current(ask.cluster, ask.values["group"])
    return {"offsets": "\n".join(f"{topic} {number} {offset}" for (topic, number), offset in sorted(found.items()))}


def _plan(ask: Ask) -> Rows:
    group = ask.values["group"]
    with in_field("offsets"):
        wanted = seek.parse_offsets(_text(ask.values), "offsets")
        if not wanted:
            raise usage("there is no line", "write TOPIC PARTITION OFFSET in a line")
    try:
        groups.require_empty(ask.cluster, group)
    except CommandError as error:
        raise InField("group", error) from None
    now = seek.current(ask.cluster, group)
    edges = bounds(ask.cluster, wanted)
    return [_row(place, now.get(place), offset, edges[place]) for place, offset in sorted(wanted.items())]


def _row(place: Place, now: int | None, wanted: int, edges: Bounds | CommandError) -> dict[str, object]:
    where = f"{place[0]}-{place[1]}"
    if isinstance(edges, CommandError):
        raise InField("offsets", CommandError(f"{where}: {edges.cause}", edges.fix))
    if not edges.start <= wanted <= edges.end:
        fix = f"write one from {edges.start} to {edges.end}"
        raise InField("offsets", usage(f"{where} has no offset {wanted}", fix))
    row = {"topic": place[0], "partition": place[1], "from": now, "to": wanted, "lag": edges.end - wanted}
    return {**row, "status": seek.status_of(row, is_shared=False), "error": None}


def _commit(ask: Ask, rows: Rows) -> Rows:
    done = [dict(row) for row in rows]
    seek.commit(ask.cluster, ask.values["group"], done, ask.failures)
    return done


OFFSETS: Final = Change(
    "group-offsets",
    "Edit the offsets of group {group}",
    "Commit these offsets",
    (
        Field("group", "Group", is_required=True),
        Field(
            "offsets",
            "Offsets",
            "lines",
            "TOPIC PARTITION OFFSET in each line. A partition that is left out stays as it is.",
            "orders 0 120",
            is_required=True,
        ),
    ),
    (
        ("Topic", "topic"),
        ("#Partition", "partition"),
        ("#From", "from"),
        ("#To", "to"),
        ("#Lag then", "lag"),
        ("Status", "status"),
    ),
    "Describe and Read on the group, and Read on its topics",
    _plan,
    _commit,
    lambda values: (["group", "seek", "--to-file", "-", "--execute"], [values["group"]]),
    lambda values: f"/group?id={quote(values['group'], safe='')}",
    same=("topic", "partition", "from"),
    blame={"GROUP_ID_NOT_FOUND": "group", "NON_EMPTY_GROUP": "group"},
    stdin=_text,
    fill=_fill,
)


def _plan_delete(ask: Ask) -> Rows:
    name = ask.values["group"]
    try:
        (row,) = actions.delete_rows(ask.cluster, [name], False, Raising())
    except CommandError as error:
        raise InField("group", error) from None
    offsets = seek.current(ask.cluster, name)
    return [{**row, "topics": sorted({topic for topic, _ in offsets}), "partitions": len(offsets)}]


def _delete(ask: Ask, rows: Rows) -> Rows:
    (row,) = actions.delete_rows(ask.cluster, [ask.values["group"]], True, Raising())
    return [{**rows[0], **row}]


DELETE_GROUP: Final = Change(
    "group-delete",
    "Delete group {group}",
    "Delete {group}",
    (Field("group", "Group", is_required=True),),
    (("Group", "group"), ("Topics", "topics"), ("#Committed partitions", "partitions"), ("Status", "status")),
    "Delete and Describe on the group",
    _plan_delete,
    _delete,
    lambda values: (["group", "delete", "--execute"], [values["group"]]),
    lambda _: "/groups",
    same=("group", "topics", "partitions"),
    typed_again="group",
    blame={"GROUP_ID_NOT_FOUND": "group", "NON_EMPTY_GROUP": "group"},
    note="Its offsets are forgotten: its consumers would begin where auto.offset.reset says.",
)
