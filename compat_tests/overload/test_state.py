"""What strangers can build in memory has a budget: it stops there, others get on, and clients survive a refusal.

The largest requests that a frame allows, each leaving state behind: sessions of fetches, members, groups, transactional
ids. And headers, of which a few hundred bytes hold millions.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw, framed
from compat_tests.overload.test_bombs import kpybroker_log
from compat_tests.overload.victim import MIB, Victim
from compat_tests.support import quick
from compat_tests.support.topics.raw_log import RawLog
from compat_tests.support.waiting import eventually
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.leave_group import LeaveGroupRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.records.batch import parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch, rebuild_batch, varint

ADDRESS_MAX = 16 * MIB
"""`kpybroker.max.state.bytes.per.ip` here: less than the default, so that the attacks are short."""
GROWTH_MAX = 4 * ADDRESS_MAX + 64 * MIB
"""Estimates are no promise of the allocator's, and one request may take 64 MiB while it is served."""
REFUSED = "Requests are refused because"
FULL = ErrorCode.COORDINATOR_NOT_AVAILABLE
HALF_AN_HOUR_MS = 1_800_000
SESSIONS = 12
"""Of forty thousand partitions, each of which takes 18 MB without the budget: more than may be left of them."""
Protocol = JoinGroupRequest.JoinGroupRequestProtocol


@pytest.fixture
def victim(launcher: Launcher) -> Iterator[Victim]:
    settings = {"kpybroker.max.state.bytes.per.ip": str(ADDRESS_MAX), "group.initial.rebalance.delay.ms": "0"}
    settings |= {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    started = Victim(launcher.broker(**settings))
    started.bystander.start()
    started.bystander.progresses()
    with Raw(started.address) as raw:  # the bystander has asked for a coordinator, which makes the topic
        wanted = OffsetFetchRequest(group_id="group", topics=None)
        eventually(lambda: raw.ask(wanted, 5).error_code == ErrorCode.NONE, "a coordinator")
    yield started
    started.is_unharmed()
    started.close()
    started.broker.service.kill()


def grown(victim: Victim, attack: Callable[[], object]) -> int:
    """What is left of an attack, once its clients have gone."""
    before = victim.rss
    attack()
    victim.bystander.progresses()
    left = victim.rss - before
    print(f"{left / MIB:.1f} MiB")
    return left


# --- sessions of fetches


def session_of(partitions: int, *, by_name: str = "unknown") -> FetchRequest:
    wanted = [
        FetchRequest.FetchPartition(partition=1000 + n, fetch_offset=n, partition_max_bytes=1 << 20)
        for n in range(partitions)
    ]
    topics = [FetchRequest.FetchTopic(topic=by_name, partitions=wanted)]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_id=0, session_epoch=0, topics=topics)


@pytest.mark.wide
def test_fetch_sessions_of_partitions_that_are_not_there(victim: Victim) -> None:
    """Beyond the budget a client gets no session, as when Kafka's cache is full, and all its partitions each time."""
    kept = []

    def attack() -> None:
        for number in range(SESSIONS):
            with Raw(victim.address) as raw:
                response = raw.ask(session_of(40_000, by_name=f"unknown-{number}"), 11)
                assert response.error_code == ErrorCode.NONE
                kept.append(response.session_id != 0)

    assert grown(victim, attack) < GROWTH_MAX
    assert not kept[0] or sum(kept) <= 1


def test_a_consumer_without_a_session_reads_all_the_same(victim: Victim) -> None:
    with Raw(victim.address) as raw:
        while raw.ask(session_of(5_000), 11).session_id:
            pass
    quick.create_topic(victim.broker.bootstrap, "read")
    producer = Producer({"bootstrap.servers": victim.broker.bootstrap, **quick.QUIET})
    for number in range(100):
        producer.produce("read", str(number).encode())
    assert producer.flush(quick.DEADLINE_S) == 0
    assert len(quick.read(victim.broker.bootstrap, [("read", 0)], 100)) == 100


# --- members


def join(group: str, protocols: list[Protocol], member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=HALF_AN_HOUR_MS,
        rebalance_timeout_ms=HALF_AN_HOUR_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=protocols,
    )


def joins(victim: Victim, protocols: Callable[[int], list[Protocol]], count: int) -> list[tuple[str, str]]:
    """One member of a group of its own after the other until one is refused; those that were taken."""
    taken: list[tuple[str, str]] = []
    for number in range(count):
        with Raw(victim.address) as raw:
            response = raw.ask(join(f"group-{number}", protocols(number)), 3)
        if response.error_code == FULL:
            return taken
        assert response.error_code == ErrorCode.NONE
        taken.append((f"group-{number}", response.member_id))
    raise AssertionError("no one was refused")


def test_members_with_large_metadata(victim: Victim) -> None:
    protocols = [Protocol(name="range", metadata=bytes(3 * MIB))]
    assert grown(victim, lambda: joins(victim, lambda _: protocols, 60)) < GROWTH_MAX


def test_members_with_many_protocols(victim: Victim) -> None:
    def protocols(member: int) -> list[Protocol]:
        return [Protocol(name=f"{member}-{n}", metadata=b"") for n in range(30_000)]

    assert grown(victim, lambda: joins(victim, protocols, 40)) < GROWTH_MAX


