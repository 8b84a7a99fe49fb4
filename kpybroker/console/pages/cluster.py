"""The cluster as a whole: brokers, replication, log directories, transactions, access."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.console.changes.abilities import QUOTAS, USERS, unserved, without_authorizer
from kpybroker.console.queries import access as access_queries
from kpybroker.console.queries import settings, storage
from kpybroker.console.queries import transactions as transaction_queries
from kpybroker.console.queries.health import seen
from kpybroker.console.queries.health.checks import Verdict
from kpybroker.console.queries.pages import Query
from kpybroker.console.web.context import charts_of, console_of, render
from kpybroker.console.web.forms import whole_number
from kpybroker.console.web.live import Notes


async def page(request: Request) -> Response:
    """`/`: whether the cluster is well, what each broker is, and how full."""
    health, wanted = console_of(request).health, Query.of(request.query_params)

    def ask(cluster: Cluster, failures: Failures) -> tuple[dict[str, Any], Verdict]:
        found = storage.described(cluster, failures)
        verdict = seen.quick(cluster, health, found)
        found["brokers"] = wanted.sorted("sort", found["brokers"], storage.OF_BROKERS)
        return found, verdict

    (found, verdict), notes = await console_of(request).live.ask(ask)
    charts = charts_of(request, "cluster")
    return render(request, "cluster.html", title="Cluster", cluster=found, verdict=verdict, notes=notes, charts=charts)


async def thorough(request: Request) -> Response:
    """`/health`: each check, with those that take longer."""
    verdict, notes = await _everything(request)
    return render(request, "health.html", title="Health", verdict=verdict, notes=notes)


async def health_now(request: Request) -> Response:
    """`/health/now`: the part of the front page, loaded after that is shown."""
    try:
        verdict, _ = await _everything(request)
    except CommandError as error:
        return HTMLResponse(console_of(request).text("health_now.html", verdict=None, error=error))
    return HTMLResponse(console_of(request).text("health_now.html", verdict=verdict, error=None))


async def _everything(request: Request) -> tuple[Verdict, Notes]:
    health = console_of(request).health

    def ask(cluster: Cluster, failures: Failures) -> Verdict:
        found = storage.described(cluster, failures)
        return Verdict([*seen.quick(cluster, health, found).checks, *health.thorough(cluster).checks])

    return await console_of(request).live.ask(ask)


async def broker(request: Request) -> Response:
    """`/brokers/{broker}`: its settings."""
    number = request.path_params["broker"]
    rows, notes = await console_of(request).live.ask(
        lambda cluster, failed: settings.of_broker(cluster, number, failed)
    )
    title = f"Broker {number}: configuration"
    return render(request, "broker.html", title=title, number=number, rows=rows, notes=notes)


async def replication(request: Request) -> Response:
    """`/replication`: who leads, who is behind."""
    wanted = Query.of(request.query_params)
    found, notes = await console_of(request).live.ask(
        lambda cluster, failures: storage.replication(cluster, wanted, failures)
    )
    charts = charts_of(request, "replication")
    return render(
        request, "replication.html", title="Replication", found=found, notes=notes, charts=charts, text=wanted.text
    )


async def directories(request: Request) -> Response:
    """`/log-dirs`: how large, and the largest replicas."""
    wanted = Query.of(request.query_params)
    found, notes = await console_of(request).live.ask(
        lambda cluster, failures: storage.directories(cluster, wanted, failures)
    )
    return render(request, "log_dirs.html", title="Log directories", found=found, notes=notes, text=wanted.text)


async def transactions(request: Request) -> Response:
    """`/transactions`, with `topic=` the producers of one topic, with `hanging=1` those that no coordinator knows."""
    query, live = dict(request.query_params), console_of(request).live
    wanted, number, topic = Query.of(query), whole_number(query, "page", 1, 1, 10**6), query.get("topic", "").strip()
    found, notes = await live.ask(lambda cluster, failed: transaction_queries.listed(cluster, wanted, number, failed))
    producers = None
    if topic:
        producers, more = await live.ask(
            lambda cluster, failed: transaction_queries.producers(cluster, topic, wanted, failed)
        )
        notes.items += more.items
    hanging = None
    if query.get("hanging"):
        hanging, more = await live.ask(lambda cluster, failed: transaction_queries.hanging(cluster, wanted, failed))
        notes.items += more.items
    context: dict[str, Any] = {"found": found, "text": wanted.text, "topic": topic, "producers": producers}
    context["hanging"] = hanging
    return render(request, "transactions.html", title="Transactions", notes=notes, **context)


async def access(request: Request) -> Response:
    """`/access`: ACLs, users, quotas."""
    wanted = Query.of(request.query_params)
    (found, without), notes = await console_of(request).live.ask(
        lambda cluster, failures: (access_queries.access(cluster, wanted, failures), _without(cluster))
    )
    context: dict[str, Any] = {"found": found, "without": without, "text": wanted.text}
    return render(request, "access.html", title="Access", notes=notes, **context)


def _without(cluster: Cluster) -> dict[str, str]:
    """Why ACLs, users and quotas cannot be changed; empty texts where they can."""
    return {
        "acls": without_authorizer(cluster),
        "users": unserved(cluster, USERS),
        "quotas": unserved(cluster, QUOTAS),
    }


async def state(request: Request) -> Response:
    """`/state`: of a cluster in the list of several, loaded after that is shown, so that none waits for another."""
    console = console_of(request)
    found, error = None, None
    try:
        found, _ = await console.live.ask(lambda cluster, _: cluster.metadata())
    except CommandError as failed:
        error = failed
    return HTMLResponse(console.text("cluster_state.html", found=found, error=error))
