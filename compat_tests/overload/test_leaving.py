"""Clients that ask for much and leave, and crowds that stay: nothing is kept for those, no one waits for these.

What is asserted is what is served before what, and what is left at the end; no time is measured.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.overload.crowds import KINDS, PARTITIONS, latencies
from compat_tests.overload.raw import Raw, frame_of
from compat_tests.overload.test_hostile import FALSE_TIMESTAMP, batch_around, tiny_records
from compat_tests.overload.victim import MIB, Victim
from compat_tests.support.quick import create_topic
from compat_tests.support.waiting import eventually
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest
from kpybroker.wire.records.builder import varint

LEAVING = 2_000
FOREVER_MS = 2**31 - 1
RECORDS = 8_000_000
LOOKUPS = 30
SECONDS_MAX = 300
"""Until one of a crowd is served, on a machine that does much else."""


@pytest.fixture
def connections() -> Iterator[contextlib.ExitStack]:
    """Connections to be closed with the test."""
    with contextlib.ExitStack() as stack:
        yield stack


def never_enough(topic: str = "t") -> bytes:
    """A Fetch that waits for more than there will ever be."""
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[wanted])]
    request = FetchRequest(
        max_wait_ms=FOREVER_MS, min_bytes=1 << 30, max_bytes=1 << 30, session_epoch=-1, topics=topics
    )
    return frame_of(request, 11)


def join(group: str, member_id: str = "") -> JoinGroupRequest:
    """With a rebalance that waits for the others forever."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=FOREVER_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


def lookup(topic: str) -> bytes:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=FALSE_TIMESTAMP)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])]
    return frame_of(ListOffsetsRequest(replica_id=-1, topics=topics), 5)


def produce(topic: str, batch: bytes) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    return frame_of(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), 9)


def _joined(raw: Raw, group: str) -> JoinGroupResponse:
    """A new member, as soon as the group's coordinator is there."""
    found: list[JoinGroupResponse] = []

    def joins() -> bool:
        found.append(raw.ask(join(group), 3))
        return found[-1].error_code == ErrorCode.NONE

    eventually(joins, "a member of the group")
    return found[-1]


def _fetch(_: tuple[str, int]) -> bytes:
    return never_enough()


def _fetch_and_more(_: tuple[str, int]) -> bytes:
    return never_enough() + frame_of(MetadataRequest(topics=[]), 9) * 3 + never_enough()


def _join(address: tuple[str, int]) -> bytes:
    """The first member stays and never joins again, so that all others wait for it."""
    return frame_of(join("waiting"), 3)


def _sync(address: tuple[str, int]) -> bytes:
    """A leader that never syncs: its members wait for its assignment."""
    with Raw(address) as raw:
        joined = _joined(raw, "syncing")
    generation, member = joined.generation_id, joined.member_id
    return frame_of(SyncGroupRequest(group_id="syncing", generation_id=generation, member_id=member), 3)


@pytest.mark.parametrize("shortcuts", ["all", pytest.param("none", marks=pytest.mark.wide)])
@pytest.mark.parametrize(
    "asks",
    [_fetch, _join, *(pytest.param(asks, marks=pytest.mark.wide) for asks in (_fetch_and_more, _sync))],
    ids=lambda asks: asks.__name__.strip("_"),
)
def test_thousands_that_wait_and_leave_keep_no_descriptors(
    own_broker: StartBroker, asks: Callable[[tuple[str, int]], bytes], shortcuts: str
) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    victim = Victim(own_broker(kpybroker_shortcuts=shortcuts))
    create_topic(victim.broker.bootstrap, "t")
    with Raw(victim.address) as first:
        _joined(first, "waiting")
        frame = asks(victim.address)
        before = victim.open_sockets
        for _ in range(4):
            leaving = [Raw(victim.address) for _ in range(LEAVING // 4)]
            for raw in leaving:
                raw.send(frame)
            eventually(lambda: victim.open_sockets >= before + LEAVING // 8, "their connections")
            for raw in leaving:
                raw.socket.close()
        eventually(lambda: victim.open_sockets <= before + 4, "the end of their connections")
    assert "Traceback" not in victim.broker.service.output()


def test_lookups_of_clients_that_left_or_stay_keep_no_one_waiting(
    own_broker: StartBroker, connections: contextlib.ExitStack
) -> None:
    """A batch of some kilobytes with eight million records: each lookup by time takes seconds. A compressed batch of
    another client is walked at the same time, and acknowledged before the second of them is responded to.
    """
    victim = Victim(own_broker())
    create_topic(victim.broker.bootstrap, "giant")
    create_topic(victim.broker.bootstrap, "compacted", cleanup_policy="compact")
    giant = batch_around(compress(Codec.ZSTD, tiny_records(RECORDS)), Codec.ZSTD, RECORDS)
    with Raw(victim.address) as raw:
        raw.send(produce("giant", giant))
        assert raw.response(ApiKey.PRODUCE, 9).responses[0].partition_responses[0].error_code == 0
    before = victim.open_sockets
    for _ in range(LOOKUPS):
        with Raw(victim.address) as leaving:
            leaving.send(lookup("giant"))
    staying = [connections.enter_context(Raw(victim.address)) for _ in range(LOOKUPS)]
    for one in staying:
        one.send(lookup("giant"))
    section = b"".join(_keyed(number) for number in range(100))
    small = batch_around(compress(Codec.GZIP, section), Codec.GZIP, 100)
    for source in ("127.0.0.1", "127.0.0.2"):
        with Raw(victim.address, source=(source, 0)) as other:
            other.send(produce("compacted", small))
            produced = other.response(ApiKey.PRODUCE, 9)
        assert produced.responses[0].partition_responses[0].error_code == 0
    assert sum(map(_has_response, staying)) <= 1
    connections.close()
    late = 4  # connections of the clients that made the topics, which may come after `before` was counted
    eventually(lambda: victim.open_sockets <= before + late, "the end of all lookups")
    assert "Traceback" not in victim.broker.service.output()


def _keyed(offset_delta: int) -> bytes:
    body = b"\0" + varint(0) + varint(offset_delta) + varint(1) + b"k" + varint(1) + b"v" + varint(0)
    return varint(len(body)) + body


def _has_response(raw: Raw) -> bool:
    raw.socket.setblocking(False)
    try:
        return bool(raw.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


@pytest.mark.parametrize(
    ("kind", "count", "pipelined"),
    [
        ("metadata", 200, 500),
        pytest.param("fetch", 200, 1, marks=pytest.mark.wide),
        pytest.param("offsets", 100, 5, marks=pytest.mark.wide),
    ],
)
def test_a_crowd_is_served_and_so_is_everyone_else(
    own_broker: StartBroker, kind: str, count: int, pipelined: int
) -> None:
    """`make bench-hostile` measures how long everyone else waits, next to Kafka."""
    victim = Victim(own_broker())
    create_topic(victim.broker.bootstrap, "many", partitions=PARTITIONS)
    assert kind in KINDS
    command: list[Any] = [sys.executable, "-m", "compat_tests.overload.crowds", kind, *map(str, victim.address), "many"]
    command += ["--connections", str(count), "--pipelined", str(pipelined)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        try:
            assert crowd.stdout is not None
            assert crowd.stdout.readline() == "all are connected\n"
            assert latencies(victim.address, "many", seconds=2, pause_s=0)
            out, _ = crowd.communicate("", timeout=SECONDS_MAX)
            assert int(out) > 0
        finally:
            crowd.kill()
    assert "Traceback" not in victim.broker.service.output()
