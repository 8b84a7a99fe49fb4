"""Consumer groups: the list, one group with its lag over time, and moving its offsets, previewed first."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.actions.seek import WOULD_MOVE
from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.groups.listing import SHARE
from kpybroker.console.pages.metrics import FRESH_S, drawn, range_of
from kpybroker.console.queries import groups
from kpybroker.console.queries.health import memory
from kpybroker.console.queries.outside import share_groups
from kpybroker.console.queries.pages import Page
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import read_change, whole_number

GROUP_BYTES_MAX: Final = 1024
ROWS_MAX: Final = 500
"""Partitions of a group on one page."""


def group_of(request: Request) -> str:
    """The group's id, which may have any character. Raises CommandError."""
    name = request.query_params.get("id", "")
    if not name or len(name) > GROUP_BYTES_MAX:
        raise usage("the address names no group", "choose one from Groups")
    return name


async def listing(request: Request) -> Response:
    """`/groups`"""
    query = dict(request.query_params)
    page = whole_number(query, "page", 1, 1, 10**6)
    text, state, kind, lag = (query.get(key, "") for key in ("q", "state", "type", "lag"))
    wanted = groups.Filter(text, state, kind, lag, page, query.get("sort") or "group")
    console = console_of(request)
    found, notes = await console.live.ask(lambda cluster, failed: groups.listed(cluster, wanted, failed))
    for row in found.rows:
        if row["lag"] is not None:
            console.samples.add(f"lag/{row['group']}", row["lag"])
        row["trend"] = memory.trend_of(console.samples.points(f"lag/{row['group']}"))
    context: dict[str, Any] = {"found": found, "wanted": wanted, "states": groups.STATES, "types": groups.TYPES}
    return render(request, "groups.html", title="Groups", notes=notes, **context)


async def one(request: Request) -> Response:
    """`/group?id=`"""
    console, name = console_of(request), group_of(request)
    found, notes = await console.live.ask(lambda cluster, _: groups.described(cluster, name))
    if found["lag"] is not None:
        console.samples.add(f"lag/{name}", found["lag"])
    control, holding = console.control, None
    if control is not None and found["type"] == SHARE:
        holding = await console.live.run(lambda: share_groups.held(control, name, notes))
    page = Page.of(len(found["offsets"]), whole_number(dict(request.query_params), "page", 1, 1, 10**6), ROWS_MAX)
    context: dict[str, Any] = {
        "group": found,
        "page": page,
        "targets": groups.TARGETS,
        "chart": f"/group/lag.json?id={quote(name)}",
        "held": holding,
        "knows_held": control is not None,
    }
    return render(request, "group.html", title=f"Group {name}", name=name, notes=notes, **context)


async def lag(request: Request) -> Response:
    """`/group/lag.json?id=&range=`: times in seconds, and the lag, as a chart takes them."""
    console, name, kept = console_of(request), group_of(request), range_of(request)
    if not console.samples.is_fresh(f"lag/{name}", FRESH_S):
        found, _ = await console.live.ask(lambda cluster, _: groups.lag(cluster, name))
        console.samples.add(f"lag/{name}", found)
    return drawn(console.samples.points(f"lag/{name}", kept))


async def preview(request: Request) -> Response:
    """`/group/move?id=&to=&at=&topics=`: where each partition would move; nothing is changed."""
    name, query = group_of(request), request.query_params
    wanted = groups.options(query.get("to", ""), query.get("at", ""), query.get("topics", ""))
    rows, notes = await console_of(request).live.ask(
        lambda cluster, failed: groups.preview(cluster, name, wanted, failed)
    )
    plan = json.dumps([[row["topic"], row["partition"], row["from"], row["to"]] for row in rows])
    return _move_page(request, name, rows, notes, plan=plan, is_preview=True)


async def move(request: Request) -> Response:
    """`POST /group/move?id=`: what the preview showed."""
    name, form = group_of(request), await read_change(request)
    planned = read_plan(form.get("plan", ""))
    rows, notes = await console_of(request).live.ask(
        lambda cluster, failed: groups.move(cluster, name, planned, failed)
    )
    return _move_page(request, name, rows, notes, plan="", is_preview=False)


def _move_page(request: Request, name: str, rows: list[dict[str, Any]], notes: Any, **context: Any) -> Response:
    moving = sum(row["status"] == WOULD_MOVE for row in rows)
    context |= {"title": f"Move group {name}", "targets": groups.TARGETS}
    return render(request, "move.html", name=name, rows=rows, moving=moving, notes=notes, **context)


async def forget_preview(request: Request) -> Response:
    """`/group/forget?id=&topics=`: which committed offsets would be deleted; nothing is changed."""
    name, topics = group_of(request), request.query_params.get("topics", "")
    rows, notes = await console_of(request).live.ask(lambda cluster, _: groups.committed_rows(cluster, name, topics))
    plan = json.dumps([[row["topic"], row["partition"], row["offset"], row["offset"]] for row in rows])
    return _forget_page(request, name, rows, notes, plan=plan, is_preview=True)


async def forget(request: Request) -> Response:
    """`POST /group/forget?id=`: what the preview showed."""
    name, form = group_of(request), await read_change(request)
    planned = [{**row, "offset": row["to"]} for row in read_plan(form.get("plan", ""))]
    rows, notes = await console_of(request).live.ask(
        lambda cluster, failed: groups.forget(cluster, name, planned, failed)
    )
    return _forget_page(request, name, rows, notes, plan="", is_preview=False)


def _forget_page(request: Request, name: str, rows: list[dict[str, Any]], notes: Any, **context: Any) -> Response:
    title = f"Delete offsets of group {name}"
    return render(request, "forget.html", title=title, name=name, rows=rows, notes=notes, **context)


def read_plan(text: str) -> list[dict[str, Any]]:
    """The rows of a preview, which the form carries. Raises CommandError."""
    try:
        rows = [
            {"topic": topic, "partition": partition, "from": current, "to": to}
            for topic, partition, current, to in json.loads(text)
        ]
    except (ValueError, TypeError, RecursionError):
        rows = []
    if not rows or not all(_is_row(row) for row in rows):
        raise usage("this form has no plan", "begin with the preview")
    return rows


def _is_row(row: dict[str, Any]) -> bool:
    numbers = [row["partition"], row["to"], 0 if row["from"] is None else row["from"]]
    return isinstance(row["topic"], str) and all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)
