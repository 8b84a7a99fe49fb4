"""Forms: read with a limit, and trusted only with the token of the browser's session."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.connect.visible import visible
from kpybroker.client.schemas.http import FORBIDDEN, UNAUTHORIZED, BadStatus
from kpybroker.console.queries.connect.rest import NOT_FOUND
from kpybroker.console.queries.topics import NoTopic
from kpybroker.console.web.context import console_of
from kpybroker.console.web.permissions import REFUSED

logger = logging.getLogger("kpybroker.console.changes")

FORM_BYTES_MAX: Final = 16 * 1024 * 1024
LOGIN_BYTES_MAX: Final = 16 * 1024
"""Of a form that a browser without a login may send."""
FIELDS_MAX: Final = 2000
NOT_THERE: Final = frozenset(("GROUP_ID_NOT_FOUND", NOT_FOUND))


async def read_form(request: Request, bytes_max: int = FORM_BYTES_MAX) -> dict[str, str]:
    """The fields by name; of a repeated one the last. Raises HTTPException for a form that is not this session's."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise HTTPException(413, f"a form of more than {bytes_max} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise HTTPException(400, "a form that cannot be read") from None
    form = dict(pairs)
    console = console_of(request)
    if not console.sessions.is_token(request.state.session, form.pop("token", None), console.name):
        raise HTTPException(403, "this form is from another session: load the page again")
    return form


async def read_change(request: Request) -> dict[str, str]:
    """The fields of a form that changes the cluster. Raises HTTPException without --allow-changes."""
    form = await read_form(request)
    path = console_of(request).prefix + request.url.path + (f"?{request.url.query}" if request.url.query else "")
    who = f"path={path} user={request.state.user or '-'} from={request.state.address}"
    if not console_of(request).options.allow_changes:
        logger.warning("Change refused, the console is read-only %s", visible(who))
        raise HTTPException(403, "this console is read-only; --allow-changes lets it change the cluster")
    logger.info("Change asked for %s", visible(who))
    return form


def whole_number(fields: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A field as a number within bounds. Raises CommandError."""
    text = fields.get(name, "").strip()
    if not text:
        return default
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 20:
        raise usage(f"{name} is not a whole number: {text[:50]!r}", f"write one from {low} to {high}")
    if not low <= int(text) <= high:
        raise usage(f"{name} is {text}", f"write a number from {low} to {high}")
    return int(text)


def status_of(error: CommandError) -> int:
    """400 for the reader's input, 403 for a missing permission, 404 for what is not there, 503 for the cluster."""
    if isinstance(error, NoTopic) or error.name in NOT_THERE:
        return 404
    return 400 if is_bad_input(error) else 403 if is_refused(error) else 503


def is_refused(error: CommandError) -> bool:
    """Whether a right is missing, of the cluster or of the schema registry."""
    if isinstance(error, BadStatus):
        return error.status in (UNAUTHORIZED, FORBIDDEN)
    return REFUSED in error.cause


def is_bad_input(error: CommandError) -> bool:
    """Whether the reader's input is the cause."""
    return error.exit_code == 2
