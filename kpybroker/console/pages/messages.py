"""Messages of a topic: a page of them, searched, followed, and one of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.client.records.record import Record
from kpybroker.client.schemas.registry import Patience, Registry
from kpybroker.console.queries import messages
from kpybroker.console.queries.decoding import DECODERS, Decoder, decoded, header_key, parsed_by, with_schemas
from kpybroker.console.queries.filters import Accepts, Filters, compiled
from kpybroker.console.queries.messages import Cursor, Reading, Selection
from kpybroker.console.queries.records import downloads
from kpybroker.console.queries.records.cursors import read_cursor, write_cursor
from kpybroker.console.queries.records.listing import (
    NEXT,
    PREVIOUS,
    Read,
    is_descending,
    neighbour,
    placed,
    read,
    scan_of,
    summary,
)
from kpybroker.console.web.context import Console, console_of, render
from kpybroker.console.web.follow import Following, Shown
from kpybroker.console.web.follow import follow as following
from kpybroker.console.web.follow import search as searching
from kpybroker.console.web.forms import whole_number

PREVIEW: Final = 400
KEY_PREVIEW: Final = 120
WHOLE: Final = 256 * 1024
"""Characters of a value in a list, of a key or header in it, and of a message's own page."""
HEADERS_SHOWN: Final = 20
FIELDS: Final = ("start", "at", "partitions", "limit", "key", "value", "header", "path", "as")


class Query:
    """What the page's form asks for."""

    def __init__(self, topic: str, fields: Mapping[str, str], registry: Registry | None) -> None:
        self.fields = {name: fields.get(name, "") for name in FIELDS}
        start = fields.get("start") or "latest"
        if start not in messages.STARTS:
            raise usage(f"{start[:50]!r} is no place to start", f"one of {', '.join(messages.STARTS)}")
        limit = whole_number(fields, "limit", 50, 1, messages.SHOWN_MAX)
        cursor, way = read_cursor(fields.get("cursor", "")), fields.get("way") or "newer"
        if way not in messages.WAYS:
            raise usage(f"{way[:50]!r} is no way to go on", f"one of {', '.join(messages.WAYS)}")
        at, partitions = fields.get("at", "").strip(), fields.get("partitions", "")
        self.wanted = Selection(topic, start, at, partitions, limit, cursor, way)
        self.filters = Filters(*(fields.get(name, "") for name in ("key", "value", "header", "path")))
        self.problems: list[str] = []
        """Why a JSONPath could not be tried on a message."""
        self.accepts: Accepts = compiled(self.filters, parsed_by(registry and Patience(registry), self.problems))
        self.decoder = fields.get("as") or "auto"
        known = decoders(registry)
        if self.decoder not in known:
            raise usage(f"{self.decoder[:50]!r} is no way to show bytes", f"one of {', '.join(known)}")

    @property
    def has_filter(self) -> bool:
        """Whether some messages may be left out."""
        return any(self.filters)

    def text(self, **more: str) -> str:
        """As a query's text."""
        return urlencode({name: value for name, value in {**self.fields, **more}.items() if value})

    def page_text(self) -> str:
        """As a query's text, with the place of this page."""
        cursor = self.wanted.cursor
        return self.text() if cursor is None else self.text(cursor=write_cursor(cursor), way=self.wanted.way)


def query_of(request: Request) -> Query:
    """The request's query. Raises CommandError."""
    return Query(request.path_params["name"], request.query_params, console_of(request).registry)


def decoders(registry: Registry | None) -> Mapping[str, Decoder]:
    """For one page."""
    return DECODERS if registry is None else with_schemas(Patience(registry))


def row(record: Record, decoder: str, known: Mapping[str, Decoder] = DECODERS) -> dict[str, Any]:
    """A record as the list shows it."""
    headers = [
        (header_key(key, KEY_PREVIEW), decoded(value, KEY_PREVIEW)) for key, value in record.headers[:HEADERS_SHOWN]
    ]
    return {
        "record": record,
        "key": decoded(record.key, KEY_PREVIEW, decoder, known),
        "value": decoded(record.value, PREVIEW, decoder, known),
        "headers": headers,
        "more_headers": max(0, len(record.headers) - HEADERS_SHOWN),
    }


async def listing(request: Request) -> Response:
    """`/topics/{name}/messages`"""
    query, known = query_of(request), decoders(console_of(request).registry)

    def work(cluster: Cluster, failures: Failures) -> tuple[Read, list[dict[str, Any]]]:
        found = read(cluster, query.wanted, query.accepts, query.has_filter, failures)
        return found, [row(record, query.decoder, known) for record in found.records]

    (found, rows), notes = await console_of(request).live.ask(work)
    name, count = query.wanted.topic, len(found.records)
    is_unfinished = query.has_filter and bool(found.left) and count < query.wanted.limit
    return render(
        request,
        "messages.html",
        title=f"{name}: messages",
        tab="messages",
        name=name,
        query=query,
        summary=summary(found, count, query.has_filter),
        rows=rows,
        undecoded=next((one.note for each in rows for one in (each["key"], each["value"]) if one.note), ""),
        unsearched=next(iter(query.problems), ""),
        older=onward(query, found.older, "older"),
        newer=onward(query, found.newer, "newer"),
        search=search_of(query, found, count) if is_unfinished else None,
        is_appended=found.is_older == is_descending(query.wanted),
        follow=f"/topics/{quote(name)}/follow?{query.text()}",
        decoders=list(known),
        starts=messages.STARTS,
        records_max=downloads.RECORDS_MAX,
        notes=notes,
    )


