"""OTLP over HTTP, in protobuf: a POST to `/v1/metrics` for each part of a reading, on the broker's own event loop.

What has been read is encoded in slices and sent as it is encoded. A server that hangs holds one reading, for
`REQUEST_S` a request. Needs the extra `otlp`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import httpx
import trio
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from kpybroker.broker.metrics.reporters.periodic import ReportError, reason
from kpybroker.metrics.otlp import Exported
from kpybroker.metrics.spelling import Spelling

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.metrics.reading import Reading

REQUEST_S: Final = 10.0
"""Of the machine's time, as OTEL_EXPORTER_OTLP_TIMEOUT is by default."""
RESPONSE_BYTES_MAX: Final = 64 << 10
MESSAGE_CHARS_MAX: Final = 200
CONTENT_TYPE: Final = "application/x-protobuf"


class OtlpReporter:
    """Sends to `url`, with `headers`, which may be secret. `resource` says which broker this is, once that is known."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        spelling: Spelling,
        read: Callable[[], Awaitable[Sequence[Reading]]],
        resource: Callable[[], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        for name in ("httpx", "httpcore"):  # they log every request
            logging.getLogger(name).setLevel(logging.WARNING)
        self._url = url
        self._headers = {**headers, "Content-Type": CONTENT_TYPE}
        self._spelling = spelling
        self._read = read
        self._resource = resource
        self._clock = clock
        self._start_ns = _nanoseconds(clock)
        self._trusted = ssl.create_default_context() if url.startswith("https:") else False

    async def report(self) -> None:
        """Send one reading. Raises ReportError."""
        # Proxies, and what a .netrc says, are not used: the headers are for this server only.
        async with httpx.AsyncClient(
            verify=self._trusted, trust_env=False, follow_redirects=False, timeout=REQUEST_S
        ) as client:
            readings = await self._read()
            exported = Exported(self._resource(), self._spelling, self._start_ns, _nanoseconds(self._clock))
            rejected = ""
            for request in exported.requests(readings):
                if request is None:
                    await trio.lowlevel.checkpoint()
                else:
                    rejected = await self._post(client, request.SerializeToString()) or rejected
        if rejected:
            raise ReportError(rejected)

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
