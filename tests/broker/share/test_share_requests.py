"""ShareFetch and ShareAcknowledge: sessions, errors, and what responses name. Each case is what Kafka 4.3.1 does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acls import Binding, Entry, Pattern, Permission
from kpybroker.core.share.group_settings import OffsetReset, ShareGroupSettings
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_fetch import ShareFetchResponse
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker
from tests.support.brokers.running_broker import create_topic
from tests.support.share.members import Member, MemoryPersister, offsets, produce, rows, share_broker
from tests.support.storage.batches import NOW_MS

ACCEPT, RELEASE, REJECT, RENEW = [1], [2], [3], [4]
UNKNOWN_ID = b"\x07" * 16


class Place:
    """A broker with topic `t` of three partitions, and its only member."""

    def __init__(self, broker: Broker, persister: MemoryPersister, topic_id: bytes) -> None:
        self.broker = broker
        self.persister = persister
        self.topic_id = topic_id
        self.member = Member(broker, topic_id)
        self.share_partitions = broker.coordinators.share_partitions

    def sets(self, **settings: Any) -> None:
        changed = ShareGroupSettings(**settings)
        self.share_partitions.settings_of = lambda group_id: changed


OpenPlace = Callable[[], AbstractAsyncContextManager[Place]]


@asynccontextmanager
async def a_place(tmp_path: Path, **options: Any) -> AsyncIterator[Place]:
    persister = MemoryPersister(options.pop("start_offset", 0))
    async with share_broker(tmp_path, persister, **options) as broker:
        yield Place(broker, persister, await create_topic(broker, "t", 3))


@pytest.fixture
def open_place(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> OpenPlace:
    return lambda: a_place(tmp_path)


def named(response: ShareFetchResponse) -> dict[int, tuple[int, int]]:
    """By partition: the errors of fetching and of acknowledging."""
    assert response.error_code == ErrorCode.NONE
    return {
        data.partition_index: (data.error_code, data.acknowledge_error_code)
        for topic in response.responses
        for data in topic.partitions
    }


# --- sessions


async def test_the_next_epoch_is_required(open_place: OpenPlace, autojump_clock: trio.testing.MockClock) -> None:
    async with open_place() as place:
        member = place.member
        await member.open()
        member.epoch = 2
        assert (await member.fetch()).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert (await member.acknowledge({})).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        member.epoch = 0
        assert (await member.acknowledge({})).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


@pytest.mark.parametrize("epoch", [1, -1])
async def test_a_session_is_required(open_place: OpenPlace, autojump_clock: trio.testing.MockClock, epoch: int) -> None:
    async with open_place() as place:
        place.member.epoch = epoch
        assert (await place.member.fetch()).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert (await place.member.acknowledge({})).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_the_first_request_may_not_acknowledge(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        response = await place.member.fetch(acks={0: [(0, 0, ACCEPT)]})
        assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("group_id", "member_id"), [(None, "m"), ("g", None), ("g", ""), ("g", "m" * 37), ("g", "\U0001f600" * 19)]
)
async def test_a_group_and_a_short_member_id_are_required(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock, group_id: str | None, member_id: str | None
) -> None:
    async with open_place() as place:
        response = await place.member.fetch(group_id=group_id, member_id=member_id)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        place.member.epoch = 1
        acknowledged = await place.member.acknowledge({}, group_id=group_id, member_id=member_id)
        assert acknowledged.error_code == ErrorCode.INVALID_REQUEST


async def test_above_the_limit_a_client_is_refused_when_its_wait_is_over(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        place.share_partitions.sessions._slots_max = 1
        await place.member.open()
        began = trio.current_time()
        response = await Member(place.broker, place.topic_id, "m2").fetch(max_wait_ms=500)
        assert response.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert trio.current_time() - began == pytest.approx(0.5)


async def test_a_request_that_was_overtaken_by_another_one_of_its_session_is_refused(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open()
        codes: list[int] = []

        async def fetch() -> None:
            codes.append((await member.fetch(max_wait_ms=5_000)).error_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            await trio.testing.wait_all_tasks_blocked()
            place.share_partitions.sessions.update(("g", "m"), 2)  # type: ignore[arg-type]
        assert codes == [ErrorCode.INVALID_SHARE_SESSION_EPOCH]


# --- what responses name


async def test_later_responses_name_what_has_records_and_what_is_new(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open([0, 1])
        assert named(await member.fetch()) == {}
        produce(place.broker, b"a", partition=1)
        assert named(await member.fetch()) == {1: (0, 0)}
        await member.fetch([2])
        await trio.testing.wait_all_tasks_blocked()
        produce(place.broker, b"a", partition=2)
        assert rows(await member.fetch(forget=[1]), 2) == [(0, 0, 1)]
        assert {one.partition for one in place.share_partitions.sessions.require(("g", "m")).partitions} == {0, 2}  # type: ignore[arg-type]


async def test_a_partition_joins_though_it_is_only_acknowledged(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open([0])
        assert named(await member.fetch(acks={1: [(0, 0, ACCEPT)]}))[1][1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await trio.testing.wait_all_tasks_blocked()
        produce(place.broker, b"a", partition=1)
        assert rows(await member.fetch(), 1) == [(0, 0, 1)]


async def test_partitions_share_the_bytes_and_the_records(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open([0, 1, 2])
        for partition in range(3):
            for _ in range(4):
                produce(place.broker, b"x" * 1000, partition=partition)
        response = await member.fetch(max_bytes=6_600)
        assert [len(offsets(response, partition)) for partition in range(3)] == [2, 2, 2]
        response = await member.fetch(max_records=3)
        assert sum(last - first + 1 for partition in range(3) for first, last, _ in rows(response, partition)) == 3


async def test_partitions_take_turns_to_be_first(open_place: OpenPlace, autojump_clock: trio.testing.MockClock) -> None:
    async with open_place() as place:
        member = place.member
        await member.open([0, 1, 2])
        for partition in range(3):
            for _ in range(6):
                produce(place.broker, b"x", partition=partition)
        firsts = []
        for _ in range(6):
            response = await member.fetch(max_records=1)
            firsts.append(next(index for index in range(3) if rows(response, index)))
        assert firsts == [1, 1, 0, 1, 1, 2], "by the epoch, those with records behind the others"


@pytest.mark.parametrize("limit", ["max_records", "max_bytes"])
async def test_nothing_is_fetched_where_nothing_is_wanted(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock, limit: str
) -> None:
    async with open_place() as place:
        await place.member.open()
        produce(place.broker, b"a")
        began, limits = trio.current_time(), dict[str, Any]({limit: 0})
        assert named(await place.member.fetch(max_wait_ms=5_000, **limits)) == {}
        assert trio.current_time() == began


async def test_a_negative_limit_of_bytes_is_an_error_of_each_partition(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        await place.member.open()
        assert named(await place.member.fetch(max_bytes=-1)) == {0: (ErrorCode.UNKNOWN_SERVER_ERROR, 0)}


# --- errors of partitions


async def test_unknown_topics_and_partitions_are_refused_each_by_itself(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        produce(place.broker, b"a")
        assert named(await member.fetch([0, 3]))[3] == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        member.topic_id = UNKNOWN_ID
        response = await member.fetch([0], acks={0: [(0, 0, ACCEPT)]})
        by_topic = {topic.topic_id: topic.partitions for topic in response.responses}
        data = by_topic[UNKNOWN_ID][0]
        assert (data.error_code, data.acknowledge_error_code) == (
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )
        acknowledged = await member.acknowledge({0: [(0, 0, ACCEPT)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_topic_that_was_deleted_is_unknown(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        await place.member.open()
        await place.broker.topics.delete_topics(["t"], 10_000)
        codes = {error for error, _ in named(await place.member.fetch(max_wait_ms=100)).values()}
        assert codes <= {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert codes
        assert len(place.share_partitions) == 0


async def test_group_and_topics_must_be_readable(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    name = "kafka.security.authorizer.AclAuthorizer"

    def may_read(kind: ResourceType, resource: str) -> Binding:
        return Binding(Pattern(kind, resource), Entry("User:ANONYMOUS", "*", Operation.READ, Permission.ALLOW))

    persister = MemoryPersister()
    async with share_broker(tmp_path, persister, authorizer_class_name=name) as broker:
        assert broker.acls is not None
        create = Entry("User:ANONYMOUS", "*", Operation.CREATE, Permission.ALLOW)
        await broker.acls.create([Binding(Pattern(ResourceType.CLUSTER, "kafka-cluster"), create)])
        await create_topic(broker, "t")
        member = Member(broker, broker.metadata.topic_id("t"))
        assert (await member.fetch()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert (await member.acknowledge({})).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await broker.acls.create([may_read(ResourceType.GROUP, "g")])
        assert named(await member.fetch()) == {0: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)}
        acknowledged = await member.acknowledge({0: [(0, 0, ACCEPT)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert named(await member.fetch()) == {0: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)}
        await broker.acls.create([may_read(ResourceType.TOPIC, "t")])
        assert named(await member.fetch(max_wait_ms=100)) == {0: (ErrorCode.NONE, 0)}, "the end of an error is named"


# --- acknowledgements


@pytest.mark.parametrize(
    "batches",
    [
        [(1, 0, ACCEPT)],
        [(1, 1, ACCEPT), (0, 0, ACCEPT)],
        [(0, 0, [])],
        [(0, 1, [1, 1, 1])],
        [(0, 0, [5])],
        [(0, 0, [-1])],
        [(0, 0, RENEW)],
    ],
    ids=repr,
)
async def test_acknowledgements_that_are_not_well_formed_are_refused(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock, batches: list[tuple[int, int, list[int]]]
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open()
        produce(place.broker, b"a", b"b")
        await member.fetch()
        assert named(await member.fetch(acks={0: batches})) == {0: (0, ErrorCode.INVALID_REQUEST)}
        acknowledged = await member.acknowledge({0: batches})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        acknowledged = await member.acknowledge({0: [(0, 1, [1, 3])]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.NONE


async def test_a_renewal_keeps_the_lock_and_fetches_nothing(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open()
        produce(place.broker, b"a")
        await member.fetch()
        for _ in range(3):
            await trio.sleep(20)
            nothing: Any = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
            renewed = await member.fetch(acks={0: [(0, 0, RENEW)]}, is_renew_ack=True, **nothing)
            assert named(renewed) == {0: (0, 0)}
        assert rows(await member.fetch()) == []
        acknowledged = await member.acknowledge({0: [(0, 0, RENEW)]}, is_renew_ack=True)
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert acknowledged.acquisition_lock_timeout_ms == 30_000
        refused = await member.fetch(acks={0: [(0, 0, RENEW)]}, is_renew_ack=True)
        assert refused.error_code == ErrorCode.INVALID_REQUEST


async def test_version_1_knows_no_renewal(open_place: OpenPlace, autojump_clock: trio.testing.MockClock) -> None:
    async with open_place() as place:
        member = place.member
        member.version = 1
        await member.open()
        produce(place.broker, b"a")
        assert rows(await member.fetch()) == [(0, 0, 1)]
        acknowledged = await member.acknowledge({0: [(0, 0, RENEW)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


# --- where a group begins, and what it may see


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        (OffsetReset("latest"), []),
        (OffsetReset("earliest"), [(0, 1, 1)]),
        (OffsetReset("by_duration", 1_500), [(1, 1, 1)]),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
async def test_a_group_without_a_state_begins_where_its_reset_says(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
    reset: OffsetReset,
    expected: list[tuple[int, int, int]],
) -> None:
    async with a_place(tmp_path, start_offset=-1) as place:
        now_ms = place.broker.clock.time_ms()
        place.sets(offset_reset=reset)
        produce(place.broker, b"a", timestamp=now_ms - 3_600_000)
        produce(place.broker, b"b", timestamp=now_ms)
        assert rows(await place.member.fetch(max_wait_ms=100)) == expected


async def test_by_duration_without_a_record_that_young_is_an_error(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with a_place(tmp_path, start_offset=-1) as place:
        place.sets(offset_reset=OffsetReset("by_duration", 1_000))
        produce(place.broker, b"a", timestamp=NOW_MS)
        response = await place.member.fetch(max_wait_ms=100)
        assert named(response) == {0: (ErrorCode.OFFSET_NOT_AVAILABLE, 0)}


async def test_records_of_aborted_transactions_are_for_read_uncommitted_only(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with a_place(tmp_path, transaction_partition_verification_enable="false") as place:
        partition = place.broker.replicas.hosted("t", 0)
        place.sets(reads_committed=True)
        committed, uncommitted = place.member, Member(place.broker, place.topic_id, "m", "uncommitted")
        await committed.open()
        produce(place.broker, b"a", b"b", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
        produce(place.broker, b"c", is_transactional=True, producer_id=8, producer_epoch=0, base_sequence=0)
        assert rows(await committed.fetch(max_wait_ms=100)) == [], "the transactions are open"
        partition.append_marker(EndTransactionMarker(ControlRecordType.ABORT, 0, NOW_MS), 7, 0)
        partition.append_marker(EndTransactionMarker(ControlRecordType.COMMIT, 0, NOW_MS), 8, 0)
        assert rows(await committed.fetch()) == [(2, 4, 1)]
        place.sets(reads_committed=False)
        await uncommitted.open()
        assert rows(await uncommitted.fetch()) == [(0, 4, 1)]


async def test_a_fetch_waits_for_its_minimum_of_bytes(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open()
        produce(place.broker, b"x" * 1_000)
        responses: list[ShareFetchResponse] = []

        async def fetch() -> None:
            responses.append(await member.fetch(min_bytes=2_000, max_wait_ms=5_000))

        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            nursery.start_soon(fetch)
            await trio.sleep(1)
            assert not responses
            produce(place.broker, b"x" * 1_000)
        assert trio.current_time() - began == pytest.approx(1)
        assert rows(responses[0]) == [(0, 1, 1)]
        produce(place.broker, b"y")
        assert rows(await member.fetch(min_bytes=2_000, max_wait_ms=100)) == [(2, 2, 1)], "its time was over"


async def test_the_limit_of_records_in_flight_holds_until_some_are_done_with(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        from kpybroker.core.share.values import ShareSettings

        place.sets(partition=ShareSettings(partition_max_record_locks=100))
        one, two = place.member, Member(place.broker, place.topic_id, "m2")
        await one.open()
        await two.open()
        produce(place.broker, *[b"a"] * 100)
        produce(place.broker, *[b"b"] * 100)
        assert rows(await one.fetch(max_records=100)) == [(0, 99, 1)]
        assert rows(await two.fetch()) == []
        await one.acknowledge({0: [(0, 99, ACCEPT)]})
        assert rows(await two.fetch(max_records=100)) == [(100, 199, 1)]


async def test_a_connection_that_ends_while_it_waits_leaves_nothing(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        member = place.member
        await member.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: member.fetch(max_wait_ms=60_000))
            await trio.testing.wait_all_tasks_blocked()
            (led,) = place.share_partitions.led
            assert len(led.waiting) == 1
            nursery.cancel_scope.cancel()
        assert not led.waiting
        assert place.share_partitions.fetches.waiting == 0


async def test_a_client_over_its_quota_gets_what_it_has_acquired_and_waits_afterwards(
    open_place: OpenPlace, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_place() as place:
        await place.broker.configs.write("clients", "test", {"consumer_byte_rate": "1000"})
        await trio.testing.wait_all_tasks_blocked()
        member = place.member
        await member.open()
        produce(place.broker, b"x" * 50_000)
        response = await member.fetch()
        assert rows(response) == [(0, 0, 1)]
        assert offsets(response) == [0]
        assert response.throttle_time_ms > 1_000
