"""What has a name, found by a part of it: topics, groups, subjects, connectors. And two topics compared."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import quote

import anyio
from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.actions.groups import list_groups
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.schemas.subjects import Subjects
from kpybroker.console.pages.outside import connect
from kpybroker.console.queries import settings
from kpybroker.console.queries.connect import connectors
from kpybroker.console.web.context import Console, console_of, render
from kpybroker.console.web.live import Notes

FOUND_MAX: Final = 50
"""Names of each kind."""


class Found(NamedTuple):
    """Names of one kind, with the page of each where it has one; `total` counts all that fit."""

    kind: str
    names: list[tuple[str, str]]
    total: int


async def search(request: Request) -> Response:
    """`/search?q=`"""
    console, text = console_of(request), request.query_params.get("q", "").strip()
    found, notes = await _everywhere(console, text.lower()) if text else ([], None)
    return render(request, "search.html", title="Search", found=found, text=text, notes=notes)


async def _everywhere(console: Console, text: str) -> tuple[list[Found], Notes]:
    """What the cluster, the registry and each Kafka Connect have. Raises CommandError where the cluster is away."""
    around: dict[str, list[str] | CommandError] = {}
    found: list[Found] = []
    notes, failed = Notes(), None

    async def ask_connects() -> None:
        around.update(await connect.of_each(console, connectors.names))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_connects)
        try:
            found, notes = await console.live.ask(
                lambda cluster, failures: _search(cluster, console.subjects, text, failures)
            )
        except CommandError as error:
            failed = error
    if failed is not None:
        raise failed
    for name in console.connects:
        names = around[name]
        if isinstance(names, CommandError):
            notes.add(f"connectors of {name}", names)
        else:
            page = f"/connector?connect={quote(name, safe='')}&name={{}}"
            found.append(_found(f"Connectors of {name}", names, page, text))
    return found, notes


def _search(cluster: Cluster, subjects: Subjects | None, text: str, failures: Failures) -> list[Found]:
    found = [_found("Topics", cluster.metadata().topics, "/topics/{}", text)]
    try:
        found.append(_found("Groups", list_groups(cluster, failures), "/group?id={}", text))
    except CommandError as error:
        failures.add("groups", error)
    if subjects is not None:
        try:
            found.append(_found("Subjects", subjects.names(), "/schema?subject={}", text))
        except CommandError as error:
            failures.add("subjects of the schema registry", error)
    return found


def _found(kind: str, names: Any, page: str, text: str) -> Found:
    """The names that have the text: the same name first, then those that begin with it."""
    fitting = sorted(
        (name for name in names if text in name.lower()),
        key=lambda name: (name.lower() != text, not name.lower().startswith(text), name),
    )
    return Found(kind, [(name, page.format(quote(name, safe=""))) for name in fitting[:FOUND_MAX]], len(fitting))


async def compare(request: Request) -> Response:
    """`/compare?a=&b=`: the settings of two topics, those that differ first."""
    first, second = (request.query_params.get(name, "").strip() for name in ("a", "b"))
    rows, notes = None, None
    if first and second:
        rows, notes = await console_of(request).live.ask(
            lambda cluster, failures: settings.compared(cluster, first, second, failures)
        )
    names, _ = await console_of(request).live.ask(lambda cluster, _: sorted(cluster.metadata().topics)[:1000])
    context: dict[str, Any] = {"first": first, "second": second, "rows": rows, "names": names}
    return render(request, "compare.html", title="Compare two topics", notes=notes, **context)
