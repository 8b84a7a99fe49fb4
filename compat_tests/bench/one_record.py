"""A raw client: Produce requests of one 100-byte record over N connections, each with one request in flight.

    python -m compat_tests.bench.one_record HOST:PORT TOPIC CONNECTIONS SECONDS

The request is encoded once and sent again and again, so that the client costs as little as it can; every answer's error
code is looked at. Prints one JSON object.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import build_batch

VERSION = 7  # the last without flexible fields: the error code has a fixed place
WARM_UP_S = 0.5
ANSWER_BYTES_MAX = 4096
DEADLINE_S = 30


def request_frame(topic: str) -> bytes:
    batch = build_batch([(None, b"x" * 100, int(time.time() * 1000))])
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(bytes(batch)))
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    body = encode(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic_data]), VERSION)
    client_id = b"one-record"
    head = ApiKey.PRODUCE.to_bytes(2, "big") + VERSION.to_bytes(2, "big") + bytes(4)
    frame = head + len(client_id).to_bytes(2, "big") + client_id + body
    return len(frame).to_bytes(4, "big") + frame


def error_position(topic: str) -> int:
    """Of the error code in the answer: size, correlation id, topics, name, partitions, index."""
    return 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4


class Client:
    def __init__(self, host: str, port: int, topic: str, connections: int) -> None:
        self.frame = request_frame(topic)
        self.at = error_position(topic)
        self.sockets: dict[int, socket.socket] = {}
        self.sent_at: dict[int, float] = {}
        self.poll = select.epoll()
        for _ in range(connections):
            connection = socket.create_connection((host, port), DEADLINE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self.sockets[connection.fileno()] = connection
            self.poll.register(connection.fileno(), select.EPOLLIN)

    def run(self, seconds: float) -> list[float]:
        """The latency of every request, in seconds."""
        latencies: list[float] = []
        end = time.perf_counter() + seconds
        waiting = len(self.sockets)
        for number in self.sockets:
            self._send(number)
        while waiting:
            ready = self.poll.poll(DEADLINE_S)
            if not ready:
                raise SystemExit(f"one_record: no answer within {DEADLINE_S} s")
            for number, _ in ready:
                answer = self.sockets[number].recv(ANSWER_BYTES_MAX)
                now = time.perf_counter()
                if answer[self.at : self.at + 2] != b"\0\0":
                    raise SystemExit(f"one_record: refused or cut off: {answer!r}")
                latencies.append(now - self.sent_at[number])
                if now < end:
                    self._send(number)
                else:
                    waiting -= 1
        return latencies

    def _send(self, number: int) -> None:
        self.sent_at[number] = time.perf_counter()
        self.sockets[number].send(self.frame)


def main(bootstrap: str, topic: str, connections: str, seconds: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    client = Client(host, int(port), topic, int(connections))
    client.run(WARM_UP_S)
    begin = time.perf_counter()
    latencies = sorted(client.run(float(seconds)))
    took = time.perf_counter() - begin
    result = {
        "count": len(latencies),
        "seconds": took,
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1000,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