def onward(query: Query, cursor: Cursor | None, way: str) -> str | None:
    """The query of the page that begins at a cut; None where there is none."""
    return query.text(cursor=write_cursor(cursor), way=way) if cursor else None


def search_of(query: Query, found: Read, count: int) -> str | None:
    """Where the rest of what a page may show is searched for; it has `before` messages already."""
    text = onward(query, found.onward, "older" if found.is_older else "newer")
    return None if text is None else f"/topics/{quote(query.wanted.topic)}/search?{text}&before={count}"


async def search(request: Request) -> Response:
    """`/topics/{name}/search`: rows and progress as server-sent events, from where a page ended."""
    console, query = console_of(request), query_of(request)
    before = whole_number(request.query_params, "before", 0, 0, messages.SHOWN_MAX)
    wanted = query.wanted._replace(limit=max(1, query.wanted.limit - before))
    cursor = read_cursor(request.headers.get("last-event-id", "").strip())
    wanted = wanted if cursor is None else wanted._replace(cursor=cursor)
    place, _ = await console.live.ask(lambda cluster, _: placed(cluster, wanted, query.has_filter))

    def text(found: Read) -> str:
        return summary(found, before + len(found.records), query.has_filter)

    def end(found: Read) -> dict[str, Any]:
        way = "older" if found.is_older else "newer"
        return {"summary": text(found), "way": way, "link": onward(query, found.onward, way)}

    scan = partial(scan_of, console.live.settings, wanted, place, query.accepts)
    shown = Shown(partial(_row_html, console, wanted.topic, query.decoder), text, end)
    return Following(searching(scan, place, wanted, shown))


async def follow(request: Request) -> Response:
    """`/topics/{name}/follow`: rows of the list as server-sent events, from now on or from where the browser was."""
    console, query = console_of(request), query_of(request)
    cursor = read_cursor(request.headers.get("last-event-id", "").strip())
    wanted = query.wanted._replace(start="offset", at="-0") if cursor is None else query.wanted._replace(cursor=cursor)
    span, _ = await console.live.ask(lambda cluster, _: messages.spans(cluster, wanted))
    begin = partial(Reading, console.live.settings, wanted.topic, span, is_endless=True)
    return Following(following(begin, query.accepts, partial(_row_html, console, wanted.topic, query.decoder)))


def _row_html(console: Console, topic: str, decoder: str, record: Record) -> str:
    return console.text("message_row.html", name=topic, one=row(record, decoder, decoders(console.registry)))


async def one(request: Request) -> Response:
    """`/topics/{name}/messages/{partition}/{offset}`; with `go=` the one before or after it in its partition."""
    go, edge = request.query_params.get("go", ""), ""
    if go in (PREVIOUS, NEXT):
        found = await _neighbour(request, go)
        if found is not None:
            path = f"/topics/{quote(str(found.topic), safe='')}/messages/{found.partition}/{found.offset}"
            return RedirectResponse(path, 303)
        edge = f"There is no message {'before' if go == PREVIOUS else 'after'} this one in its partition."
    console, record = console_of(request), await _one(request)
    known = decoders(console.registry)
    decoder = request.query_params.get("as", "auto")
    decoder = decoder if decoder in known else "auto"
    name = request.path_params["name"]
    key, value = await console.live.run(
        lambda: tuple(decoded(data, WHOLE, decoder, known) for data in (record.key, record.value))
    )
    return render(
        request,
        "message.html",
        title=f"{name}-{record.partition} at {record.offset}",
        tab="messages",
        name=name,
        record=record,
        key=key,
        value=value,
        headers=[(header_key(key, WHOLE), decoded(data, WHOLE // 16)) for key, data in record.headers],
        decoders=list(known),
        decoder=decoder,
        edge=edge,
    )


async def _neighbour(request: Request, go: str) -> Record | None:
    name, partition, offset = (request.path_params[key] for key in ("name", "partition", "offset"))
    found, _ = await console_of(request).live.ask(
        lambda cluster, failures: neighbour(cluster, name, (partition, offset), go, failures)
    )
    return found


async def raw(request: Request) -> Response:
    """`/topics/{name}/messages/{partition}/{offset}/raw`: the value's bytes."""
    record = await _one(request)
    file = f"{record.topic}-{record.partition}-{record.offset}.bin"
    return Response(record.value or b"", media_type="application/octet-stream", headers=as_file(file))


async def _one(request: Request) -> Record:
    name, partition, offset = (request.path_params[key] for key in ("name", "partition", "offset"))
    found, _ = await console_of(request).live.ask(lambda cluster, _: messages.one(cluster, name, partition, offset))
    return found


def as_file(name: str) -> dict[str, str]:
    """The header that makes a browser keep a response as a file."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
