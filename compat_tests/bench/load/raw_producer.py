"""A raw client: ready-made Produce requests over N connections, so cheap that the broker is what is measured.

    python -m compat_tests.bench.load.raw_producer HOST:PORT TOPIC [--connections N] [--in-flight N] [--rate N] ...

Every request holds one batch for one partition; the partitions take turns. Requests are encoded once and sent again and
again; every response's error code is looked at. Without `--rate` each connection keeps `--in-flight` requests
pending; latency is then from sending to response. With `--rate` requests are sent when they are due, whatever is still
pending, and latency counts from when a request was *due*, so that a stall of the broker shows in all that it held
up. `--stamped` writes the wall clock into each record's value, for a consumer that measures. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import cycle

from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.crc import crc32c
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import build_batch

VERSION = 7  # the last without flexible fields: the error code has a fixed place, and every response the same length
RECEIVE_BYTES = 1 << 16
DEADLINE_S = 30.0
STAMP_DIGITS = 20
CRC_AT, CRC_FROM = 17, 21  # in a batch


def request_frame(
    topic: str, partition: int = 0, records: int = 1, record_bytes: int = 100, key: int = -1, acks: int = 1
) -> bytes:
    """One Produce request with its size. `key` is that of the first record, those of the others follow."""
    now_ms = int(time.time() * 1000)
    value = b"x" * record_bytes
    batch = build_batch([(b"%020d" % (key + n) if key >= 0 else None, value, now_ms) for n in range(records)])
    data = ProduceRequest.PartitionProduceData(index=partition, records=memoryview(bytes(batch)))
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    body = encode(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic_data]), VERSION)
    client_id = b"raw-producer"
    head = ApiKey.PRODUCE.to_bytes(2, "big") + VERSION.to_bytes(2, "big") + bytes(4)
    frame = head + len(client_id).to_bytes(2, "big") + client_id + body
    return len(frame).to_bytes(4, "big") + frame


def stamped(frame: bytes, record_bytes: int) -> Callable[[], bytes]:
    """Copies of a request of one record that say when they were made: ns of the wall clock, in digits."""
    batch_bytes = len(build_batch([(None, b"x" * record_bytes, int(time.time() * 1000))]))
    batch_at = len(frame) - batch_bytes
    value_at = len(frame) - 1 - record_bytes  # the last byte is the number of headers

    def make() -> bytes:
        fresh = bytearray(frame)
        fresh[value_at : value_at + STAMP_DIGITS] = b"%020d" % time.time_ns()
        crc = crc32c(memoryview(fresh)[batch_at + CRC_FROM :])
        fresh[batch_at + CRC_AT : batch_at + CRC_FROM] = crc.to_bytes(4, "big")
        return bytes(fresh)

    return make


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.pending: deque[float] = deque()  # when each was sent or due
        self.unsent = b""
        self.partial = b""


class Client:
    """`latencies` are in seconds, of all requests that got their responses since they were last taken."""

    def __init__(
        self, bootstrap: str, topic: str, connections: int, in_flight: int, frames: Callable[[], bytes]
    ) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._frames = frames
        self._in_flight = in_flight
        # size, correlation id, topics, name, partitions, index; error, three int64; throttle time
        self._error_at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
        self._response_bytes = self._error_at + 2 + 24 + 4
        self._poll = select.epoll()
        self._connections: dict[int, Connection] = {}
        for _ in range(connections):
            connection = Connection(host, int(port))
            self._connections[connection.socket.fileno()] = connection
            self._poll.register(connection.socket.fileno(), select.EPOLLIN)
        self.latencies: list[float] = []
        self._open = 0

    def keep_busy(self, seconds: float, requests_max: int | None = None) -> None:
        """`in_flight` requests pending on every connection, for so long or so many."""
        left = requests_max if requests_max is not None else 1 << 62
        end = time.perf_counter() + seconds
        for connection in self._connections.values():
            for _ in range(min(self._in_flight, left)):
                self._send(connection, time.perf_counter())
                left -= 1
        while self._open:
            for connection, responses in self._responses(DEADLINE_S):
                for _ in range(min(responses, left)):
                    now = time.perf_counter()
                    if now < end:
                        self._send(connection, now)
                        left -= 1

    def keep_rate(self, seconds: float, rate: float) -> None:
        connections = cycle(self._connections.values())
        total, sent = int(seconds * rate), 0
        begin = time.perf_counter()
        while sent < total or self._open:
            now = time.perf_counter()
            while sent < total and begin + sent / rate <= now:
                self._send(next(connections), begin + sent / rate)
                sent += 1
            wait_s = begin + sent / rate - time.perf_counter() if sent < total else DEADLINE_S
            for _ in self._responses(max(wait_s, 0.0), may_be_none=sent < total):
                pass

    def _send(self, connection: Connection, at: float) -> None:
        connection.pending.append(at)
        self._open += 1
        frame = self._frames()
        if connection.unsent:
            connection.unsent += frame
            return
        sent = _send_some(connection.socket, frame)
        if sent < len(frame):
            connection.unsent = frame[sent:]
            self._poll.modify(connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _responses(self, timeout_s: float, may_be_none: bool = False) -> Iterator[tuple[Connection, int]]:
        # epoll's own timeout is in whole milliseconds
        ready = self._poll.poll(0) or (self._poll.poll(0) if select.select([self._poll], (), (), timeout_s)[0] else [])
        if not ready and not may_be_none:
            raise SystemExit(f"raw_producer: no response within {DEADLINE_S} s")
        for number, events in ready:
            connection = self._connections[number]
            if events & select.EPOLLOUT:
                self._send_rest(connection)
            if events & ~select.EPOLLOUT:
                yield connection, self._receive(connection)

    def _send_rest(self, connection: Connection) -> None:
        connection.unsent = connection.unsent[_send_some(connection.socket, connection.unsent) :]
        if not connection.unsent:
            self._poll.modify(connection.socket.fileno(), select.EPOLLIN)

    def _receive(self, connection: Connection) -> int:
        data = connection.socket.recv(RECEIVE_BYTES)
        if not data:
            raise SystemExit("raw_producer: cut off")
        now = time.perf_counter()
        data = connection.partial + data if connection.partial else data
        responses, left = divmod(len(data), self._response_bytes)
        for n in range(responses):
            at = n * self._response_bytes + self._error_at
            if data[at : at + 2] != b"\0\0":
                raise SystemExit(f"raw_producer: refused: {data!r}")
            self.latencies.append(now - connection.pending.popleft())
        connection.partial = data[len(data) - left :] if left else b""
        self._open -= responses
        return responses

    def take_latencies(self) -> list[float]:
        taken, self.latencies = self.latencies, []
        return taken


def _send_some(connection: socket.socket, data: bytes) -> int:
    try:
        return connection.send(data)
    except BlockingIOError:
        return 0


def percentiles_ms(latencies: list[float]) -> dict[str, float]:
    """Of seconds."""
    ordered = sorted(latencies)
    return {
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1000,
        "max_ms": ordered[-1] * 1000,
    }


def frames_of(options: argparse.Namespace) -> Callable[[], bytes]:
    if options.stamped:
        return stamped(request_frame(options.topic, 0, 1, options.record_bytes), options.record_bytes)
    size = (options.records, options.record_bytes)
    keys = range(0, options.keys, options.records) if options.keys else (-1,)
    parts = range(options.partitions)
    frames = [request_frame(options.topic, part, *size, key, options.acks) for part in parts for key in keys]
    return cycle(frames).__next__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--in-flight", type=int, default=1, help="on every connection [1]")
    parser.add_argument("--records", type=int, default=1, help="in a request [1]")
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--acks", type=int, default=1, help="-1: of all in-sync replicas [1]")
    parser.add_argument("--partitions", type=int, default=1, help="that the requests go to in turn [1]")
    parser.add_argument("--keys", type=int, default=0, help="how many different ones [no keys]")
    parser.add_argument("--stamped", action="store_true", help="one record a request, its value begins with the time")
    parser.add_argument("--seconds", type=float, default=DEADLINE_S * 100)
    parser.add_argument("--requests", type=int, help="stop after so many [no limit]")
    parser.add_argument("--rate", type=float, help="requests a second [as fast as the responses come]")
    parser.add_argument("--warm-up", type=float, default=0.0, metavar="SECONDS", help="not counted [0]")
    options = parser.parse_args()
    client = Client(options.bootstrap, options.topic, options.connections, options.in_flight, frames_of(options))
    gc.disable()

    def run(seconds: float, requests_max: int | None = None) -> None:
        if options.rate:
            client.keep_rate(seconds, options.rate)
        else:
            client.keep_busy(seconds, requests_max)

    if options.warm_up:
        run(options.warm_up)
    before = len(client.take_latencies())
    began_ns, begin = time.time_ns(), time.perf_counter()
    run(options.seconds, options.requests)
    took = time.perf_counter() - begin
    result = {
        "count": len(client.latencies),
        "with_warm_up": before + len(client.latencies),
        "seconds": took,
        "megabytes": len(client.latencies) * options.records * options.record_bytes / 1e6,
        "began_ns": began_ns,
        **percentiles_ms(client.latencies),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
