"""The last requests that the brokers received: as they arrived, with their responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of the requests; by default all."""

    api: str | int | list[str | int] | None = None
    client_id: str | list[str] | None = None
    broker: int | None = None
    since: int | None = None

    def of(self, log: RequestLog) -> Iterator[Entry]:
        """Those that the log has now. Raises ControlError."""
        try:
            keys = None if self.api is None else apis(self.api, "api")
            is_client = None if self.client_id is None else texts(self.client_id, "client_id")
        except FaultError as error:
            raise ControlError(error.cause, error.fix) from error
        for entry in log:
            header = entry.header
            if (
                entry.id > (self.since or 0)
                and (keys is None or header.api_key in keys)
                and (is_client is None or is_client(header.client_id or ""))
                and (self.broker is None or entry.broker_id == self.broker)
            ):
                yield entry


ALL = Selection()


async def requests(hosted: Hosted, selection: Selection = ALL, limit: int = 1000, bodies: bool = True) -> JSON:
    """The newest `limit` requests, oldest first; `since` is an `id` after which they begin. `bodies` decodes them."""
    if not 0 < limit <= LIMIT_MAX:
        raise ControlError(f"requests: `limit` is {limit}", f"give 1 to {LIMIT_MAX}")
    if selection.broker is not None:
        hosted.plan(selection.broker)  # raises if there is none
    found = list(selection.of(hosted.part(RequestLog)))
    listed = []
    for entry in found[-limit:]:
        listed.append(entry.as_json(bodies=bodies))
        await trio.lowlevel.checkpoint()  # decoding may take a millisecond each
    return listed


async def clear_requests(hosted: Hosted) -> JSON:
    """Forget all requests; ids go on."""
    hosted.part(RequestLog).clear()


async def wait_requests(hosted: Hosted, selection: Selection = ALL, count: int = 1, timeout_ms: int = 10_000) -> JSON:
    """Wait until so many such requests have arrived; returns how many there are, and how many of any kind were dropped.

    The log is bounded: `dropped` are those that it has forgotten since it was cleared.
    """
    log = hosted.part(RequestLog)
    arrived = 0
    with trio.move_on_after(check_timeout("wait_requests", timeout_ms)):
        while (arrived := sum(1 for _ in selection.of(log))) < count:
            await log.wait_change()
        return {"count": arrived, "dropped": log.dropped}
    raise ControlError(
        f"{arrived} such requests have arrived within {timeout_ms} ms, not {count}",
        "look at `requests` for what arrived instead",
        status=408,
    )


METHODS = methods(requests, clear_requests, wait_requests)
