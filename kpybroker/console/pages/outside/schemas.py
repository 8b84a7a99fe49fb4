"""Subjects of the schema registry, one version of one, and what has changed between two."""

from __future__ import annotations

import difflib
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, usage
from kpybroker.client.schemas.subjects import Subjects, Version, pretty
from kpybroker.console.queries.outside import schema_uses
from kpybroker.console.queries.pages import Page, Query
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import whole_number

CONTEXT: Final = 4
"""Lines around what has changed."""
LINES_MAX: Final = 2000
VERSIONS_MAX: Final = 50
"""Whose ids are looked for in records: the newest."""


class Shown(NamedTuple):
    """A version of a subject, all their numbers, and the one that it is compared with."""

    version: Version
    numbers: list[int]
    level: str
    other: Version | None


async def listing(request: Request) -> Response:
    """`/schemas?q=`"""
    console, query = console_of(request), dict(request.query_params)
    wanted, number = Query.of(query), whole_number(query, "page", 1, 1, 10**6)
    names: list[str] | None = None
    if console.subjects is not None:
        everything = await console.live.run(console.subjects.names)
        names = [name for name in everything if wanted.text in name.lower()]
        names = wanted.sorted("sort", names, {"subject": str})
    page = Page.of(len(names or ()), number)
    shown = None if names is None else names[page.first : page.last]
    return render(request, "schemas.html", title="Schemas", names=shown, page=page, text=query.get("q", "").strip())


async def one(request: Request) -> Response:
    """`/schema?subject=&version=&with=`; with `look=1` records are looked into for the topics that use it."""
    console, query = console_of(request), request.query_params
    subject = query.get("subject", "")
    if console.subjects is None or not subject:
        raise usage("the address names no subject", "choose one from Schemas")
    numbers = [_version(query.get(name, "")) for name in ("version", "with")]
    registry = console.subjects
    found = await console.live.run(lambda: _shown(registry, subject, *numbers))
    topics, notes = await console.live.ask(lambda cluster, failures: _topics(cluster, failures))
    uses = schema_uses.by_name(subject, schema_uses.record_name(found.version.kind, found.version.text), topics)
    met = None
    if query.get("look"):
        ids = await console.live.run(lambda: _ids(registry, subject, found.numbers))
        first = [one.topic for one in uses]
        met, _ = await console.live.ask(lambda cluster, _: schema_uses.met(cluster, first, ids))
    context: dict[str, Any] = {"subject": subject, "found": found, "text": pretty(found.version.text)}
    context |= {"uses": uses, "met": met, "each": schema_uses.RECORDS_EACH}
    context["changed"] = None if found.other is None else changed(found.other.text, found.version.text)
    return render(request, "schema.html", title=f"Schema {subject}", notes=notes, **context)


def _topics(cluster: Cluster, failures: Failures) -> list[str]:
    try:
        return list(cluster.metadata().topics)
    except CommandError as error:
        failures.add("the cluster's topics", error)
        return []


def _ids(registry: Subjects, subject: str, numbers: list[int]) -> dict[int, int]:
    """The versions by their ids."""
    return {registry.version(subject, number).id: number for number in numbers[-VERSIONS_MAX:]}


def _version(text: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise usage(f"{text[:50]!r} is no version", "write a number")
    return int(text) if text else None


def _shown(registry: Subjects, subject: str, number: int | None, other: int | None) -> Shown:
    version = registry.version(subject, "latest" if number is None else number)
    try:
        level = registry.level(subject)
    except CommandError:
        level = ""
    compared = None if other is None else registry.version(subject, other)
    return Shown(version, registry.versions(subject), level, compared)


def changed(before: str, after: str) -> list[tuple[str, str]]:
    """Lines of a difference with what each is: `+`, `-`, a space for what both have, `@` where some are left out."""
    lines = difflib.unified_diff(
        pretty(before).splitlines(), pretty(after).splitlines(), n=CONTEXT, lineterm="", fromfile="", tofile=""
    )
    found = [(line[0], "" if line[0] == "@" else line[1:]) for line in list(lines)[2:]]
    return found[:LINES_MAX]
