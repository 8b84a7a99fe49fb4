"""Messages of a topic: read, followed, downloaded, one of them, and produced."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.records import json_lines
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.records.record import Record, key_bytes
from kpybroker.client.schemas.registry import Patience, Registry
from kpybroker.console.queries import bulk, messages, produce
from kpybroker.console.queries.decoding import DECODERS, Decoder, decoded, header_key, parsed_by, with_schemas
from kpybroker.console.queries.filters import Accepts, Filters, compiled
from kpybroker.console.queries.messages import Reading, Selection
from kpybroker.console.web.context import Console, console_of, render
from kpybroker.console.web.follow import Following
from kpybroker.console.web.forms import read_change, status_of, whole_number

PREVIEW: Final = 400
KEY_PREVIEW: Final = 120
WHOLE: Final = 256 * 1024
"""Characters of a value in a list, of a key or header in it, and of a message's own page."""
HEADERS_SHOWN: Final = 20
LINES_MAX: Final = 1 << 20
"""Characters of JSON lines that a form keeps after an error."""
DOWNLOAD_RECORDS_MAX: Final = 100_000
DOWNLOAD_BYTES_MAX: Final = 256 << 20
DOWNLOAD_S_MAX: Final = 120.0
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
FIELDS: Final = ("start", "at", "partitions", "limit", "key", "value", "header", "path", "as")


class Query:
    """What the page's form asks for."""

    def __init__(self, topic: str, fields: Mapping[str, str], registry: Registry | None) -> None:
        self.fields = {name: fields.get(name, "") for name in FIELDS}
        start = fields.get("start") or "latest"
        if start not in messages.STARTS:
            raise usage(f"{start[:50]!r} is no place to start", f"one of {', '.join(messages.STARTS)}")
        limit = whole_number(fields, "limit", 50, 1, messages.SHOWN_MAX)
        cursor = messages.read_cursor(fields.get("cursor", ""))
        self.wanted = Selection(topic, start, fields.get("at", "").strip(), fields.get("partitions", ""), limit, cursor)
        self.filters = Filters(*(fields.get(name, "") for name in ("key", "value", "header", "path")))
        self.accepts: Accepts = compiled(self.filters, parsed_by(registry and Patience(registry)))
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

    def work(cluster: Cluster, _: object) -> tuple[messages.Read, list[dict[str, Any]]]:
        found = messages.read(cluster, query.wanted, query.accepts, query.has_filter)
        return found, [row(record, query.decoder, known) for record in found.records]

    (found, rows), notes = await console_of(request).live.ask(work)
    cursor = messages.write_cursor(found.cursor)
    is_onward = query.wanted.start != "latest" and not found.is_at_end and len(cursor) < 6000
    return render(
        request,
        "messages.html",
        title=f"{query.wanted.topic}: messages",
        tab="messages",
        name=query.wanted.topic,
        query=query,
        found=found,
        rows=rows,
        undecoded=next((one.note for each in rows for one in (each["key"], each["value"]) if one.note), ""),
        onward=query.text(cursor=cursor) if is_onward else None,
        follow=f"/topics/{quote(query.wanted.topic)}/follow?{query.text()}",
        decoders=list(known),
        starts=messages.STARTS,
        notes=notes,
    )


async def follow(request: Request) -> Response:
    """`/topics/{name}/follow`: rows of the list as server-sent events, from now on or from where the browser was."""
    console, query = console_of(request), query_of(request)
    cursor = messages.read_cursor(request.headers.get("last-event-id", "").strip())
    wanted = query.wanted._replace(start="offset", at="-0") if cursor is None else query.wanted._replace(cursor=cursor)
    span, _ = await console.live.ask(lambda cluster, _: messages.spans(cluster, wanted, 1))
    begin = partial(Reading, console.live.settings, wanted.topic, span, is_endless=True)
    return Following(begin, query.accepts, partial(_row_html, console, wanted.topic, query.decoder))


def _row_html(console: Console, topic: str, decoder: str, record: Record) -> str:
    return console.text("message_row.html", name=topic, one=row(record, decoder, decoders(console.registry)))


async def one(request: Request) -> Response:
    """`/topics/{name}/messages/{partition}/{offset}`"""
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
    )


async def raw(request: Request) -> Response:
    """`/topics/{name}/messages/{partition}/{offset}/raw`: the value's bytes."""
    record = await _one(request)
    file = f"{record.topic}-{record.partition}-{record.offset}.bin"
    return Response(record.value or b"", media_type="application/octet-stream", headers=_as_file(file))


async def _one(request: Request) -> Record:
    name, partition, offset = (request.path_params[key] for key in ("name", "partition", "offset"))
    found, _ = await console_of(request).live.ask(lambda cluster, _: messages.one(cluster, name, partition, offset))
    return found


def _as_file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}


