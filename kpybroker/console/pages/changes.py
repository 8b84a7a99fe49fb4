"""Changes: one page for all of them. A form, then its preview, which changes nothing, then what became of it.

What is done is what the preview showed: the form carries its rows with a signature, and is refused where something has
changed since. Each change is a line of the console's log: what, who, from where, and how it ended.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import EXIT_USAGE, CommandError, Failures, hide, keep_secret, usage
from kpybroker.client.connect.visible import visible
from kpybroker.client.schemas.http import shown
from kpybroker.console.changes.catalogue import CHANGES
from kpybroker.console.changes.change import OF_PLUGIN, WOULD, Ask, Change, Field, InField, InFields, Key, Rows
from kpybroker.console.web.context import Asked as Typed
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import is_refused, read_change, status_of
from kpybroker.console.web.live import CLUSTER, CONNECT, Asked, Notes

logger = logging.getLogger("kpybroker.console.changes")

ROWS_MAX: Final = 500
"""Rows of a preview that are shown; all are done."""
AGAIN: Final = "typed_again"


class Changed(CommandError):
    """What a preview showed is not so any more."""


class Previewed(NamedTuple):
    """A form with its preview, or with why there is none."""

    values: Mapping[str, str]
    rows: Rows | None = None
    notes: Notes | None = None
    error: CommandError | None = None
    is_done: bool = False
    status: int = 200


def _ask(request: Request, values: Mapping[str, str], cluster: Cluster, failures: Failures) -> Ask:
    console = console_of(request)
    return Ask(cluster, values, failures, console.subjects, console.connects)


def change_of(request: Request) -> Change:
    """The change that the path names."""
    found = CHANGES.get(request.path_params["key"])
    if found is None:
        raise HTTPException(404)
    return found


async def form(request: Request) -> Response:
    """`GET /change/{key}`: the form; with `preview=1` what would be done."""
    change = change_of(request)
    given = {name: text for name, text in request.query_params.items() if not change.is_secret(name)}
    values = change.read(given)
    if not given.get("preview"):
        return await _page(request, change, await _filled(request, change, values))
    return await _page(request, change, await _preview(request, change, values))


async def _filled(request: Request, change: Change, values: Mapping[str, str]) -> Previewed:
    """The values of a form that is shown first: what is there now, where nothing was typed."""

    def ask(cluster: Cluster, failures: Failures) -> Mapping[str, str]:
        return change.fill(_ask(request, values, cluster, failures))

    try:
        found, _ = await console_of(request).live.ask(ask, _asked(change))
    except CommandError as error:
        if change.more_fields is None:
            return Previewed(values)  # the preview says why
        return Previewed(values, error=error, status=_status(change, error))
    typed = request.query_params
    there = {name: value if typed.get(name) else found.get(name, value) for name, value in values.items()}
    return Previewed({**found, **there})


def _asked(change: Change) -> Asked:
    return CLUSTER if change.calls is None else CONNECT


async def _preview(request: Request, change: Change, values: Mapping[str, str]) -> Previewed:
    def plan(cluster: Cluster, failures: Failures) -> Rows:
        return change.plan(_ask(request, values, cluster, failures))

    try:
        change.check(values)
        rows, notes = await console_of(request).live.ask(plan, _asked(change))
    except CommandError as error:
        return Previewed(values, error=error, status=_status(change, error))
    return Previewed(values, rows, notes)


def _status(change: Change, error: CommandError) -> int:
    if is_refused(error):
        return 403
    return 409 if isinstance(error, Changed) else 400 if change.fields_of(error) else status_of(error)


async def perform(request: Request) -> Response:
    """`POST /change/{key}`: what the preview showed."""
    fields = await read_change(request)
    change = change_of(request)
    values = change.read(fields)
    keep_secret(text for name, text in values.items() if change.is_secret(name))
    console = console_of(request)
    if not console.is_signed(request.state.session, _signed(change, values, fields), fields.get("signature")):
        raise usage("this form has no plan", "begin with the preview")
    previewed: Rows = json.loads(fields["plan"])
    try:
        _check_end(change, values, fields)

        def work(cluster: Cluster, failures: Failures) -> Rows:
            ask = _ask(request, values, cluster, failures)
            _check_same(change, previewed, change.plan(ask))
            return change.perform(ask, previewed)

        rows, notes = await console.live.ask(work, _asked(change))
    except CommandError as error:
        _log(request, change, (values, previewed), f"refused cause={error.cause!r}")
        again = await _preview(request, change, values)
        return await _page(request, change, again._replace(error=error, status=_status(change, error)))
    failed = sum(bool(row.get("error")) for row in rows)
    _log(request, change, (values, rows), f"failed items={failed}" if failed else "done")
    return await _page(request, change, Previewed(values, rows, notes, is_done=True))


def _check_end(change: Change, values: Mapping[str, str], fields: Mapping[str, str]) -> None:
    """What is typed at the end: a secret, and again the name of what is deleted. Raises CommandError."""
    for one in change.fields:
        if one.kind == "secret" and one.is_required and not values[one.name]:
            raise InField(one.name, usage(f"{one.label} is missing", "fill it in"))
    name = change.name_again(values)
    if name and fields.get(AGAIN, "") != name:
        cause = f"the name that was typed again is not {name}"
        raise InField(AGAIN, usage(cause, "type the name of what is deleted, exactly; nothing was done"))


def _check_same(change: Change, shown: Rows, now: Rows) -> None:
    """Raises CommandError where what was shown has changed since."""
    before, after = ([[row.get(key) for key in change.same] for row in rows] for rows in (shown, now))
    if before != json.loads(json.dumps(after)):
        raise Changed("this has changed since the preview; nothing was done", "look at the new preview below")


def _signed(change: Change, values: Mapping[str, str], fields: Mapping[str, str]) -> str:
    """What a signature is of: the change, what was typed, and the rows that were shown."""
    return json.dumps([change.key, _open(change, values), fields.get("plan", "")])


def _open(change: Change, values: Mapping[str, str]) -> dict[str, str]:
    """What was typed, without secrets, in the order of the names that a plugin has."""
    own = {one.name for one in change.fields}
    names = [*(one.name for one in change.fields), *sorted(name for name in values if name not in own)]
    return {name: values[name] for name in names if not change.is_secret(name)}


def command_of(request: Request, change: Change, values: Mapping[str, str], rows: Rows) -> str:
    """The command that does the same, with this console's cluster, registry and Kafka Connect."""
    console = console_of(request)
    if change.calls is not None:
        named = console.connects.get(values["connect"]) or next(iter(console.connects.values()), None)
        return change.connect_text(values, rows, "" if named is None else named.url)
    registry = "" if console.subjects is None else shown(console.subjects.url)
    return change.command_text(values, console.live.settings.bootstrap, registry)


