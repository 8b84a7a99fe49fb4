"""The committed offsets of a group, or the start offsets of a share group, partition by partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kpybroker.client.actions import seek
from kpybroker.client.actions.partitions import Place, bounds
from kpybroker.client.actions.queues import groups as queues
from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.records.offsets import Bounds
from kpybroker.console.changes.change import Ask, Change, Field, InField, Rows, Values, in_field, lines
from kpybroker.console.changes.groups import GROUP, OF_GROUP, commit, page_of
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
    groups.require_empty(ask.cluster, group)
    is_shared = queues.is_share_group(ask.cluster, group)
    now = seek.current(ask.cluster, group)
    edges = bounds(ask.cluster, wanted)
    rows = [_row(place, now.get(place), offset, edges[place]) for place, offset in sorted(wanted.items())]
    return [{**row, "status": seek.status_of(row, is_shared=is_shared)} for row in rows]


def _row(place: Place, now: int | None, wanted: int, edges: Bounds | CommandError) -> dict[str, object]:
    where = f"{place[0]}-{place[1]}"
    if isinstance(edges, CommandError):
        raise InField("offsets", CommandError(f"{where}: {edges.cause}", edges.fix, name=edges.name))
    if not edges.start <= wanted <= edges.end:
        fix = f"write one from {edges.start} to {edges.end}"
        raise InField("offsets", usage(f"{where} has no offset {wanted}", fix))
    row = {"topic": place[0], "partition": place[1], "from": now, "to": wanted, "lag": edges.end - wanted}
    return {**row, "error": None}


OFFSETS: Final = Change(
    "group-offsets",
    "Edit the offsets of group {group}",
    "Commit these offsets",
    (
        GROUP,
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
    commit,
    lambda values: (["group", "seek", "--to-file", "-", "--execute"], [values["group"]]),
    page_of,
    same=("topic", "partition", "from"),
    blame=OF_GROUP,
    stdin=_text,
    fill=_fill,
)
