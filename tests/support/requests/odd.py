"""Odd records, members and offsets, as any client may send them, and the requests that bring them to a broker.

A tool that shows or copies what a cluster has must be right for all of them, and for what is around them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireBroker, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch_of
from kpybroker.wire.records.record import Record, iter_records

FIRST: Final = b"first of all"
LAST: Final = b"last of all"
"""Plain values around the odd ones."""

BYTES: Final[tuple[bytes | None, ...]] = (
    None,
    b"",
    b"plain",
    b"\xff\xfe",
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xc3",  # the first half of a character
    b"\0",
    b"a\0b",
    b"\x1b[2J\x1b]0;title\x07",
    b"\x9b31m",
    "\u2028\u2029\u0085\ufeff\u202etxet".encode(),
    "\U0001f600\U00010ffff".encode(),
    b"line\r\nline\n\tline",
    b'{"base64":"eA=="}',
    b"null",
    b"x" * 40_000,
)
TEXT_HEADER_KEYS: Final = (b"", b"h", "ключ".encode(), b"\x1b[31mred", "\u2028".encode(), b"=", b"a=b,c", b"k" * 5000)
BYTES_HEADER_KEYS: Final = (b"\xff\xfe", b"\xed\xa0\x80", b"ok\xc3", b"\x80")
TIMES: Final = (-1, 0, 1, -5_000, -62_135_596_800_001, 253_402_300_800_000, 2**62, 1_700_000_000_000)


def records(seed: int) -> list[Record]:
    """Plain records around odd ones: each kind of bytes as key, value and header, each time, in a seed's order."""
    chosen = random.Random(seed)
    headers = [(key, chosen.choice(BYTES[:-1])) for key in (*TEXT_HEADER_KEYS, *BYTES_HEADER_KEYS)]
    odd = [
        *(Record(0, 5, data, b"odd key") for data in BYTES),
        *(Record(0, 5, b"odd value", data) for data in BYTES),
        *(Record(0, 5, b"odd header", b"v", _headers([one])) for one in headers),
        *(Record(0, 5, b"odd header's value", b"v", _headers([(b"h", data)])) for data in BYTES),
        *(Record(0, time, b"odd time", b"v") for time in TIMES),
        Record(0, 5, b"many headers", b"v", _headers(headers * 3)),
        Record(0, 5, b"one name", b"v", _headers([(b"d", b"1"), (b"d", None), (b"d", b"1")])),
    ]
    chosen.shuffle(odd)
    return [Record(0, 5, b"plain", FIRST), *odd, Record(0, 5, b"plain", LAST)]


