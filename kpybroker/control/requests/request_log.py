"""The last requests of all brokers of a process, with their responses: kept as bytes, decoded when they are read.

Bounded by count and by bytes; the oldest go first. A frame above `FRAME_BYTES_MAX` is kept up to its first
`HEAD_BYTES`, and its entry says so. Records that a Fetch sends from a file are not read for the log.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence

import trio

from kpybroker.broker.network.response import Response
from kpybroker.broker.network.sending import BUFFERS, Part
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.log.message_walk import JSON
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.requests.request_json import error_names, head_json, message_json
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode_from
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, parse_response_header
from kpybroker.wire.schema import Message

COUNT_MAX = 10_000
BYTES_MAX = 32 * 1024 * 1024
FRAME_BYTES_MAX = 64 * 1024
HEAD_BYTES = 1024
ENTRY_BYTES = 400
"""What an entry takes beyond its frames, roughly."""

HOLES_BYTES_MAX = 4 * 1024 * 1024
"""Of records in files that a response may have to be kept: they are zeros when it is decoded."""

Frame = tuple[bytes | int, ...]
"""Parts; an integer is so many bytes that are not kept."""

PENDING, ANSWERED, NO_RESPONSE = "pending", "answered", "no response"
"""What became of a request; for one that ended otherwise, it is the reason."""


class Entry:
    """One request. `outcome` is PENDING until there is a response, or the connection has ended without one."""

    __slots__ = (
        "broker_id",
        "connection",
        "duration_s",
        "faults",
        "frame",
        "header",
        "id",
        "is_kept",
        "outcome",
        "response",
        "response_size",
        "size",
        "started_s",
        "time_ms",
    )

    def __init__(
        self, number: int, broker_id: int, frame: bytearray | memoryview, header: RequestHeader, time_ms: int
    ) -> None:
        self.id = number
        self.broker_id = broker_id
        self.header = header
        self.size = len(frame)
        self.frame = bytes(frame if self.size <= FRAME_BYTES_MAX else memoryview(frame)[:HEAD_BYTES])
        self.time_ms = time_ms
        self.started_s = time.perf_counter()
        self.duration_s = 0.0
        self.outcome = PENDING
        self.response: Frame = ()
        self.response_size = 0
        self.faults: Sequence[int] = ()
        self.is_kept = True
        self.connection: ConnectionInfo

    @property
    def response_bytes(self) -> int:
        """So much of the response is kept."""
        return sum(len(part) for part in self.response if isinstance(part, bytes))

    def as_json(self, *, bodies: bool = True) -> JSON:
        """The entry; with `bodies` the request and the response are decoded, as far as they are kept."""
        entry = {
            "id": self.id,
            "time_ms": self.time_ms,
            **head_json(self.broker_id, self.header, self.connection),
            "size": self.size,
            "outcome": self.outcome,
            "duration_ms": None if self.outcome == PENDING else round(self.duration_s * 1000, 3),
            "response_size": self.response_size,
            "faults": list(self.faults),
        }
        response = self.decoded_response()
        is_unknown = response is None and self.outcome == ANSWERED
        entry["errors"] = None if is_unknown else [] if response is None else error_names(response, self._version)
        if bodies:
            request = self.decoded_request()
            entry["request"] = None if request is None else message_json(request, self.header.api_version)
            entry["response"] = None if response is None else message_json(response, self._version)
            entry["is_cut"] = len(self.frame) < self.size or self._is_response_cut
        return entry

    @property
    def _version(self) -> int:
        """Of the response."""
        key, version = self.header.api_key, self.header.api_version
        return 0 if key == ApiKey.API_VERSIONS and version > SERVED[ApiKey.API_VERSIONS][1] else version

    @property
    def _is_response_cut(self) -> bool:
        return sum(part if isinstance(part, int) else len(part) for part in self.response) < self.response_size

    def decoded_request(self) -> Message | None:
        """None if it is not kept as a whole, or cannot be decoded."""
        if len(self.frame) < self.size:
            return None
        return self._decoded("Request", self.frame, self.header.body_offset, self.header.api_version)

    def decoded_response(self) -> Message | None:
        """None if there is none, or it is not kept as a whole; records that are not kept are zeros."""
        if not self.response or self._is_response_cut:
            return None
        frame = b"".join(part if isinstance(part, bytes) else bytes(part) for part in self.response)[4:]
        try:
            _, position = parse_response_header(frame, ApiKey(self.header.api_key), self._version)
        except (ValueError, ProtocolError):
            return None
        return self._decoded("Response", frame, position, self._version)

    def _decoded(self, kind: str, frame: bytes, position: int, version: int) -> Message | None:
        if self.header.api_key not in API_INFO:
            return None
        info = API_INFO[ApiKey(self.header.api_key)]
        if not info.supports(version):
            return None
        try:
            message_class = info.request_class() if kind == "Request" else info.response_class()
            message, _ = decode_from(message_class, memoryview(frame), position, version)
        except ProtocolError:
            return None
        found: Message = message
        return found


class RequestLog:
    """Entries in order. `begin` one when a request arrives and `end` it with its response."""

    def __init__(self, count_max: int = COUNT_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._entries: deque[Entry] = deque()
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._last_id = 0
        self.dropped = 0
        """Requests that were forgotten, since there are so many, after the last `clear`."""
        self._changed: trio.Event | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """Oldest first; a copy, so that requests may arrive while it is read."""
        return iter(list(self._entries))

    @property
    def last_id(self) -> int:
        """The id of the newest entry; 0 before the first."""
        return self._last_id

    def begin(
        self,
        broker_id: int,
        frame: bytearray | memoryview,
        header: RequestHeader,
        connection: ConnectionInfo,
        time_ms: int,
    ) -> Entry:
        """A request has arrived. Its frame is copied."""
        self._last_id += 1
        entry = Entry(self._last_id, broker_id, frame, header, time_ms)
        entry.connection = connection
        self._entries.append(entry)
        self._bytes += len(entry.frame) + ENTRY_BYTES
        if self._bytes > self._bytes_max or len(self._entries) > self._count_max:
            self._drop_oldest()
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        return entry

    def end(self, entry: Entry, response: Response) -> None:
        """It is complete; with an empty frame it has no response."""
        entry.duration_s = time.perf_counter() - entry.started_s
        if (frame := response.frame) is not None:
            size = entry.response_size = len(frame)
            entry.outcome = ANSWERED if size else NO_RESPONSE
            entry.response = (frame,) if size <= FRAME_BYTES_MAX else (frame[:HEAD_BYTES],)
        else:
            entry.outcome = ANSWERED
            entry.response_size = sum(map(_size, response.parts))
            entry.response = _kept(response.parts)
        if entry.is_kept:
            self._bytes += entry.response_bytes

    def fail(self, entry: Entry, error: BaseException) -> None:
        """The connection has ended instead."""
        entry.duration_s = time.perf_counter() - entry.started_s
        entry.outcome = f"connection ended: {error}" if str(error) else "connection ended"

    def clear(self) -> None:
        """Forget all requests; ids go on."""
        for entry in self._entries:
            entry.is_kept = False
        self._entries.clear()
        self._bytes = self.dropped = 0

    async def wait_change(self) -> None:
        """Return when the next request has arrived."""
        if self._changed is None:
            self._changed = trio.Event()
        await self._changed.wait()

    def _drop_oldest(self) -> None:
        while self._bytes > self._bytes_max or len(self._entries) > self._count_max:
            oldest = self._entries.popleft()
            oldest.is_kept = False
            self.dropped += 1
            self._bytes -= len(oldest.frame) + ENTRY_BYTES + oldest.response_bytes


def _size(part: Part) -> int:
    return len(part) if isinstance(part, BUFFERS) else part.size


def _kept(parts: Sequence[Part]) -> Frame:
    """All bytes of a response, and the sizes of its slices, if they are few; otherwise its first bytes."""
    buffers = [part for part in parts if isinstance(part, BUFFERS)]
    size = sum(map(len, buffers))
    if size <= FRAME_BYTES_MAX and sum(map(_size, parts)) - size <= HOLES_BYTES_MAX:
        return tuple(bytes(part) if isinstance(part, BUFFERS) else part.size for part in parts)
    return (bytes(buffers[0][:HEAD_BYTES]),) if buffers else ()
