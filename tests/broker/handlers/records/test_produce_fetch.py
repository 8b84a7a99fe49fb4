"""Produce and Fetch on a whole broker: every version, sessions, limits, waiting, errors."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.records import fetch as fetch_handler
from kpybroker.broker.handlers.records import produce as produce_handler
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record, iter_records
from tests.support.brokers.fake_broker import versions
from tests.support.brokers.running_broker import ask, create_topic, forget_metadata, running_broker
from tests.support.storage.batches import NOW_MS, batch

ZERO = bytes(16)


def produce(topic: str, data: dict[int, bytes | bytearray | None], acks: int = 1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    ProduceRequest.PartitionProduceData(
                        index=index, records=None if records is None else bytes(records)
                    )
                    for index, records in data.items()
                ],
            )
        ],
    )


async def write(broker: Broker, topic: str, *values: bytes, index: int = 0) -> ProduceResponse.PartitionProduceResponse:
    response = await ask(broker, produce(topic, {index: batch(*values)}), 9)
    partition: ProduceResponse.PartitionProduceResponse = response.responses[0].partition_responses[0]
    return partition


def fetch(
    topic: str | bytes, offsets: dict[int, int], *, session: tuple[int, int] = (0, -1), **changes: Any
) -> FetchRequest:
    limits = {"partition_max_bytes": changes.pop("partition_max_bytes", 1_000_000)}
    for name in ("current_leader_epoch", "last_fetched_epoch"):
        if name in changes:
            limits[name] = changes.pop(name)
    named: dict[str, Any] = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
    topics = [
        FetchRequest.FetchTopic(
            **named,
            partitions=[
                FetchRequest.FetchPartition(partition=index, fetch_offset=offset, **limits)
                for index, offset in offsets.items()
            ],
        )
    ]
    settings: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10_000_000, **changes}
    return FetchRequest(session_id=session[0], session_epoch=session[1], topics=topics if offsets else [], **settings)


def values(response: FetchResponse) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {}
    for topic in response.responses:
        for data in topic.partitions:
            records = bytes(data.records or b"")
            found[data.partition_index] = [
                record.value for at, header in iter_batches(records) for record in iter_records(records, header, at)
            ]
    return found


def only(response: FetchResponse) -> FetchResponse.PartitionData:
    (topic,) = response.responses
    return only_part(topic)


def only_part(topic: FetchResponse.FetchableTopicResponse) -> FetchResponse.PartitionData:
    (data,) = topic.partitions
    return data


async def test_a_broker_takes_records_after_its_first_metadata_update(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as the producer waits; then the response is Kafka's."""
    async with running_broker(tmp_path, topics=["a"]) as broker:
        update = forget_metadata(broker.metadata)
        with monkeypatch.context() as before_it_leads:
            before_it_leads.setattr(broker.replicas, "_partitions", {})
            refused = await write(broker, "a", b"refused")
            assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert trio.current_time() == pytest.approx(1)  # `timeout_ms`
            responses: list[ProduceResponse.PartitionProduceResponse] = []

            async def write_early() -> None:
                responses.append(await write(broker, "a", b"one"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(write_early)
                await trio.testing.wait_all_tasks_blocked()
                before_it_leads.undo()
                await broker.metadata.update(update)
        assert [(response.error_code, response.base_offset) for response in responses] == [(ErrorCode.NONE, 0)]


@pytest.mark.parametrize("version", versions(produce_handler))
async def test_what_is_produced_in_any_version_is_fetched_in_every_other(tmp_path: Path, version: int) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        if version >= 3:
            records: bytes | bytearray = batch(b"a", b"b")
        else:
            records = build_message_set(
                [Record(0, 5, None, b"a"), Record(1, 6, None, b"b")], magic=1 if version == 2 else 0
            )
        asked = produce("t", {0: records})
        asked.topic_data[0].topic_id = topic_id
        response = await ask(broker, asked, version)
        (partition,) = response.responses[0].partition_responses
        assert (partition.error_code, partition.base_offset) == (0, 0)
        for fetch_version in versions(fetch_handler):
            request = fetch("t" if fetch_version < 13 else topic_id, {0: 0})
            response = await ask(broker, request, fetch_version)
            assert values(response) == {0: [b"a", b"b"]}, fetch_version
            assert only(response).high_watermark == 2


async def test_acks_0_has_no_response_and_an_error_ends_the_connection(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        assert await ask(broker, produce("t", {0: batch(b"a")}, acks=0), 9) is None
        assert values(await ask(broker, fetch("t", {0: 0}), 12)) == {0: [b"a"]}
        with pytest.raises(ProtocolError):
            await ask(broker, produce("missing", {0: batch(b"a")}, acks=0), 9)


@pytest.mark.parametrize(
    ("topic", "index", "records", "acks", "code"),
    [
        ("missing", 0, batch(b"a"), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 7, batch(b"a"), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, batch(b"a"), 2, ErrorCode.INVALID_REQUIRED_ACKS),
        ("t", 0, batch(b"a") + batch(b"b"), 1, ErrorCode.INVALID_RECORD),
        ("t", 0, batch(b"a")[:-1] + b"\xff", 1, ErrorCode.CORRUPT_MESSAGE),
        ("t", 0, batch(b"a" * 2_000_000), 1, ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
async def test_what_cannot_be_appended_is_refused_and_loses_nothing(
    tmp_path: Path, topic: str, index: int, records: bytes, acks: int, code: ErrorCode
) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        response = await ask(broker, produce(topic, {index: records}, acks), 9)
        (partition,) = response.responses[0].partition_responses
        assert (partition.error_code, partition.base_offset) == (code, -1)
        assert (await write(broker, "t", b"good")).base_offset == 0


async def test_a_refusal_is_logged_once_for_each_client_topic_and_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", partitions=2)
        caplog.set_level(logging.WARNING)
        damaged = batch(b"a")[:-1] + b"\xff"
        for index in (0, 1, 0):
            await ask(broker, produce("t", {index: damaged}), 9, client_id="orders")
        (line,) = [record.getMessage() for record in caplog.records]
        assert line.startswith("Refused records of test client_id=orders for t-0: CORRUPT_MESSAGE: ")
        await ask(broker, produce("t", {0: damaged}), 9, client_id="payments")
        await ask(broker, produce("t", {0: batch(b"a" * 2_000_000)}), 9, client_id="orders")
        assert len(caplog.records) == 3
        await ask(broker, produce("absent", {0: damaged}), 9, client_id="orders")
        assert len(caplog.records) == 3, "an error that passes is not logged"


async def test_more_in_sync_replicas_than_there_are_replicas_are_not_asked_for(tmp_path: Path) -> None:
    """Partition.effectiveMinIsr."""
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", min_insync_replicas="2")
        response = await ask(broker, produce("t", {0: batch(b"a")}, -1), 9)
        assert response.responses[0].partition_responses[0].error_code == 0


async def test_an_idempotent_producer_is_acknowledged_twice_and_written_once(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        options = {"producer_id": 9, "producer_epoch": 0}
        responses = []
        for sequence in (0, 1, 1, 0, 3):
            request = produce("t", {0: batch(b"%d" % sequence, base_sequence=sequence, **options)}, -1)
            (response,) = (await ask(broker, request, 9)).responses[0].partition_responses
            responses.append((response.error_code, response.base_offset))
        gap = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert responses == [(0, 0), (0, 1), (0, 1), (0, 0), (gap, -1)]
        assert values(await ask(broker, fetch("t", {0: 0}), 12)) == {0: [b"0", b"1"]}


async def test_internal_topics_take_nothing_from_clients_but_the_old_admin_client(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await ask(broker, FindCoordinatorRequest(key="g", key_type=0), 3)
        topic = GROUP_METADATA_TOPIC_NAME
        assert (await write(broker, topic, b"a")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        log = broker.logs.get(topic, 0)
        assert log is not None
        assert log.log_end_offset == 0
        keyed = build_batch([(b"k", None, NOW_MS)])
        response = await ask(broker, produce(topic, {0: keyed}), 9, client_id="__admin_client")
        assert response.responses[0].partition_responses[0].error_code == 0


async def test_an_acknowledgement_waits_for_the_disk_where_asked(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", flush_messages="1")
        await write(broker, "t", b"a")
        log = broker.logs.get("t", 0)
        assert log is not None
        assert log.recovery_point == 1


# --- fetch


@pytest.mark.parametrize(
    ("offsets", "changes", "code"),
    [
        ({0: 1}, {}, ErrorCode.NONE),
        ({0: 2}, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({5: 0}, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({0: 0}, {"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({0: 0}, {"current_leader_epoch": 0}, ErrorCode.NONE),
        ({0: 0}, {"last_fetched_epoch": 5}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
async def test_each_mistake_has_its_code(
    tmp_path: Path, offsets: dict[int, int], changes: dict[str, Any], code: ErrorCode
) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        await write(broker, "t", b"a")
        assert only(await ask(broker, fetch("t", offsets, **changes), 12)).error_code == code


async def test_topic_ids_unknown_and_of_a_topic_created_again(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        old = await create_topic(broker, "t")
        await write(broker, "t", b"a")
        assert only(await ask(broker, fetch(b"x" * 16, {0: 0}), 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
        new = await create_topic(broker, "t")
        assert new != old
        assert only(await ask(broker, fetch(old, {0: 0}), 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert only(await ask(broker, fetch(new, {0: 0}), 13)).high_watermark == 0


async def test_the_first_batch_is_sent_whole_though_it_exceeds_the_limits(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", partitions=2)
        await write(broker, "t", b"x" * 1000)
        await write(broker, "t", b"y" * 1000, index=1)
        response = await ask(broker, fetch("t", {0: 0, 1: 0}, partition_max_bytes=10, max_bytes=10), 12)
        assert values(response) == {0: [b"x" * 1000], 1: []}


async def test_a_fetch_below_the_first_offset_of_a_batch_brings_the_whole_batch(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        await write(broker, "t", b"a", b"b", b"c")
        assert values(await ask(broker, fetch("t", {0: 2}), 12)) == {0: [b"a", b"b", b"c"]}


async def test_a_session_returns_only_changes_and_misses_no_append(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", partitions=3)
        full = await ask(broker, fetch("t", {0: 0, 1: 0, 2: 0}, session=(0, 0)), 12)
        assert full.session_id != 0
        assert values(full) == {0: [], 1: [], 2: []}
        session = full.session_id
        quiet = await ask(broker, fetch("t", {}, session=(session, 1)), 12)
        assert (quiet.session_id, quiet.responses) == (session, [])
        await write(broker, "t", b"a", index=1)
        assert values(await ask(broker, fetch("t", {}, session=(session, 2)), 12)) == {1: [b"a"]}
        # Not asked to move on, the same records come again.
        assert values(await ask(broker, fetch("t", {}, session=(session, 3)), 12)) == {1: [b"a"]}
        moved = await ask(broker, fetch("t", {1: 1}, session=(session, 4)), 12)
        assert moved.responses == []
        wrong = await ask(broker, fetch("t", {}, session=(session, 4)), 12)
        assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        unknown = await ask(broker, fetch("t", {}, session=(session + 1, 4)), 12)
        assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_partitions_leave_and_join_a_session(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", partitions=2)
        session = (await ask(broker, fetch("t", {0: 0}, session=(0, 0)), 12)).session_id
        forget = [FetchRequest.ForgottenTopic(topic="t", partitions=[0])]
        request = fetch("t", {1: 0}, session=(session, 1), forgotten_topics_data=forget)
        assert values(await ask(broker, request, 12)) == {1: []}
        await write(broker, "t", b"a", index=0)
        await write(broker, "t", b"b", index=1)
        assert values(await ask(broker, fetch("t", {}, session=(session, 2)), 12)) == {1: [b"b"]}
        forget = [FetchRequest.ForgottenTopic(topic="t", partitions=[1])]
        last = await ask(broker, fetch("t", {}, session=(session, 3), forgotten_topics_data=forget), 12)
        assert (last.session_id, len(broker.fetch_service.sessions)) == (0, 0)


async def test_a_session_notices_that_its_topic_is_gone_and_back(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        session = (await ask(broker, fetch("t", {0: 0}, session=(0, 0)), 12)).session_id
        await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
        gone = only(await ask(broker, fetch("t", {}, session=(session, 1)), 12))
        assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await create_topic(broker, "t")
        await write(broker, "t", b"a")
        assert values(await ask(broker, fetch("t", {}, session=(session, 2)), 12)) == {0: [b"a"]}


@pytest.mark.parametrize("session", [(0, -1), (0, 0)], ids=["no session", "session"])
async def test_a_fetch_waits_until_there_is_enough(tmp_path: Path, session: tuple[int, int]) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", partitions=2)
        responses: list[Any] = []

        async def wait() -> None:
            request = fetch("t", {0: 0, 1: 0}, session=session, max_wait_ms=60_000, min_bytes=150)
            responses.append(await ask(broker, request, 12))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await write(broker, "t", b"a" * 50, index=0)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert not responses
            await write(broker, "t", b"b" * 50, index=1)
        assert values(responses[0]) == {0: [b"a" * 50], 1: [b"b" * 50]}


async def test_a_fetch_does_not_wait_for_what_lies_in_a_later_segment(tmp_path: Path) -> None:
    """DelayedFetch, case F: one read ends with its segment, and no append makes it longer."""
    async with running_broker(tmp_path, log_segment_bytes="150") as broker:
        await create_topic(broker, "t")
        for value in (b"a" * 50, b"b" * 50):
            await write(broker, "t", value)
        with trio.fail_after(60):
            response = await ask(broker, fetch("t", {0: 0}, max_wait_ms=600_000, min_bytes=150), 12)
        assert values(response) == {0: [b"a" * 50]}
        with trio.move_on_after(0.05) as scope:
            await ask(broker, fetch("t", {0: 1}, max_wait_ms=60_000, min_bytes=150), 12)
        assert scope.cancelled_caught


async def test_a_session_begun_before_the_first_metadata_misses_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader hears of its topic by LeaderAndIsr, and its followers ask for it by id, before UpdateMetadata comes."""
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        with monkeypatch.context() as before_the_metadata:
            before_the_metadata.setattr(broker.metadata, "topic_name", lambda _: None)
            session = (await ask(broker, fetch(topic_id, {0: 0}, session=(0, 0)), 13)).session_id
        await write(broker, "t", b"a")
        assert values(await ask(broker, fetch(topic_id, {}, session=(session, 1)), 13)) == {0: [b"a"]}


async def test_slices_are_given_back_however_a_fetch_ends(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        await write(broker, "t", b"a")
        with trio.move_on_after(0.05):
            await ask(broker, fetch("t", {0: 0}, max_wait_ms=60_000, min_bytes=10_000), 12)
        partition = broker.replicas.partition("t", 0)
        assert partition is not None
        assert partition._sessions == {}
        await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)


# --- list offsets


@pytest.mark.parametrize("version", range(12))
async def test_offsets_by_time(tmp_path: Path, version: int) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        for timestamp in (1000, 3000, 2000):
            await ask(broker, produce("t", {0: batch(b"v", timestamp=timestamp)}), 9)

        async def at(timestamp: int) -> Any:
            wanted = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=0, timestamp=timestamp, max_num_offsets=5 if version == 0 else 1
            )
            topics = [ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[wanted])]
            response = await ask(broker, ListOffsetsRequest(replica_id=-1, topics=topics), version)
            return response.topics[0].partitions[0]

        if version == 0:
            assert (await at(-1)).old_style_offsets == [3, 0]
            assert (await at(-2)).old_style_offsets == [0]
            return
        assert (await at(-1)).offset == 3
        assert (await at(-2)).offset == 0
        assert ((await at(1500)).offset, (await at(1500)).timestamp) == (1, 3000)
        assert (await at(9999)).offset == -1
        newest = await at(-3)
        if version < 7:
            assert newest.error_code == ErrorCode.UNSUPPORTED_VERSION
        else:
            assert (newest.offset, newest.timestamp) == (1, 3000)
        pending_upload = await at(-6)
        assert pending_upload.error_code == (ErrorCode.UNSUPPORTED_VERSION if version < 11 else ErrorCode.NONE)
        assert pending_upload.offset == -1


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
@pytest.mark.parametrize("version", [0, 1, 6, 9, 10, 11])
async def test_a_time_that_a_version_does_not_know_is_refused_whatever_the_partition(
    tmp_path: Path, version: int, timestamp: int, since: int
) -> None:
    async with running_broker(tmp_path) as broker:
        wanted = ListOffsetsRequest.ListOffsetsPartition(timestamp=timestamp)
        topics = [ListOffsetsRequest.ListOffsetsTopic(name="missing", partitions=[wanted])]
        response = await ask(broker, ListOffsetsRequest(replica_id=-1, topics=topics, timeout_ms=-5), version)
        code = ErrorCode.UNSUPPORTED_VERSION if version < since else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert response.topics[0].partitions[0].error_code == code


async def test_of_two_batches_for_one_partition_the_last_is_appended(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        twice = produce("t", {0: batch(b"first")})
        twice.topic_data += produce("t", {0: batch(b"second")}).topic_data
        response = await ask(broker, twice, 9)
        assert [len(topic.partition_responses) for topic in response.responses] == [1]
        (data,) = (await ask(broker, fetch("t", {0: 0}), 12)).responses[0].partitions
        records = bytes(data.records)
        assert [r.value for at, header in iter_batches(records) for r in iter_records(records, header, at)] == [
            b"second"
        ]


async def test_bytes_that_are_no_batch_fail_the_whole_request(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "t", 2)
        response = await ask(broker, produce("t", {0: batch(b"good"), 1: bytes(100)}), 9)
        partitions = response.responses[0].partition_responses
        assert [partition.error_code for partition in partitions] == [ErrorCode.CORRUPT_MESSAGE] * 2
        assert partitions[0].error_message == "Record size 0 is less than the minimum record overhead (14)"


async def test_what_could_not_be_read_comes_last_and_only_neighbours_share_a_topic(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        response = await ask(broker, fetch("t", {7: 0, 0: 0}), 12)
        assert [part.partition_index for part in response.responses[0].partitions] == [0, 7]
        assert response.responses[0].partitions[1].aborted_transactions == []


async def test_of_what_could_not_be_read_unknown_ids_come_first(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        request = fetch(topic_id, {7: 0})
        request.topics += fetch(b"\x01" * 16, {0: 0}).topics + fetch(topic_id, {0: 0}).topics
        response = await ask(broker, request, 18)
        read, unknown, missing = response.responses
        assert (read.topic_id, only_part(read).error_code) == (topic_id, ErrorCode.NONE)
        assert only_part(unknown).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert only_part(missing).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_follower_that_is_no_replica_is_sent_to_the_leader(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        request = fetch(topic_id, {0: 0}, replica_state=FetchRequest.ReplicaState(replica_id=5))
        response = await ask(broker, request, 17)
        (data,) = response.responses[0].partitions
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == response.node_endpoints[0].node_id == broker.node_id


async def test_a_session_returns_a_partition_it_had_no_room_for_without_being_asked_again(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t", partitions=2)
        for index in range(2):
            await write(broker, "t", b"a" * 100, index=index)
        response = await ask(broker, fetch(topic_id, {0: 0, 1: 0}, session=(0, 0), max_bytes=1), 13)
        assert {index: len(found) for index, found in values(response).items()} == {0: 1, 1: 0}
        news = await ask(broker, fetch(topic_id, {0: 1}, session=(response.session_id, 1), max_bytes=1), 13)
        assert values(news) == {1: [b"a" * 100]}