def _log(request: Request, change: Change, found: tuple[Mapping[str, str], Rows], outcome: str) -> None:
    command = command_of(request, change, *found)
    user, address = request.state.user or "-", request.state.address
    name = console_of(request).name
    where = f"cluster={name} " if name else ""
    text = f"Change key={change.key} {where}user={user} from={address} command={command!r} outcome={outcome}"
    logger.info("%s", visible(hide(text)))


async def _page(request: Request, change: Change, found: Previewed) -> Response:
    console, values = console_of(request), found.values
    plan = json.dumps(found.rows) if found.rows is not None else ""
    signature = console.sign(request.state.session, _signed(change, values, {"plan": plan}))
    keys, missing = ([], "") if found.is_done else await _looked_up(request, change, values)
    fields = [*change.fields, *await _more_fields(request, change, found)]
    filled = {name: value or "..." for name, value in values.items()}
    title = change.title.format_map(filled) if any(values.values()) else _untitled(change.title)
    wrong = {} if found.error is None else change.fields_of(found.error)
    context: dict[str, Any] = {
        "change": change,
        "values": Typed(values),
        "rows": found.rows,
        "changing": sum(str(row["status"]).startswith(WOULD) for row in found.rows or ()),
        "limit": ROWS_MAX,
        "wrong": wrong,
        "alert_of": _alert(change, found, wrong, fields),
        "open_fields": [one for one in fields if not change.is_secret(one.name)],
        "secret_fields": [one for one in fields if change.is_secret(one.name)],
        "hidden": _open(change, values),
        "is_refused": found.status == 403,
        "is_done": found.is_done,
        "notes": found.notes,
        "plan": plan,
        "signature": signature,
        "command": command_of(request, change, values, found.rows or []),
        "button": change.button.format_map(filled),
        "back": change.back(values) if any(values.values()) else "/",
        "keys": keys,
        "missing": missing,
        "needs": change.needs,
        "again": AGAIN,
        "name_again": change.name_again(values),
    }
    return render(request, "change.html", status=found.status, title=title, **context)


def _alert(change: Change, found: Previewed, wrong: Mapping[str, str], fields: Sequence[Field]) -> CommandError | None:
    """The error that is said above the form: one that is of no field, or of fields that are not on the page."""
    if found.error is None:
        return None
    is_end = found.rows is not None
    shown = {one.name for one in fields if is_end or not change.is_secret(one.name)} | ({AGAIN} if is_end else set())
    unseen = {field: text for field, text in wrong.items() if field not in shown}
    if not wrong:
        return found.error
    if AGAIN in unseen or not isinstance(found.error, InFields):
        return found.error if unseen else None
    text = "; ".join(f"{field.removeprefix(OF_PLUGIN)}: {why}" for field, why in unseen.items())
    return CommandError(text, found.error.fix) if unseen else None


async def _more_fields(request: Request, change: Change, found: Previewed) -> Sequence[Field]:
    """The fields of a plugin, and of every key that was typed, so that it stays where no plugin is known."""
    if change.more_fields is None or found.is_done:
        return ()
    fields = await _of_plugin(request, change.more_fields, found)
    known = {one.name for one in fields}
    typed = [name for name in found.values if name.startswith(OF_PLUGIN) and name not in known]
    return [*fields, *(Field(name, name.removeprefix(OF_PLUGIN)) for name in typed)]


async def _of_plugin(request: Request, more: Callable[[Ask], Sequence[Field]], found: Previewed) -> Sequence[Field]:
    """None where what has failed already would have to say, and where there is no such plugin."""
    if found.error is not None and found.error.exit_code != EXIT_USAGE:
        return ()

    def ask(cluster: Cluster, failures: Failures) -> Sequence[Field]:
        return more(_ask(request, found.values, cluster, failures))

    try:
        fields, _ = await console_of(request).live.ask(ask, CONNECT)
    except CommandError:
        return ()
    return fields


def _untitled(title: str) -> str:
    """The title of a form in which nothing was typed: without what is named."""
    return re.sub(r" \{(\w+)\}", r" a \1", title)


async def _looked_up(request: Request, change: Change, values: Mapping[str, str]) -> tuple[list[Key], str]:
    """The keys that the form's reader may look up, and why the cluster cannot do this at all; nothing where the cluster
    does not say.
    """

    def ask(cluster: Cluster, failures: Failures) -> tuple[list[Key], str]:
        asked = _ask(request, values, cluster, failures)
        missing = change.missing(asked)
        return [] if missing else list(change.keys(asked)), missing

    try:
        found, _ = await console_of(request).live.ask(ask)
    except CommandError:
        return [], ""
    return found