def _headers(pairs: list[tuple[bytes, bytes | None]]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((key.decode(errors="surrogateescape"), value) for key, value in pairs)


class Member(NamedTuple):
    """What a member says of itself, and what its leader assigns to it."""

    protocol_type: str
    metadata: bytes
    assignment: bytes


def assignment(*topics: tuple[bytes, list[int]]) -> bytes:
    """A consumer's assignment of version 0, with whatever names and numbers."""
    data = struct.pack(">hi", 0, len(topics))
    for name, numbers in topics:
        data += struct.pack(">h", len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return data + struct.pack(">i", -1)


def members(topic: str) -> dict[str, Member]:
    """Members by what is odd in them; `topic` is one that exists."""
    name = topic.encode()
    return {
        "garbage": Member("consumer", b"\0" * 10, b"\0\0this is no assignment"),
        "empty": Member("consumer", b"", b""),
        "two bytes": Member("consumer", b"\0", b"\0\1"),
        "a huge count": Member("consumer", b"\0", b"\0\0\x7f\xff\xff\xff"),
        "a negative count": Member("consumer", b"\0", b"\0\0\xff\xff\xff\xf0"),
        "a negative version": Member("consumer", b"\0", b"\xff\xff" + assignment((name, [0]))[2:]),
        "more than is read": Member("consumer", b"\0\0", assignment((name, [0])) + b"xyz"),
        "a topic without a name": Member("consumer", b"\0\0", assignment((b"", [0]), (name, [0]))),
        "a topic that is no UTF-8": Member("consumer", b"\0\0", assignment((b"\xff\xfe", [0]), (name, [0]))),
        "a topic of control characters": Member("consumer", b"\0\0", assignment((b"\x1b[31m", [0]), (name, [0]))),
        "a topic with a long name": Member("consumer", b"\0\0", assignment((b"x" * 30_000, [0]))),
        "partitions that cannot be": Member("consumer", b"\0\0", assignment((name, [-1, 2**31 - 1, 0]))),
        "of Connect": Member("connect", b"\0\1\0\5http:", b"\0\1\0\0"),
        "of a registry": Member("sr", b'{"version":1}', b'{"error":0}'),
        "of no one": Member("what\x1b[31m", b"\xff", b"\xfe"),
    }


METADATA: Final = ("", "plain", "\x1b[2J\u2028\0", "\U0001f600" * 500, "x" * 4000)
"""Of a committed offset."""

# --- to a broker and back


def settings(bootstrap: str) -> Settings:
    return Settings(bootstrap, {}, 60.0, "a test")


@contextmanager
def leader(bootstrap: str) -> Iterator[WireBroker]:
    """A connection to the only broker of a cluster."""
    with WireCluster(settings(bootstrap)) as cluster:
        (node_id,) = cluster.nodes
        yield cluster.broker(node_id)


def append(bootstrap: str, topic: str, found: list[Record], partition: int = 0) -> None:
    """One batch as it is, past every check of a client."""
    batch = bytes(build_batch_of([record._replace(offset=number) for number, record in enumerate(found)]))
    data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    )
    with leader(bootstrap) as broker:
        (response,) = broker.request(ApiKey.PRODUCE, request).responses[0].partition_responses
    assert response.error_code == 0, response


def stored(bootstrap: str, topic: str, partition: int = 0) -> list[Record]:
    """All records of a partition, as they are stored; the marks of their places are left out."""
    found: list[Record] = []
    with leader(bootstrap) as broker:
        while True:
            data = _fetched(broker, topic, partition, found[-1].offset + 1 if found else 0)
            more = [one for at, header in iter_batches(data) for one in iter_records(data, header, at)]
            if not more:
                return [one._replace(offset=0, sequence=-1) for one in found]
            found += [one for one in more if not found or one.offset > found[-1].offset]


def _fetched(broker: WireBroker, topic: str, partition: int, offset: int) -> bytes:
    wanted = FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[wanted])]
    request = FetchRequest(replica_id=-1, max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics)
    (response,) = broker.request_in(ApiKey.FETCH, request, 11).responses[0].partitions
    assert response.error_code == 0, response
    return bytes(response.records or b"")


def join(bootstrap: str, group: str, member: Member) -> tuple[int, str]:
    """Make the group of one member; its generation and the member's id."""
    with WireCluster(settings(bootstrap)) as cluster:
        broker = cluster.coordinator(group, GROUP)
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="p", metadata=member.metadata)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            group_instance_id="instance",
            protocol_type=member.protocol_type,
            protocols=[protocol],
        )
        joined = broker.request_in(ApiKey.JOIN_GROUP, request, 5)
        assert joined.error_code == 0, joined
        given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=member.assignment)
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id="instance",
            assignments=[given],
        )
        synced = broker.request_in(ApiKey.SYNC_GROUP, sync, 3)
        assert synced.error_code == 0, synced
    return joined.generation_id, joined.member_id


def commit(
    bootstrap: str, group: str, offsets: dict[tuple[str, int], tuple[int, str]], generation: int = -1, member: str = ""
) -> None:
    """Commit (offset, metadata) by topic and partition."""
    topic, partition = OffsetCommitRequest.OffsetCommitRequestTopic, OffsetCommitRequest.OffsetCommitRequestPartition
    topics: list[Any] = [
        topic(
            name=name,
            partitions=[partition(partition_index=number, committed_offset=offset, committed_metadata=metadata)],
        )
        for (name, number), (offset, metadata) in offsets.items()
    ]
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=topics
    )
    with WireCluster(settings(bootstrap)) as cluster:
        response = cluster.coordinator(group, GROUP).request_in(ApiKey.OFFSET_COMMIT, request, 6)
    codes = {one.error_code for each in response.topics for one in each.partitions}
    assert codes == {0}, codes
