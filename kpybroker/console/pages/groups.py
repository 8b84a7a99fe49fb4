"""Groups: the list, and one group with its lag over time."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.client.connect.groups.listing import SHARE, STREAMS
from kpybroker.console.changes.abilities import SHARE_GROUPS, STREAMS_GROUPS, unserved, without_group_settings
from kpybroker.console.changes.groups import TARGETS
from kpybroker.console.pages.metrics import FRESH_S, drawn, range_of
from kpybroker.console.queries import groups
from kpybroker.console.queries.health import memory
from kpybroker.console.queries.outside import share_groups
from kpybroker.console.queries.pages import Page, Query
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import whole_number

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

    def trend(name: str) -> str:
        return memory.trend_of(console.samples.points(f"lag/{name}"))

    (found, absent), notes = await console.live.ask(
        lambda cluster, failed: (groups.listed(cluster, wanted, failed, trend), _absent(cluster))
    )
    for row in found.rows:
        if row["lag"] is not None:
            console.samples.add(f"lag/{row['group']}", row["lag"])
        row["trend"] = trend(row["group"])
    context: dict[str, Any] = {"found": found, "wanted": wanted, "states": groups.STATES, "types": groups.TYPES}
    context["absent"] = absent
    return render(request, "groups.html", title="Groups", notes=notes, **context)


def _absent(cluster: Cluster) -> dict[str, str]:
    """The types that the cluster has no groups of, and why."""
    kinds = {SHARE: SHARE_GROUPS, STREAMS: STREAMS_GROUPS}
    return {kind: why for kind, wanted in kinds.items() if (why := unserved(cluster, wanted))}


async def one(request: Request) -> Response:
    """`/group?id=`"""
    console, name = console_of(request), group_of(request)

    def ask(cluster: Cluster, _: Failures) -> tuple[dict[str, Any], str]:
        found = groups.described(cluster, name)
        return found, without_group_settings(cluster, name) if console.options.allow_changes else ""

    (found, without_settings), notes = await console.live.ask(ask)
    if found["lag"] is not None:
        console.samples.add(f"lag/{name}", found["lag"])
    control, holding = console.control, None
    if control is not None and found["type"] == SHARE:
        holding = await console.live.run(lambda: share_groups.held(control, name, notes))
    wanted = Query.of(request.query_params)
    found["offsets"] = wanted.sorted("sort", found["offsets"], groups.OF_OFFSETS)
    found["members"] = wanted.sorted("sort_members", found["members"], groups.OF_MEMBERS)
    page = Page.of(len(found["offsets"]), whole_number(dict(request.query_params), "page", 1, 1, 10**6), ROWS_MAX)
    context: dict[str, Any] = {
        "group": found,
        "page": page,
        "targets": TARGETS,
        "chart": f"/group/lag.json?id={quote(name)}",
        "held": holding,
        "knows_held": control is not None,
        "without_settings": without_settings,
    }
    return render(request, "group.html", title=f"Group {name}", name=name, notes=notes, **context)


async def lag(request: Request) -> Response:
    """`/group/lag.json?id=&range=`: times in seconds, and the lag, as a chart takes them."""
    console, name, kept = console_of(request), group_of(request), range_of(request)
    if not console.samples.is_fresh(f"lag/{name}", FRESH_S):
        found, _ = await console.live.ask(lambda cluster, _: groups.lag(cluster, name))
        console.samples.add(f"lag/{name}", found)
    return drawn(console.samples.points(f"lag/{name}", kept))
