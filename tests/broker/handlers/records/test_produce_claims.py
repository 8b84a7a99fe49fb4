"""Clients whose batches have wrong headers get Kafka's responses from their first batch on, whatever way it takes."""

from __future__ import annotations

import logging
import time
import zlib
from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.records import produce_claims
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.core.log.header_trust import FIRST
from kpybroker.storage.log.log import Log
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record, iter_records
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import claiming, found_by

OLD = [(b"k", b"v", 1000), (b"k", b"v", 3000), (b"k", b"v", 2000)]
WRONG_MAXIMA = (2000, 1000, -1, 0, 9000)
NOW_MS = int(time.time() * 1000)


def times(*entries: int, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([(None, b"v" * 100, time) for time in entries], BatchFields(codec=codec))


RIGHT = times(NOW_MS, NOW_MS + 2, NOW_MS + 1)
WRONG = claiming(RIGHT, max_timestamp=NOW_MS + 1)
"""Nothing in its header shows that it is."""


def client(client_id: str = "liar", software: str = "wrong") -> PlainConnectionInfo:
    connection = PlainConnectionInfo(connection_id=f"{client_id}-connection")
    connection.client_id, connection.client_software_name = client_id, software
    return connection


async def send(
    broker: Broker, connection: PlainConnectionInfo, *records: Buffer, topic: str = "t", version: int = 9
) -> list[int]:
    """The error code of each batch."""
    codes = []
    for one in records:
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(one))
        topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic_data])
        name = connection.client_id
        assert name is not None
        response = await ask(broker, request, version, client_id=name, connection=connection)
        codes.append(response.responses[0].partition_responses[0].error_code)
    return codes


async def settle(broker: Broker, connection: PlainConnectionInfo) -> None:
    """Its first batches are right, so it is believed."""
    assert await send(broker, connection, *[RIGHT] * FIRST) == [0] * FIRST


def log_of(broker: Broker, topic: str = "t") -> Log:
    log = broker.logs.get(topic, 0)
    assert log is not None
    return log


def stored(broker: Broker, topic: str = "t") -> list[BatchHeader]:
    log = log_of(broker, topic)
    data = log.active_segment.records.read(0, log.active_segment.size)
    headers = []
    for position, header in iter_batches(data):
        verify_crc(data, position, header)
        headers.append(header)
    return headers


