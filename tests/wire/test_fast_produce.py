"""Requests read and responses written without messages equal those of the codec, byte for byte."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire import fast_produce
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import encode_response_header
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.wire.random_messages import random_message

ALL_VERSIONS = range(fast_produce.VERSIONS[0], fast_produce.VERSIONS[1] + 1)
versions = st.sampled_from(ALL_VERSIONS)
int16, int32, int64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
names = st.text(min_size=1, max_size=30)
HEADER = b"header"


def request(
    acks: int, timeout_ms: int, topic: str, topic_id: bytes, index: int, records: bytes | memoryview
) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=index, records=records)
    topic_data = ProduceRequest.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic_data])


def place(topic: str, version: int) -> tuple[str, bytes]:
    """The topic as the version names it: by its name, or by an id of 16 bytes made of it."""
    if version < fast_produce.TOPIC_IDS_FROM:
        return topic, ZERO_UUID
    return "", topic.encode()[:16].ljust(16, b"-")


def read(body: bytes, version: int) -> fast_produce.FastProduce | None:
    return fast_produce.read(memoryview(bytearray(HEADER + body)), len(HEADER), version)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 100, 126, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_usual_request_of_any_size_is_read(version: int, size: int) -> None:
    asked = (1, 30_000, *place("topic", version), 3, memoryview(bytes(size)))
    assert read(encode(request(*asked), version), version) == asked


@given(versions, int16, int32, names, int32, st.binary(max_size=200))
def test_a_usual_request_with_any_values_is_read(
    version: int, acks: int, timeout_ms: int, topic: str, index: int, records: bytes
) -> None:
    asked = (acks, timeout_ms, *place(topic, version), index, memoryview(records))
    found = read(encode(request(*asked), version), version)
    is_long = len(topic.encode()) > 126 and ProduceRequest.FLEXIBLE_FROM <= version < fast_produce.TOPIC_IDS_FROM
    assert found == asked or (found is None and is_long)


@given(versions, st.randoms(use_true_random=False), st.floats(0, 1), st.data())
def test_what_is_read_is_what_the_codec_reads(
    version: int, random: Random, fullness: float, data: st.DataObject
) -> None:
    """For any request, and for one with a few bytes changed, inserted or lost: the same as the codec, or None."""
    if data.draw(st.booleans()):
        made = random_message(ProduceRequest, version, random, fullness)
    else:
        made = request(1, 2, *place("topic", version), 3, random.randbytes(random.choice([0, 5, 200])))
    body = bytearray(encode(made, version))
    for _ in range(data.draw(st.integers(0, 2))):
        at = random.randrange(min(len(body), 60) + 1)
        body[at : at + random.randrange(3)] = random.randbytes(random.randrange(3))
    found = read(bytes(body), version)
    try:
        decoded = decode(ProduceRequest, bytes(body), version)
    except ProtocolError:
        assert found is None
        return
    if found is not None:
        expected = request(*found)
        assert decoded == expected


@given(versions, int32, st.text(max_size=30), int32, st.tuples(int64, int64, int64))
def test_a_response_is_what_the_codec_writes(
    version: int, correlation_id: int, topic: str, index: int, appended: tuple[int, int, int]
) -> None:
    base_offset, append_time_ms, log_start = appended
    response = ProduceResponse.PartitionProduceResponse(
        index=index, base_offset=base_offset, log_append_time_ms=append_time_ms, log_start_offset=log_start
    )
    name, topic_id = place(topic, version)
    topics = [ProduceResponse.TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[response])]
    head = encode_response_header(ApiKey.PRODUCE, version, correlation_id)
    body = head + encode(ProduceResponse(responses=topics), version)
    sent = (1, 0, name, topic_id, index, memoryview(b""))
    found = fast_produce.encode_response(version, correlation_id, sent, *appended)
    assert found == len(body).to_bytes(4, "big") + body


def test_the_versions_are_some_of_the_apis() -> None:
    oldest, newest = API_INFO[ApiKey.PRODUCE].valid_versions
    assert oldest <= fast_produce.VERSIONS[0] <= fast_produce.VERSIONS[1] <= newest