def test_member_ids_that_are_given_out_and_never_used(victim: Victim) -> None:
    """The id contains the client's id, which may be 32 KB."""
    request = join("group", [Protocol(name="range", metadata=b"")])
    header = encode_request_header(RequestHeader(ApiKey.JOIN_GROUP, 5, 7, "x" * 30_000))
    refused = []

    def attack() -> None:
        with Raw(victim.address) as raw:
            for _ in range(3_000):
                raw.send(framed(header + encode(request, 5)))
                refused.append(raw.response(ApiKey.JOIN_GROUP, 5).error_code == FULL)

    assert grown(victim, attack) < GROWTH_MAX
    assert (refused[0], refused[-1]) == (False, True)


@contextlib.contextmanager
def full(victim: Victim) -> Iterator[None]:
    """Within it there is no room for another member."""
    taken = joins(victim, lambda n: [Protocol(name="range", metadata=bytes(MIB))], 60)
    while True:  # what is left of the last member's room
        with Raw(victim.address) as raw:
            if raw.ask(join(f"more-{len(taken)}", [Protocol(name="range", metadata=b"")]), 3).error_code == FULL:
                break
        taken.append((f"more-{len(taken)}", ""))
    yield
    with Raw(victim.address) as raw:
        for group, member_id in taken:
            if member_id:
                raw.ask(LeaveGroupRequest(group_id=group, member_id=member_id), 1)


def test_a_consumer_that_is_refused_works_as_soon_as_there_is_room(victim: Victim) -> None:
    quick.create_topic(victim.broker.bootstrap, "t")
    assigned: list[int] = []
    consumer = Consumer({"bootstrap.servers": victim.broker.bootstrap, "group.id": "late", **quick.QUIET})
    with full(victim):
        consumer.subscribe(["t"], on_assign=lambda _, partitions: assigned.extend(one.partition for one in partitions))

        def is_refused() -> bool:
            message = consumer.poll(0.1)
            assert message is None or message.error().retriable()
            return REFUSED in victim.broker.service.output()

        eventually(is_refused, "a refusal")
        assert assigned == []

    def has_joined() -> bool:
        consumer.poll(0.1)
        return assigned == [0]

    eventually(has_joined, "the assignment", quick.DEADLINE_S)
    consumer.close()


# --- groups and transactional ids


def test_groups_that_consist_of_an_offset(victim: Victim) -> None:
    quick.create_topic(victim.broker.bootstrap, "t")
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata="m" * 4_000
    )
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    errors = []

    def attack() -> None:
        with Raw(victim.address) as raw:
            for number in range(6_000):
                request = OffsetCommitRequest(group_id=f"group-{number}", topics=topics)
                errors.append(raw.ask(request, 7).topics[0].partitions[0].error_code)

    assert grown(victim, attack) < GROWTH_MAX
    assert (errors[0], errors[-1]) == (ErrorCode.NONE, FULL)


@pytest.mark.wide
def test_transactional_ids_with_long_names(victim: Victim) -> None:
    errors = []
    producer = Producer({"bootstrap.servers": victim.broker.bootstrap, "transactional.id": "first", **quick.QUIET})
    producer.init_transactions(quick.DEADLINE_S)

    def attack() -> None:
        with Raw(victim.address) as raw:
            for number in range(1_500):
                name = f"{number}-" + "x" * 15_000
                request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
                errors.append(raw.ask(request, 4).error_code)

    assert grown(victim, attack) < GROWTH_MAX
    assert (errors[0], errors[-1]) == (ErrorCode.NONE, FULL)


# --- headers


def batch_of_headers(counts: list[int]) -> bytes:
    section = bytearray()
    now_ms = int(time.time() * 1000)
    for index, count in enumerate(counts):
        rest = b"\0\0" + varint(index) + b"\2k\2v" + varint(count) + b"\0\1" * count
        section += varint(len(rest)) + rest
    model = parse_header(build_batch([(b"k", b"v", now_ms)] * len(counts), BatchFields(codec=Codec.ZSTD)))
    return bytes(rebuild_batch(model, section))


HEADERS_LARGEST = 8 * MIB
HEADERS = {
    "of one record": [4_500_000],
    "of a thousand": [4_500] * 1_000,
    "of the last record": [0] * 999 + [4_500_000],
}
"""More than fit uncompressed into a batch of that size, and as objects they would take 300 MB."""


def headers_of(row: dict[str, Any]) -> int | None:
    """How many a record has; None of another row."""
    return len(row["headers"]) + row.get("headersLeftOut", 0) if row["type"] == "record" else None


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(counts, id=name, marks=[] if name == "of the last record" else [pytest.mark.wide])
        for name, counts in HEADERS.items()
    ],
)
def test_millions_of_headers(victim: Victim, counts: list[int]) -> None:
    batch = batch_of_headers(counts)
    assert len(batch) < 64 * 1024
    victim.reset_peak()
    before = victim.rss
    for log in (
        RawLog(victim.broker, "recompressed", max_message_bytes=HEADERS_LARGEST, compression_type="gzip"),
        RawLog(victim.broker, "compacted", max_message_bytes=HEADERS_LARGEST, cleanup_policy="compact"),
    ):
        assert log.produce(batch).error is ErrorCode.MESSAGE_TOO_LARGE
    plain = RawLog(victim.broker, "plain", max_message_bytes=HEADERS_LARGEST)
    assert plain.produce(batch).error is ErrorCode.NONE
    assert plain.offset_at(int(time.time() * 1000) - 1_000_000) == 0
    assert victim.peak_rss - before < 128 * MIB
    _, found, peak = kpybroker_log("dump", "--records", str(victim.broker.data_dir / "plain-0"), look=headers_of)
    assert [count for count in found if count is not None] == counts
    assert peak < 300 * MIB
