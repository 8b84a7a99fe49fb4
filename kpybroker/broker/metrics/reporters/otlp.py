"""OTLP over HTTP, in protobuf: a POST to `/v1/metrics` for each part of a reading, on the broker's own event loop.

What has been read is encoded in slices and sent as it is encoded. A server that hangs holds one reading, for
`REQUEST_S` a request. What clients have pushed since the last report that arrived is sent after it. Needs the extra
`otlp`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx
import trio
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from kpybroker.broker.metrics.reporters.periodic import ReportError, reason
from kpybroker.metrics.clients.otlp import requests_of_clients
from kpybroker.metrics.otlp import Exported
from kpybroker.metrics.spelling import Spelling

if TYPE_CHECKING:
    from kpybroker.broker.client_metrics.received import Query
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.metrics.reading import Reading

REQUEST_S: Final = 10.0
"""Of the machine's time, as OTEL_EXPORTER_OTLP_TIMEOUT is by default."""
RESPONSE_BYTES_MAX: Final = 64 << 10
MESSAGE_CHARS_MAX: Final = 200
CONTENT_TYPE: Final = "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a report has: the broker's metrics in a spelling, and what clients have pushed, if they can."""

    spelling: Spelling
    read: Callable[[], Awaitable[Sequence[Reading]]]
    clients: Query | None = None


class OtlpReporter:
    """Sends to `url`, with `headers`, which may be secret. `resource` says which broker this is, once that is known."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        sent: Sent,
        resource: Callable[[], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        for name in ("httpx", "httpcore"):  # they log every request
            logging.getLogger(name).setLevel(logging.WARNING)
        self._url = url
        self._headers = {**headers, "Content-Type": CONTENT_TYPE}
        self._sent = sent
        self._resource = resource
        self._clock = clock
        self._start_ns = _nanoseconds(clock)
        self._sent_ms = 0
        """What clients had pushed before has arrived."""
        self._trusted = ssl.create_default_context() if url.startswith("https:") else False

    async def report(self) -> None:
        """Send one reading. Raises ReportError."""
        # Proxies, and what a .netrc says, are not used: the headers are for this server only.
        async with httpx.AsyncClient(
            verify=self._trusted, trust_env=False, follow_redirects=False, timeout=REQUEST_S
        ) as client:
            readings, now_ms = await self._sent.read(), self._clock.time_ms()
            exported = Exported(self._resource(), self._sent.spelling, self._start_ns, _nanoseconds(self._clock))
            rejected = await self._post_all(client, exported.requests(readings))
            if self._sent.clients is not None:
                new = (one for one in self._sent.clients() if one.pushed_ms >= self._sent_ms)
                rejected = await self._post_all(client, requests_of_clients(new)) or rejected
        self._sent_ms = now_ms
        if rejected:
            raise ReportError(rejected)

    async def _post_all(self, client: httpx.AsyncClient, requests: Iterator[ExportMetricsServiceRequest | None]) -> str:
        rejected = ""
        for request in requests:
            if request is None:
                await trio.lowlevel.checkpoint()
            else:
                rejected = await self._post(client, request.SerializeToString()) or rejected
        return rejected

    async def _post(self, client: httpx.AsyncClient, content: bytes) -> str:
        """What the server says of points that it does not take; empty if it takes all."""
        body = b""
        try:
            with trio.fail_after(REQUEST_S):
                async with client.stream("POST", self._url, content=content, headers=self._headers) as response:
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > RESPONSE_BYTES_MAX:
                            raise ReportError(f"its response is larger than {RESPONSE_BYTES_MAX} bytes")
        except trio.TooSlowError:
            raise ReportError(f"no response within {REQUEST_S:g} s") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ReportError(_plain(reason(error))) from None
        if not response.is_success:
            raise ReportError(f"HTTP {response.status_code} {_plain(response.reason_phrase)}".rstrip())
        return _rejected(body)


def _rejected(body: bytes) -> str:
    try:
        partial = ExportMetricsServiceResponse.FromString(body).partial_success
    except DecodeError:
        return "its response is not OTLP: is this the port for OTLP over HTTP?"
    if not partial.rejected_data_points:
        return ""
    return f"{partial.rejected_data_points} points were rejected: {_plain(partial.error_message)}"


def _plain(text: str) -> str:
    """A line of bounded length of what another program wrote."""
    return "".join(character if character.isprintable() else "?" for character in text[:MESSAGE_CHARS_MAX])


def _nanoseconds(clock: Clock) -> int:
    return clock.time_ms() * 1_000_000
