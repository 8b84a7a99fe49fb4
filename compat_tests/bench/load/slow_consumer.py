"""Consumers that cannot keep up: each asks for 1 MB at a time and takes it in at a trickle, until it is ended.

    python -m compat_tests.bench.load.slow_consumer HOST:PORT TOPIC CONNECTIONS BYTES_PER_SECOND

Its receive buffer is small, so that the broker's sending meets a full socket again and again.
"""

from __future__ import annotations

import select
import socket
import sys
import time

from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.fetch import FetchRequest

VERSION = 4
FETCH_BYTES = 1 << 20
RECEIVE_BUFFER_BYTES = 1 << 16
TURN_S = 0.05


class SlowConsumer:
    def __init__(self, host: str, port: int, request: bytes) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.socket.connect((host, port))
        self._request = request
        self._asked = False
        self._size = b""  # as much as is here of a response's size
        self._left = 0  # bytes of a response

    def take(self, bytes_max: int) -> None:
        """One turn: ask when the last response is all here, then read no more than that."""
        if not self._asked:
            self.socket.sendall(self._request)
            self._asked = True
        if not select.select([self.socket], (), (), 0)[0]:
            return
        data = self.socket.recv(min(bytes_max, self._left) or 4 - len(self._size))
        if not data:
            raise SystemExit("slow_consumer: cut off")
        if self._left:
            self._left -= len(data)
            self._asked = self._left > 0
        else:
            self._size += data
            if len(self._size) == 4:
                self._left, self._size = int.from_bytes(self._size, "big"), b""


def fetch_frame(topic: str) -> bytes:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[partition])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics)
    frame = encode_request_header(RequestHeader(ApiKey.FETCH, VERSION, 1, "slow")) + encode(request, VERSION)
    return len(frame).to_bytes(4, "big") + frame


def main(bootstrap: str, topic: str, connections: str, bytes_per_second: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    consumers = [SlowConsumer(host, int(port), fetch_frame(topic)) for _ in range(int(connections))]
    while True:
        for consumer in consumers:
            consumer.take(int(int(bytes_per_second) * TURN_S))
        time.sleep(TURN_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