@pytest.mark.parametrize("shortcuts", ["all", "none"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
@pytest.mark.parametrize("maximum", WRONG_MAXIMA)
async def test_the_largest_timestamp_is_corrected_from_the_first_batch_on(
    tmp_path: Path, maximum: int, codec: Codec, shortcuts: str
) -> None:
    wrong = claiming(build_batch(OLD, BatchFields(codec=codec)), max_timestamp=maximum)
    async with running_broker(tmp_path, topics=["t"], kpybroker_shortcuts=shortcuts) as broker:
        assert await send(broker, client(), wrong) == [0]
        assert [header.max_timestamp for header in stored(broker)] == [3000]
        log = log_of(broker)
        found = [found_by(log.search_timestamp(when)) for when in (0, 1500, 2500, 3500)]
        assert [-1 if one is None else one.offset for one in found] == [0, 1, 1, -1]
        largest = found_by(log.search_max_timestamp())
        assert largest is not None
        assert (largest.offset, largest.timestamp) == (1, 3000)


async def test_one_record_is_always_checked(tmp_path: Path) -> None:
    one = times(NOW_MS)
    async with running_broker(tmp_path, topics=["t"]) as broker:
        connection = client()
        await settle(broker, connection)
        assert await send(broker, connection, *(claiming(one, max_timestamp=wrong) for wrong in (-1, 0, NOW_MS + 1)))
        assert {header.max_timestamp for header in stored(broker)[FIRST:]} == {NOW_MS}


async def test_a_believed_header_is_stored_and_a_caught_client_never_believed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kafka.server.ReplicaManager")
    async with running_broker(tmp_path, topics=["t"]) as broker:
        settled, other, stranger = client(), client(), client("stranger")
        for connection in (settled, other, stranger):
            await settle(broker, connection)
        begin = len(stored(broker))
        await send(broker, settled, WRONG)  # what no sample can find
        await send(broker, client(), WRONG)  # caught by the first batch of a new connection
        await send(broker, settled, WRONG)
        await send(broker, other, RIGHT, WRONG)
        await send(broker, client(), RIGHT, WRONG)
        await send(broker, stranger, WRONG)
        await send(broker, client(software="another"), *[RIGHT] * FIRST, WRONG)
        right, wrong = NOW_MS + 2, NOW_MS + 1
        expected = [wrong, right, right, right, right, right, right, wrong, *[right] * FIRST, wrong]
        assert [header.max_timestamp for header in stored(broker)[begin:]] == expected
    assert len([one for one in caplog.records if "client=liar-connection" in one.message]) == 1


@pytest.mark.parametrize("version", [3, 9])
async def test_what_kafka_refuses_is_refused(tmp_path: Path, version: int) -> None:
    damaged = claiming(times(NOW_MS, NOW_MS)[:-1], batch_length=len(times(NOW_MS, NOW_MS)) - 13)
    too_many = claiming(RIGHT, records_count=9, last_offset_delta=8)
    far_too_many = claiming(times(NOW_MS, NOW_MS, codec=Codec.GZIP), records_count=10**6, last_offset_delta=10**6 - 1)
    garbage = claiming(RIGHT, attributes=Codec.GZIP)
    async with running_broker(tmp_path, topics=["t"]) as broker:
        codes = await send(broker, client(), damaged, too_many, far_too_many, garbage, RIGHT, version=version)
        invalid, unknown = int(ErrorCode.INVALID_RECORD), int(ErrorCode.UNKNOWN_SERVER_ERROR)
        assert codes == [invalid, invalid, invalid, unknown, 0]
        assert len(stored(broker)) == 1


async def test_large_batches_are_walked_in_a_thread(tmp_path: Path) -> None:
    for codec in (Codec.NONE, Codec.LZ4):
        large = times(*range(NOW_MS, NOW_MS + produce_claims.IN_LOOP_RECORDS_MAX + 1), codec=codec)
        largest = NOW_MS + produce_claims.IN_LOOP_RECORDS_MAX
        async with running_broker(tmp_path / codec.name, topics=["t"]) as broker:
            assert await send(broker, client("right"), large) == [0]
            assert await send(broker, client(), claiming(large, max_timestamp=largest - 1)) == [0]
            assert [header.max_timestamp for header in stored(broker)] == [largest] * 2


async def test_what_is_too_large_to_be_walked_is_stored_as_it_was_sent(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        count = log_of(broker).rules.max_checked_records + 1
        large = build_batch([(None, b"", NOW_MS)] * count, BatchFields(codec=Codec.ZSTD))
        assert await send(broker, client(), claiming(large, max_timestamp=NOW_MS + 1)) == [0]
        assert [header.max_timestamp for header in stored(broker)] == [NOW_MS + 1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_old_messages_are_converted_from_what_their_records_say(tmp_path: Path, magic: int, codec: Codec) -> None:
    message_set = build_message_set([Record(n, 1000 + n, b"k", b"v") for n in range(3)], magic, codec=codec)
    if magic == 1 and codec is not Codec.NONE:
        message_set[18:26] = (9000).to_bytes(8, "big")
        message_set[12:16] = _crc32(bytes(message_set[16:]))
    async with running_broker(tmp_path, topics=["t"]) as broker:
        assert await send(broker, client(), message_set, version=2) == [0]
        assert [header.max_timestamp for header in stored(broker)] == [1002 if magic else -1]
        data = log_of(broker).active_segment.records.read(0, 10_000)
        (position, header), *_ = iter_batches(data)
        assert [record.value for record in iter_records(data, header, position)] == [b"v"] * 3


def _crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")
