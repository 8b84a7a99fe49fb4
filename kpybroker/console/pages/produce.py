"""Messages into a topic: a form, a copy of a message in it, and the lines of a download."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import Record, key_bytes
from kpybroker.console.queries import bulk, messages, produce
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import read_change, status_of, whole_number

LINES_MAX: Final = 1 << 20
"""Characters of JSON lines that a form keeps after an error."""


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
