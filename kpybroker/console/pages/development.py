"""What only a development broker has, with `--control`: its requests, a switchboard of faults, its clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.console.queries import control as queries
from kpybroker.console.queries import logs
from kpybroker.console.queries.control import Control, RequestFilter, Switch
from kpybroker.console.web.context import Asked, call_control, console_of, render
from kpybroker.console.web.forms import is_bad_input, read_change, whole_number

ADVANCE_MAX: Final = 36_500
NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})


async def requests(request: Request) -> Response:
    """`/requests`: the newest, decoded."""
    query = request.query_params
    wanted = RequestFilter(query.get("api", "").strip(), query.get("client_id", "").strip(), bool(query.get("failed")))
    rows = await call_control(request, lambda control: queries.requests(control, wanted))
    return render(request, "requests.html", title="Requests", rows=rows, wanted=wanted, limit=queries.SHOWN_MAX)


async def log_lines(request: Request) -> Response:
    """`/logs`: of a development broker; for others the page says why there are none."""
    query = request.query_params
    wanted = logs.Filter(*(query.get(name, "").strip() for name in logs.Filter._fields))
    if wanted.level not in ("", *logs.LEVELS):
        raise usage(f"{wanted.level[:50]!r} is no level", f"one of {', '.join(logs.LEVELS)}")
    rows = None
    if console_of(request).control is not None:
        rows = await call_control(request, lambda control: logs.lines(control, wanted))
    context: dict[str, Any] = {"levels": logs.LEVELS, "limit": logs.SHOWN_MAX, "kept": logs.READ_MAX}
    return render(request, "logs.html", title="Logs", rows=rows, wanted=wanted, **context)


async def faults(request: Request) -> Response:
    """`GET /faults`"""
    return await _faults_page(request)


async def _faults_page(
    request: Request, error: CommandError | None = None, form: Mapping[str, str] = NO_FIELDS
) -> Response:
    rows = await call_control(request, queries.faults)
    status = 200 if error is None else 400
    context: dict[str, Any] = {"rows": rows, "acts": queries.ACTS, "error": error, "typed": Asked(form)}
    return render(request, "faults.html", status=status, title="Faults", **context)


async def change_faults(request: Request) -> Response:
    """`POST /faults`: add one, or those of a text; remove, release, or remove all."""
    form = await read_change(request)
    text = form.get("text", "")
    try:
        await call_control(request, _change(form, text))
    except CommandError as error:
        if not is_bad_input(error):
            raise
        return await _faults_page(request, error, form)
    return RedirectResponse("/faults", 303)


def _change(form: dict[str, str], text: str) -> Callable[[Control], Any]:
    match form.get("do", ""):
        case "add":
            wanted = queries.rule(Switch(*(form.get(name, "") for name in Switch._fields)))
            return lambda control: control.call("add_fault", **wanted)
        case "load":
            return lambda control: control.call("load_faults", text=text[: queries.TEXT_MAX])
        case "remove" | "release" as what:
            number = whole_number(form, "id", 0, 0, 10**9)
            return lambda control: control.call(f"{what}_fault", id=number)
        case "reset":
            return lambda control: control.call("reset")
        case other:
            raise HTTPException(400, f"there is no action {other[:50]!r}")


async def clock(request: Request) -> Response:
    """`GET /clock`"""
    return await _clock_page(request)


async def _clock_page(
    request: Request, error: CommandError | None = None, form: Mapping[str, str] = NO_FIELDS
) -> Response:
    found = await call_control(request, lambda control: control.call("clock"))
    context: dict[str, Any] = {"clock": found, "units": list(queries.UNITS), "error": error}
    context |= {"number": form.get("number", "1"), "unit": form.get("unit", "")}
    return render(request, "clock.html", status=200 if error is None else 400, title="Clock", **context)


async def advance(request: Request) -> Response:
    """`POST /clock`: move it forward."""
    form = await read_change(request)
    try:
        ms = queries.milliseconds(whole_number(form, "number", 0, 0, ADVANCE_MAX), form.get("unit", ""))
        await call_control(request, lambda control: control.call("advance", ms=ms))
    except CommandError as error:
        if not is_bad_input(error):
            raise
        return await _clock_page(request, error, form)
    return RedirectResponse("/clock", 303)
