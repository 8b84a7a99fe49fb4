"""A topic's messages as a file: exactly those of a page's query, or all that its filters accept."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.records.record import Record
from kpybroker.console.pages.messages import Query, as_file, query_of
from kpybroker.console.queries.records import downloads
from kpybroker.console.queries.records.listing import Place, is_descending, placed, scan_of
from kpybroker.console.web.context import Console, console_of

logger = logging.getLogger("kpybroker.console")


async def download(request: Request) -> Response:
    """`/topics/{name}/download.{form}`: the messages of the page's query; with `all=1`, all from where it begins."""
    console, query, form = console_of(request), query_of(request), request.path_params["form"]
    if form not in downloads.FORMS:
        raise usage(f"{form[:20]!r} is no form of a download", f"one of {', '.join(downloads.FORMS)}")
    is_whole = bool(request.query_params.get("all"))
    if is_whole:
        query.wanted = query.wanted._replace(limit=downloads.RECORDS_MAX, cursor=None)
    place, _ = await console.live.ask(lambda cluster, _: placed(cluster, query.wanted, query.has_filter))
    media, lines = downloads.FORMS[form]
    chunks = lines(_records(console, query, place, is_whole), console.registry)
    return Download(chunks, media_type=media, headers=as_file(f"{query.wanted.topic}.{form}"))


class Download(StreamingResponse):
    """A file that is never cut in silence: where it would be, the connection breaks off, which browsers report."""

    async def stream_response(self, send: Send) -> None:
        """Send the file; its end is left out after a failure."""
        try:
            await super().stream_response(send)
        except CommandError as error:
            logger.warning("A download breaks off: %s; %s", error.cause, error.fix)


def _records(console: Console, query: Query, place: Place, is_whole: bool) -> Iterator[Record]:
    """In the order of the page. Raises CommandError at a limit."""
    found = _found(console, query, place, is_whole)
    return iter(list(found)[::-1]) if place.is_older != is_descending(query.wanted) else found


def _found(console: Console, query: Query, place: Place, is_whole: bool) -> Iterator[Record]:
    deadline = time.monotonic() + downloads.S_MAX
    count = 0
    with scan_of(console.live.settings, query.wanted, place, query.accepts) as scan:

        def stop() -> bool:
            return time.monotonic() > deadline or scan.scanned_bytes > downloads.BYTES_MAX

        for record in scan.records(stop):
            yield record
            count += 1
            if count == query.wanted.limit:
                break
        if (is_whole or count < query.wanted.limit) and not place.timeline.is_done:
            limits = f"{downloads.RECORDS_MAX} messages, {downloads.BYTES_MAX >> 20} MiB or {downloads.S_MAX:g} seconds"
            raise CommandError(f"it would be more than {limits}", "kpybroker topic consume -f json has no limit")
