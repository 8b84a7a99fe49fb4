"""The last requests that the brokers received: as they arrived, with their responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import trio

from kpybroker.control.errors import ControlError
from kpybroker.control.methods.faults import check_timeout
from kpybroker.control.registry import JSON, methods
from kpybroker.control.requests.request_log import Entry, RequestLog
from kpybroker.control.rules.errors import FaultError
from kpybroker.control.rules.fields import apis, texts

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

LIMIT_MAX = 10_000


async def requests(
    hosted: Hosted,
    api: str | int | list[str | int] | None = None,
    client_id: str | list[str] | None = None,
    broker: int | None = None,
    since: int | None = None,
    limit: int = 1000,
    bodies: bool = True,
) -> JSON:
    """The newest `limit` requests, oldest first; `since` is an `id` after which they begin. `bodies` decodes them."""
    if not 0 < limit <= LIMIT_MAX:
        raise ControlError(f"requests: `limit` is {limit}", f"give 1 to {LIMIT_MAX}")
    found = list(_found(hosted, api, client_id, broker, since or 0))
    listed = []
    for entry in found[-limit:]:
        listed.append(entry.as_json(bodies=bodies))
        await trio.lowlevel.checkpoint()  # decoding may take a millisecond each
    return listed


async def clear_requests(hosted: Hosted) -> JSON:
    """Forget all requests; ids go on."""
    hosted.part(RequestLog).clear()


async def wait_requests(
    hosted: Hosted,
    api: str | int | list[str | int] | None = None,
    client_id: str | list[str] | None = None,
    count: int = 1,
    timeout_ms: int = 10_000,
    broker: int | None = None,
    since: int | None = None,
) -> JSON:
    """Wait until so many such requests have arrived; returns how many there are."""
    log = hosted.part(RequestLog)
    arrived = 0
    with trio.move_on_after(check_timeout("wait_requests", timeout_ms)):
        while (arrived := sum(1 for _ in _found(hosted, api, client_id, broker, since or 0))) < count:
            await log.wait_change()
        return {"count": arrived}
    raise ControlError(
        f"{arrived} such requests have arrived within {timeout_ms} ms, not {count}",
        "look at `requests` for what arrived instead",
        status=408,
    )


def _found(
    hosted: Hosted,
    api: str | int | list[str | int] | None,
    client_id: str | list[str] | None,
    broker: int | None,
    since: int,
) -> Iterator[Entry]:
    try:
        keys = None if api is None else apis(api, "api")
        is_client = None if client_id is None else texts(client_id, "client_id")
    except FaultError as error:
        raise ControlError(error.cause, error.fix) from error
    for entry in hosted.part(RequestLog):
        header = entry.header
        if (
            entry.id > since
            and (keys is None or header.api_key in keys)
            and (is_client is None or is_client(header.client_id or ""))
            and (broker is None or entry.broker_id == broker)
        ):
            yield entry


METHODS = methods(requests, clear_requests, wait_requests)
