"""Kafka's request log: the logger `kafka.request.logger`, off unless its level is DEBUG or TRACE.

At DEBUG each completed request is a line `Completed request:` with JSON that has Kafka's fields
(``RequestChannel.updateRequestMetrics``), and then the sizes of both frames. At TRACE a line `Received request:`
precedes it, so that requests without a response are seen too. Records, passwords and keys are not in it (`kafka_json`).

It takes the place of what responds to requests, as an interceptor does, and only while it is on
(`Server.respond_with`), so that it costs nothing else. A request or response of so many elements that decoding takes
more than one time slice is shown by its size. Requests of a login (SASL) are not here: gates respond to them, as
Kafka's network threads do.

Times are Kafka's, in milliseconds. `localTimeMs` is time on the event loop; `remoteTimeMs` is the rest up to the
response: waits for replicas, for data, for threads. No queues lie before and after: their times are 0.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from time import perf_counter_ns
from typing import Final

from kpybroker.broker.loop.loop_time import LoopTime
from kpybroker.broker.loop.steps import Pending, Steps, run_steps
from kpybroker.broker.network.response import Response, steps_of
from kpybroker.broker.network.sending import BUFFERS, Part
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.dispatch import RespondNow
from kpybroker.broker.requests.log.kafka_json import connection_json, header_json, message_json
from kpybroker.broker.requests.log.message_walk import JSON
from kpybroker.broker.requests.log_fields import TRACE
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import ANY_ELEMENTS, decode_steps
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, parse_request_header, parse_response_header
from kpybroker.wire.schema import Message

logger = logging.getLogger("kafka.request.logger")

RESPONSE_BYTES_MAX: Final = 1024 * 1024
"""Of a larger response, records in files left out, only the size is shown."""
HOLES_BYTES_MAX: Final = 8 * 1024 * 1024
"""Of records in files: they are zeros when their response is decoded."""


class RequestLogger:
    """`respond_now` takes the place of `inner`, which it calls."""

    def __init__(self, inner: RespondNow) -> None:
        self._inner = inner

    def respond_now(self, frame: bytearray | memoryview, connection: ConnectionInfo) -> Response | Pending[Response]:
        """As `Dispatcher.respond_now`."""
        call = _Call(frame, parse_request_header(frame), connection)
        return run_steps(self._logged(call, steps_of(partial(self._inner, frame, connection))))

    def _logged(self, call: _Call, steps: Steps[Response]) -> Steps[Response]:
        """The line of a response is written when that has been sent."""
        response = yield from call.loop_time.around(steps)
        call.responded_ns, call.local_ns = perf_counter_ns(), call.loop_time.take_ns()
        if response.frame == b"":
            call.complete([])
            return response
        kept = _kept(response.all_parts)
        return Response(None, response.all_parts, (*response.on_sent, partial(call.complete, kept)))


class _Call:
    """One request: what its line says."""

    __slots__ = (
        *("_received_ns", "_request", "_size", "connection", "header"),
        *("local_ns", "loop_time", "responded_ns"),
    )

    def __init__(self, frame: bytearray | memoryview, header: RequestHeader, connection: ConnectionInfo) -> None:
        self._received_ns = self.responded_ns = perf_counter_ns()
        self.local_ns = 0
        self._size = len(frame)
        self.header = header
        self.connection = connection
        self._request = _request_json(frame, header)
        if logger.isEnabledFor(TRACE):
            head = {"isForwarded": False, "requestHeader": header_json(header), "request": self._request}
            tail = {"connection": connection.connection_id, **connection_json(connection)}
            logger.log(TRACE, "Received request:%s", _text({**head, **tail, "requestSizeBytes": self._size}))
        self.loop_time = LoopTime()

    def complete(self, response: list[bytes | int]) -> None:
        """Write the line. `response` is as `_kept` returns it."""
        sent_ns = perf_counter_ns()
        size = sum(part if isinstance(part, int) else len(part) for part in response)
        decoded = _response_json(response, self.header)
        body = decoded if isinstance(decoded, dict) else {}
        line = {
            "isForwarded": False,
            "requestHeader": header_json(self.header),
            "request": self._request,
            "response": decoded,
            "connection": self.connection.connection_id,
            "totalTimeMs": _ms(sent_ns - self._received_ns),
            "requestQueueTimeMs": 0.0,
            "localTimeMs": _ms(self.local_ns),
            "remoteTimeMs": _ms(max(self.responded_ns - self._received_ns - self.local_ns, 0)),
            "throttleTimeMs": body.get("throttleTimeMs", 0),
            "responseQueueTimeMs": 0.0,
            "sendTimeMs": _ms(sent_ns - self.responded_ns),
            **connection_json(self.connection),
            "requestSizeBytes": self._size,
            "responseSizeBytes": size,
        }
        logger.debug("Completed request:%s", _text(line))


def _ms(nanoseconds: int) -> float:
    return nanoseconds // 1000 / 1000


def _text(line: dict[str, JSON]) -> str:
    return json.dumps(line, separators=(",", ":"))


def _request_json(frame: bytearray | memoryview, header: RequestHeader) -> JSON:
    return _decoded("Request", memoryview(frame), header.body_offset, header)


def _response_json(response: list[bytes | int], header: RequestHeader) -> JSON:
    """An empty string where there is no response, as in Kafka."""
    if not response:
        return ""
    holes = sum(part for part in response if isinstance(part, int))
    size = holes + sum(len(part) for part in response if isinstance(part, bytes))
    if size - holes > RESPONSE_BYTES_MAX or holes > HOLES_BYTES_MAX:
        return {"sizeInBytes": size}
    frame = memoryview(b"".join(bytes(part) for part in response))[4:]
    version = _response_version(header)
    try:
        _, position = parse_response_header(frame, ApiKey(header.api_key), version)
    except (ValueError, ProtocolError):
        return {"sizeInBytes": size}
    return _decoded("Response", frame, position, header._replace(api_version=version))


def _response_version(header: RequestHeader) -> int:
    """0 for the response to an ApiVersions of a later Kafka."""
    key, version = header.api_key, header.api_version
    return 0 if key == ApiKey.API_VERSIONS and version > SERVED[ApiKey.API_VERSIONS][1] else version


def _decoded(kind: str, frame: memoryview, position: int, header: RequestHeader) -> JSON:
    """A message; its size where it has too many elements, or cannot be decoded."""
    found: Message | None = None
    if header.api_key in API_INFO and (info := API_INFO[ApiKey(header.api_key)]).supports(header.api_version):
        message_class = info.request_class() if kind == "Request" else info.response_class()
        decoding = decode_steps(message_class, frame[position:], header.api_version, ANY_ELEMENTS)
        try:
            next(decoding)
        except StopIteration as finished:
            found = finished.value
        except ProtocolError:
            pass
    return {"sizeInBytes": len(frame)} if found is None else message_json(found, header.api_version)


def _kept(parts: Sequence[Part]) -> list[bytes | int]:
    """The bytes of a response, and the sizes of its slices of files. Kept as they are: none of them is changed."""
    return [bytes(part) if isinstance(part, BUFFERS) else part.size for part in parts]
