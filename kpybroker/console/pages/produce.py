"""Messages into a topic: a form, a copy of a message in it, and the lines of a download."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import Record
from kpybroker.console.queries import bulk, messages, produce
from kpybroker.console.queries.records import fields
from kpybroker.console.queries.records.cursors import read_cursor
from kpybroker.console.queries.records.fields import Field
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import read_change, status_of, whole_number

LINES_MAX: Final = 1 << 20
"""Characters of JSON lines that a form keeps after an error."""
NO_FIELDS: Final[Mapping[str, str]] = dict.fromkeys(("key", "key_as", "value", "value_as", "headers", "partition"), "")


async def produce_form(request: Request) -> Response:
    """`GET /topics/{name}/produce`; `like=PARTITION.OFFSET` fills the form with a message."""
    name = request.path_params["name"]
    like = read_cursor(request.query_params.get("like", ""))
    if not like:
        return _produce_page(request, NO_FIELDS)
    ((partition, offset),) = list(like.items())[:1]
    record, _ = await console_of(request).live.ask(lambda cluster, _: messages.one(cluster, name, partition, offset))
    return _produce_page(request, _fields_of(record))


def _fields_of(record: Record) -> dict[str, str]:
    key, value = fields.field_of(record.key, is_one_line=True), fields.field_of(record.value)
    found = {"key": key.text, "key_as": key.kind, "value": value.text, "value_as": value.kind}
    return {**NO_FIELDS, **found, "headers": fields.lines_of(record.headers)}


def _produce_page(request: Request, typed: Mapping[str, str], **more: Any) -> Response:
    name = request.path_params["name"]
    context = {"sent": None, "error": None, "status": 200, "lines": "", **more}
    context |= {"is_refused": context["status"] == 403, "kinds": fields.KINDS}
    return render(request, "produce.html", title=f"{name}: produce", tab="produce", name=name, fields=typed, **context)


async def send(request: Request) -> Response:
    """`POST /topics/{name}/produce`"""
    form = await read_change(request)
    name = request.path_params["name"]
    typed = {key: form.get(key, "") for key in NO_FIELDS}

    def work(cluster: Cluster, _: object) -> tuple[int, int]:
        partition = whole_number(form, "partition", -1, 0, 10**6)
        message = produce.Message(
            name,
            fields.encoded("key", Field(typed["key_as"], typed["key"]), is_key=True),
            fields.encoded("value", Field(typed["value_as"], typed["value"])),
            fields.parse_headers(typed["headers"]),
            None if partition < 0 else partition,
        )
        return produce.produce(cluster, message)

    try:
        (partition, offset), _ = await console_of(request).live.ask(work)
    except CommandError as error:
        return _produce_page(request, typed, error=error, status=status_of(error))
    return RedirectResponse(f"/topics/{quote(name)}/messages/{partition}/{offset}", 303)


async def send_all(request: Request) -> Response:
    """`POST /topics/{name}/produce-lines`: the JSON lines of a download."""
    form, name = await read_change(request), request.path_params["name"]

    def work(cluster: Cluster, _: object) -> bulk.Sent:
        return bulk.send(cluster, bulk.parse(name, form.get("lines", ""), bool(form.get("keep"))))

    try:
        sent, _ = await console_of(request).live.ask(work)
    except CommandError as error:
        return _produce_page(
            request, NO_FIELDS, error=error, status=status_of(error), lines=form.get("lines", "")[:LINES_MAX]
        )
    return _produce_page(request, NO_FIELDS, sent=sent)
