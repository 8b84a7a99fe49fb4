"""Groups: all offsets moved to a place, committed offsets forgotten, the group deleted. By partition: `offsets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from kpybroker.client.actions import groups as actions
from kpybroker.client.actions import seek
from kpybroker.client.actions.lag import committed
from kpybroker.client.actions.partitions import parse_places
from kpybroker.client.actions.queues import groups as queues
from kpybroker.client.actions.seek import SeekOptions
from kpybroker.client.connect.errors import usage
from kpybroker.console.changes.change import (
    Ask,
    Change,
    Command,
    Field,
    InField,
    Raising,
    Rows,
    Values,
    given,
    in_field,
    lines,
)
from kpybroker.console.queries import groups

GROUP: Final = Field("group", "Group", is_required=True)
OF_GROUP: Final = {"GROUP_ID_NOT_FOUND": "group", "NON_EMPTY_GROUP": "group"}


def page_of(values: Values) -> str:
    """The page of the group."""
    return f"/group?id={quote(values['group'], safe='')}"


# --- moved

START, END, OFFSET, SHIFT, TIME = TARGETS = ("start", "end", "offset", "shift", "time")


def _position(values: Values) -> str:
    """As the command has it."""
    to, at = values["to"], values["at"]
    return to if to in (START, END) else f"@{at.removeprefix('@')}" if to == TIME else at


def _options(values: Values) -> SeekOptions:
    to, text = values["to"], _position(values)
    with in_field("at"):
        if to == OFFSET and not (text.isascii() and text.isdigit()):
            raise usage(f"{text[:50]!r} is no offset", "write a number such as 120; a shift is +5 or -5")
        if to == SHIFT and not seek.SHIFT.fullmatch(text):
            raise usage(f"{text[:50]!r} is no shift", "write +5 or -5")
        wanted = SeekOptions(text, topics=[values["topics"]] if values["topics"] else [])
        seek.check_options(wanted)
    return wanted


def _plan_move(ask: Ask) -> Rows:
    wanted = _options(ask.values)
    groups.require_empty(ask.cluster, ask.values["group"])
    with in_field("topics"):
        return seek.preview(ask.cluster, ask.values["group"], wanted, ask.failures)


def commit(ask: Ask, rows: Rows) -> Rows:
    """Commit the offsets of a preview, each where it was shown."""
    done = [dict(row) for row in rows]
    seek.commit(ask.cluster, ask.values["group"], done, ask.failures)
    return done


MOVE: Final = Change(
    "group-move",
    "Move group {group}",
    "Move the group",
    (
        GROUP,
        Field("to", "To", "choice", choices=TARGETS, default=START),
        Field("at", "Offset, shift or time", placeholder="120, -5, 2026-01-31T12:00, -1h"),
        Field("topics", "Topics and partitions", placeholder="all, or orders:0-2"),
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
    _plan_move,
    commit,
    lambda values: (
        ["group", "seek", *given(("--to", _position(values)), ("-t", values["topics"])), "--execute"],
        [values["group"]],
    ),
    page_of,
    same=("topic", "partition", "from"),
    blame=OF_GROUP,
    note="Exactly these offsets are committed. Of a share group they are where its partitions begin again.",
)


# --- offsets forgotten


def _topics_of(ask: Ask) -> Mapping[str, str]:
    if not ask.values["group"]:
        return {}
    return {"topics": "\n".join(sorted({topic for topic, _ in seek.current(ask.cluster, ask.values["group"])}))}


def _plan_forget(ask: Ask) -> Rows:
    group = ask.values["group"]
    with in_field("topics"):
        wanted = parse_places(lines(ask.values, "topics"))
        if not wanted:
            raise usage("no topic is named", "write TOPIC, or TOPIC:0-2, in each line")
    is_shared = queues.is_share_group(ask.cluster, group)
    with in_field("topics"):
        if is_shared:
            rows = queues.offset_delete(ask.cluster, group, lines(ask.values, "topics"), False, Raising())
            return [{"partition": None, "offset": None, **row} for row in rows]
    offsets = committed(ask.cluster, group)
    for topic in wanted:
        if not any(place[0] == topic and actions.is_wanted(place, wanted) for place in offsets):
            cause = f"{group} has no such committed offset of {topic}"
            raise InField("topics", usage(cause, "the group's page shows what it has"))
    return [
        {"topic": topic, "partition": number, "offset": offset, "status": "would be deleted", "error": None}
        for (topic, number), offset in sorted(offsets.items())
        if actions.is_wanted((topic, number), wanted)
    ]


def _forget(ask: Ask, rows: Rows) -> Rows:
    if any(row["partition"] is None for row in rows):
        topics = [row["topic"] for row in rows]
        done = queues.offset_delete(ask.cluster, ask.values["group"], topics, True, ask.failures)
        return [{**row, **found} for row, found in zip(rows, done, strict=True)]
    forgotten: list[dict[str, Any]] = [dict(row) for row in rows]
    with ask.cluster.wire() as wire:
        actions.delete_offsets(wire, ask.values["group"], forgotten, ask.failures)
    return forgotten


def _forget_command(values: Values) -> Command:
    topics = given(*(("-t", line) for line in lines(values, "topics")))
    return ["group", "offset-delete", *topics, "--execute"], [values["group"]]


FORGET: Final = Change(
    "group-forget",
    "Delete committed offsets of group {group}",
    "Delete these offsets",
    (
        GROUP,
        Field(
            "topics",
            "Topics and partitions",
            "lines",
            "TOPIC, or TOPIC:0-2, in each line; of a share group whole topics.",
            "orders:0-2",
            is_required=True,
        ),
    ),
    (("Topic", "topic"), ("#Partition", "partition"), ("#Committed", "offset"), ("Status", "status")),
    "Describe and Delete on the group, and Describe and Read on its topics",
    _plan_forget,
    _forget,
    _forget_command,
    page_of,
    same=("topic", "partition", "offset"),
    typed_again=("group",),
    blame={**OF_GROUP, "GROUP_SUBSCRIBED_TO_TOPIC": "topics"},
    note="A consumer begins there where auto.offset.reset says. The records stay.",
    fill=_topics_of,
)


# --- deleted


def _plan_delete(ask: Ask) -> Rows:
    name = ask.values["group"]
    (row,) = actions.delete_rows(ask.cluster, [name], False, Raising())
    offsets = seek.current(ask.cluster, name)
    return [{**row, "topics": sorted({topic for topic, _ in offsets}), "partitions": len(offsets)}]


def _delete(ask: Ask, rows: Rows) -> Rows:
    (row,) = actions.delete_rows(ask.cluster, [ask.values["group"]], True, Raising())
    return [{**rows[0], **row}]


DELETE: Final = Change(
    "group-delete",
    "Delete group {group}",
    "Delete {group}",
    (GROUP,),
    (("Group", "group"), ("Topics", "topics"), ("#Partitions with an offset", "partitions"), ("Status", "status")),
    "Describe and Delete on the group, and Describe on its topics",
    _plan_delete,
    _delete,
    lambda values: (["group", "delete", "--execute"], [values["group"]]),
    lambda _: "/groups",
    same=("group", "topics", "partitions"),
    typed_again=("group",),
    blame=OF_GROUP,
    note="Its offsets are forgotten: its consumers would begin where auto.offset.reset says.",
)
