"""Crowds: clients of one address that ask for more than a broker can do, and a bystander from another address.

As a program a crowd goes on, in a process of its own, until its standard input ends; then it prints how many responses
it has received:

    python -m compat_tests.overload.crowds metadata 127.0.0.1 9092 TOPIC --connections 1000 --pipelined 1000
"""

from __future__ import annotations

import argparse
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from compat_tests.overload.raw import Raw, frame_of
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.metadata import MetadataRequest

Address = tuple[str, int]
BYSTANDERS_ADDRESS: Final = "127.0.0.2"
"""The crowd's is 127.0.0.1."""
PARTITIONS: Final = 500
RECEIVED_AT_ONCE: Final = 1 << 18
SENT_AT_ONCE: Final = 1 << 20


class Asked(NamedTuple):
    """A request and its version."""

    request: Any
    version: int

    @property
    def frame(self) -> bytes:
        """Its bytes."""
        return frame_of(self.request, self.version)


def metadata(topic: str) -> Asked:
    """Of one topic."""
    wanted = MetadataRequest.MetadataRequestTopic(name=topic)
    return Asked(MetadataRequest(topics=[wanted], allow_auto_topic_creation=False), 9)


def fetch(topic: str) -> Asked:
    """Of all partitions of a topic, without a session, at once."""
    partitions = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        for index in range(PARTITIONS)
    ]
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=partitions)]
    return Asked(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, session_epoch=-1, topics=topics), 11)


def offsets(topic: str) -> Asked:
    """The ends of all partitions of a topic: a request that the connection's task serves."""
    partitions = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)
    ]
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=partitions)]
    return Asked(ListOffsetsRequest(replica_id=-1, topics=topics), 5)


KINDS: Final[dict[str, Callable[[str], Asked]]] = {"metadata": metadata, "fetch": fetch, "offsets": offsets}


class Member:
    """One connection that sends a burst of requests, and the next one when all responses have arrived."""

    def __init__(self, address: Address, burst: bytes, response_bytes: int) -> None:
        self.socket = socket.create_connection(address, 60)
        self.socket.setblocking(False)
        self._burst = burst
        self._response_bytes = response_bytes
        self._left = memoryview(burst)
        self._missing = response_bytes
        self.received = 0

    @property
    def events(self) -> int:
        """What it waits for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._left else 0)

    def go_on(self, events: int) -> None:
        """Send and receive as far as that takes no waiting."""
        if events & selectors.EVENT_WRITE and self._left:
            self._left = self._left[self.socket.send(self._left[:SENT_AT_ONCE]) :]
        if events & selectors.EVENT_READ:
            count = len(self.socket.recv(RECEIVED_AT_ONCE))
            assert count, "the broker has closed a connection of the crowd"
            self.received += count
            self._missing -= count
            if self._missing <= 0:
                self._left, self._missing = memoryview(self._burst), self._response_bytes


def response_bytes(address: Address, asked: Asked) -> int:
    """The size of one response, with its length in front; all are of one size."""
    with Raw(address) as raw:
        raw.send(asked.frame)
        return 4 + len(raw.receive_exactly(int.from_bytes(raw.receive_exactly(4), "big")))


def crowd(address: Address, asked: Asked, connections: int, pipelined: int) -> int:
    """Until standard input has ended and someone was served; how many responses there were."""
    size = response_bytes(address, asked)
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        members = [Member(address, asked.frame * pipelined, size * pipelined) for _ in range(connections)]
        for member in members:
            selector.register(member.socket, member.events, member)
        print("all are connected", flush=True)
        has_ended = False
        while not has_ended or not any(member.received >= size for member in members):
            for key, events in selector.select():
                if key.data is None:
                    has_ended = True
                    selector.unregister(sys.stdin)
                    continue
                key.data.go_on(events)
                if key.data.events != key.events:
                    selector.modify(key.data.socket, key.data.events, key.data)
        return sum(member.received for member in members) // size


def latencies(address: Address, topic: str, seconds: float, pause_s: float) -> list[float]:
    """Milliseconds that each of the bystander's requests takes: for the metadata of a topic, one after the other."""
    asked = metadata(topic)
    found: list[float] = []
    with Raw(address, source=(BYSTANDERS_ADDRESS, 0)) as bystander:
        begin = time.perf_counter()
        while (started := time.perf_counter()) - begin < seconds:
            bystander.ask(*asked)
            found.append((time.perf_counter() - started) * 1000)
            time.sleep(pause_s)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("topic")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--pipelined", type=int, default=1000)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asked = KINDS[options.kind](options.topic)
    print(crowd((options.host, options.port), asked, options.connections, options.pipelined))
    return 0


if __name__ == "__main__":
    sys.exit(main())
