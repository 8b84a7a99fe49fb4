"""The list of topics, and one topic."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.pages.metrics import FRESH_S, drawn, range_of
from kpybroker.console.queries import groups, settings, topics, transactions
from kpybroker.console.queries.pages import Query
from kpybroker.console.web.context import Console, charts_of, console_of, render
from kpybroker.console.web.forms import is_bad_input, whole_number


async def listing(request: Request) -> Response:
    """`/topics`"""
    console, query = console_of(request), dict(request.query_params)
    wanted = topics.Filter(
        query.get("q", ""),
        bool(query.get("internal")),
        bool(query.get("problems")),
        whole_number(query, "page", 1, 1, 10**6),
        bool(query.get("sizes")),
        query.get("sort") or "name",
    )

    def rate(name: str) -> float | None:
        return console.samples.rate(f"topic/{name}")

    found, notes = await console.live.ask(lambda cluster, failed: topics.listed(cluster, wanted, failed, rate))
    for row in found.rows:
        _remember(console, row["name"], row["end"], found.read_at)
        row["rate"] = rate(row["name"])
    return render(request, "topics.html", title="Topics", found=found, wanted=wanted, notes=notes)


async def one(request: Request) -> Response:
    """`/topics/{name}`"""
    console, name = console_of(request), request.path_params["name"]
    query = dict(request.query_params)
    wanted, number = Query.of(query), whole_number(query, "page", 1, 1, 10**6)
    found, notes = await console.live.ask(lambda cluster, _: topics.described(cluster, name, number, wanted))
    _remember(console, name, found.head["end"], found.head["read_at"])
    rate = console.samples.rate(f"topic/{name}")
    context: dict[str, Any] = {"found": found, "rate": rate, "charts": charts_of(request, "topic")}
    return render(request, "topic.html", title=name, tab="", name=name, notes=notes, **context)


async def configuration(request: Request) -> Response:
    """`/topics/{name}/configuration`"""
    name = request.path_params["name"]
    rows, notes = await console_of(request).live.ask(lambda cluster, failed: settings.of_topic(cluster, name, failed))
    title = f"{name}: configuration"
    return render(request, "configuration.html", title=title, tab="configuration", name=name, rows=rows, notes=notes)


async def rates(request: Request) -> Response:
    """`/topics/{name}/rates.json?range=`: times in seconds, and records a second, as a chart takes them."""
    console, name, kept = console_of(request), request.path_params["name"], range_of(request)
    if not console.samples.is_fresh(f"topic/{name}", FRESH_S):
        (end, at), _ = await console.live.ask(lambda cluster, _: topics.end_offset(cluster, name))
        _remember(console, name, end, at)
    return drawn(console.samples.rates(f"topic/{name}", kept))


def _remember(console: Console, name: str, end: int | None, at: float) -> None:
    if end is not None:
        console.samples.add(f"topic/{name}", end, at)


async def readers(request: Request) -> Response:
    """`/topics/{name}/groups`"""
    name = request.path_params["name"]
    live, wanted = console_of(request).live, Query.of(request.query_params)
    found, notes = await live.ask(lambda cluster, failed: groups.readers(cluster, name, wanted, failed))
    try:
        producers, more = await live.ask(lambda cluster, failed: transactions.producers(cluster, name, wanted, failed))
        notes.items += more.items
    except CommandError as error:  # a broker of before 2.8 does not say
        if is_bad_input(error):
            raise
        producers = None
        notes.add("producers", error)
    context: dict[str, Any] = {"name": name, "found": found, "producers": producers, "notes": notes}
    return render(request, "readers.html", title=f"{name}: groups", tab="groups", **context)
