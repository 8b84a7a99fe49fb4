"""A broker that does nothing for a replay but send: what it takes of a core is about what any broker must.

    python -m compat_tests.bench.limits.sends_only PORT UPSTREAM_PORT PARTITION_DIRECTORY

A Fetch of one partition is taken to be of the one whose directory it was given: the response is its size, and
`sendfile` from the segment into the socket, which waits in the kernel. Which batch lies where was looked up before. All
else, a Fetch at the end of the log among it, is the business of a real broker, to which it is handed on and whose
`advertised.listeners` name this port. One thread a connection.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from bisect import bisect_right
from pathlib import Path

from kpybroker.broker.network.transport import SEND_BUFFER_BYTES
from kpybroker.storage.segments.file_records import walk_headers
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode_parts
from kpybroker.wire.headers import encode_response_header, parse_request_header
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse

READY = "sends only"
HOST = "127.0.0.1"
SIZE = struct.Struct(">i")


class Part:
    """Of a segment's file: what a response names instead of its records."""

    def __init__(self, descriptor: int, position: int, size: int) -> None:
        self.descriptor, self.position, self.size = descriptor, position, size

    def __len__(self) -> int:
        return self.size

    def send(self, sock: socket.socket) -> None:
        position, end, out = self.position, self.position + self.size, sock.fileno()
        while position < end:
            position += os.sendfile(out, self.descriptor, position, end - position)


class Records:
    """Where the batches of a partition lie."""

    def __init__(self, directory: Path) -> None:
        self.offsets: list[int] = []
        self._places: list[tuple[int, int, int]] = []  # file, position, where its batches end
        self.end = 0
        for segment in sorted(directory.glob("*.log")):
            self._add(segment)

    def _add(self, segment: Path) -> None:
        number, size = os.open(segment, os.O_RDONLY), segment.stat().st_size

        def read(position: int, count: int) -> bytes:
            return os.pread(number, count, position)

        for position, header in walk_headers(read, str(segment), 0, size):
            self.offsets.append(header.base_offset)
            self._places.append((number, position, size))
            self.end = header.last_offset + 1

    def part(self, offset: int, max_bytes: int) -> Part:
        number, position, end = self._places[bisect_right(self.offsets, offset) - 1]
        return Part(number, position, min(max_bytes, end - position))


class Replay:
    """The responses to Fetches of the one partition, looked up when the first one comes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._records: Records | None = None

    def response(self, frame: bytes) -> list[bytes | Part] | None:
        """None for a Fetch that is not of these records."""
        header = parse_request_header(frame)
        version = header.api_version
        request = decode(FetchRequest, frame[header.body_offset :], version)
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            return None
        topic, wanted = request.topics[0], request.topics[0].partitions[0]
        if self._records is None:
            self._records = Records(self._directory)
        records = self._records
        if not 0 <= wanted.fetch_offset < records.end:
            return None
        part = records.part(wanted.fetch_offset, min(wanted.partition_max_bytes, request.max_bytes))
        partition = FetchResponse.PartitionData(
            high_watermark=records.end, last_stable_offset=records.end, log_start_offset=0, records=part
        )
        topic_response = FetchResponse.FetchableTopicResponse(
            topic=topic.topic, topic_id=topic.topic_id, partitions=[partition]
        )
        parts = encode_parts(FetchResponse(responses=[topic_response]), version)
        first = encode_response_header(ApiKey.FETCH, version, header.correlation_id)
        size = len(first) + sum(map(len, parts))
        return [SIZE.pack(size) + first + parts[0], *parts[1:]]


def serve(client: socket.socket, upstream: socket.socket, replay: Replay) -> None:
    """One connection, until its client leaves."""
    while (frame := _frame(client)) is not None:
        parts = replay.response(frame) if int.from_bytes(frame[:2], "big") == ApiKey.FETCH else None
        if parts is None:
            upstream.sendall(SIZE.pack(len(frame)) + frame)
            response = _frame(upstream)
            if response is None:
                return
            client.sendall(SIZE.pack(len(response)) + response)
            continue
        for part in parts:
            if isinstance(part, Part):
                part.send(client)
            else:
                client.sendall(part)


def _frame(sock: socket.socket) -> bytes | None:
    head = sock.recv(SIZE.size, socket.MSG_WAITALL)
    return sock.recv(SIZE.unpack(head)[0], socket.MSG_WAITALL) if len(head) == SIZE.size else None


def _serve(client: socket.socket, upstream_port: int, replay: Replay) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        with client, socket.create_connection((HOST, upstream_port)) as upstream:
            serve(client, upstream, replay)
    except ConnectionError:
        return


def main() -> None:
    port, upstream_port, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    replay = Replay(directory)
    with socket.create_server((HOST, port)) as listener:
        print(READY, flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, upstream_port, replay), daemon=True).start()


if __name__ == "__main__":
    main()