async def download(request: Request) -> Response:
    """`/topics/{name}/download.{form}`: the messages that the filters accept, as JSON lines or CSV."""
    console, query, form = console_of(request), query_of(request), request.path_params["form"]
    if form not in FORMS:
        raise usage(f"{form[:20]!r} is no form of a download", f"one of {', '.join(FORMS)}")
    wanted = query.wanted
    span, _ = await console.live.ask(lambda cluster, _: messages.spans(cluster, wanted, wanted.limit))
    media, lines = FORMS[form]
    chunks = lines(_downloaded(console, wanted, span, query.accepts))
    return StreamingResponse(chunks, media_type=media, headers=_as_file(f"{wanted.topic}.{form}"))


def _downloaded(
    console: Console, wanted: Selection, span: dict[tuple[str, int], Bounds], accepts: Accepts
) -> Iterator[Record]:
    deadline = time.monotonic() + DOWNLOAD_S_MAX
    count = 0
    with Reading(console.live.settings, wanted.topic, span) as reading:
        while not reading.is_done and time.monotonic() < deadline and reading.scanned_bytes < DOWNLOAD_BYTES_MAX:
            for record in filter(accepts, reading.next(messages.BATCH)):
                yield record
                count += 1
            if count >= DOWNLOAD_RECORDS_MAX:
                return


def _json_lines(records: Iterator[Record]) -> Iterator[bytes]:
    yield from map(json_lines.dump, records)


def _csv(records: Iterator[Record]) -> Iterator[bytes]:
    """Bytes that are not UTF-8 are base64. A cell that a spreadsheet would take for a formula gets an apostrophe."""
    yield _csv_line(("partition", "offset", "timestamp", "key", "value", "headers"))
    for record in records:
        found = json_lines.row(record)
        cells = [found["partition"], found["offset"], found["timestamp"], _cell(found["key"]), _cell(found["value"])]
        headers = " ".join(f"{_cell(one['key'])}={_cell(one['value'])}" for one in found["headers"])
        yield _csv_line((*cells, _cell(headers)))


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else str(value[json_lines.BASE64])
    return f"'{text}" if text.startswith(FORMULA) else text


def _csv_line(cells: tuple[Any, ...]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode(errors="replace")


FORMS: Final = {"jsonl": ("application/jsonl", _json_lines), "csv": ("text/csv", _csv)}


async def produce_form(request: Request) -> Response:
    """`GET /topics/{name}/produce`; `like=PARTITION.OFFSET` fills the form with a message."""
    name = request.path_params["name"]
    fields = {"key": "", "value": "", "headers": "", "partition": ""}
    like = messages.read_cursor(request.query_params.get("like", ""))
    if like:
        ((partition, offset),) = list(like.items())[:1]
        record, _ = await console_of(request).live.ask(
            lambda cluster, _: messages.one(cluster, name, partition, offset)
        )
        fields |= _fields_of(record)
    return _produce_page(request, fields)


def _fields_of(record: Record) -> dict[str, str]:
    try:
        pairs = [(key_bytes(key).decode(), value) for key, value in record.headers]
        headers = "\n".join(key if value is None else f"{key}={value.decode()}" for key, value in pairs)
        return {"key": (record.key or b"").decode(), "value": (record.value or b"").decode(), "headers": headers}
    except UnicodeDecodeError:
        raise CommandError(
            "this message is no text, so a form cannot send it", "kpybroker topic produce can", 2
        ) from None


def _produce_page(request: Request, fields: Mapping[str, str], **more: Any) -> Response:
    name = request.path_params["name"]
    context = {"sent": None, "error": None, "status": 200, "lines": "", **more}
    context["is_refused"] = context["status"] == 403
    return render(request, "produce.html", title=f"{name}: produce", tab="produce", name=name, fields=fields, **context)


async def send(request: Request) -> Response:
    """`POST /topics/{name}/produce`"""
    form = await read_change(request)
    name = request.path_params["name"]

    def work(cluster: Cluster, _: object) -> tuple[int, int]:
        partition = whole_number(form, "partition", -1, 0, 10**6)
        message = produce.Message(
            name,
            None if form.get("key_null") else form.get("key", "").encode(errors="replace"),
            None if form.get("value_null") else form.get("value", "").encode(errors="replace"),
            produce.parse_headers(form.get("headers", "")),
            None if partition < 0 else partition,
        )
        return produce.produce(cluster, message)

    try:
        (partition, offset), _ = await console_of(request).live.ask(work)
    except CommandError as error:
        fields = {key: form.get(key, "") for key in ("key", "value", "headers", "partition")}
        return _produce_page(request, fields, error=error, status=status_of(error))
    return RedirectResponse(f"/topics/{quote(name)}/messages/{partition}/{offset}", 303)


async def send_all(request: Request) -> Response:
    """`POST /topics/{name}/produce-lines`: the JSON lines of a download."""
    form, name = await read_change(request), request.path_params["name"]
    no_fields = dict.fromkeys(("key", "value", "headers", "partition"), "")

    def work(cluster: Cluster, _: object) -> bulk.Sent:
        return bulk.send(cluster, bulk.parse(name, form.get("lines", ""), bool(form.get("keep"))))

    try:
        sent, _ = await console_of(request).live.ask(work)
    except CommandError as error:
        return _produce_page(
            request, no_fields, error=error, status=status_of(error), lines=form.get("lines", "")[:LINES_MAX]
        )
    return _produce_page(request, no_fields, sent=sent)
