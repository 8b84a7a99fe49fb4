"""The compiled codec: round trips, parity with the reference codec, and what it refuses."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpybroker.wire.api import API_INFO
from kpybroker.wire.codec import (
    UnsupportedFieldError,
    decode,
    decode_from,
    decode_steps,
    encode,
    encode_parts,
    encode_steps,
)
from kpybroker.wire.compile_encode import ERROR_TEXTS
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kpybroker.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kpybroker.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.metadata import MetadataRequest, MetadataResponse
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from kpybroker.wire.schema import Message, struct_fields
from kpybroker.wire.yield_budget import SLICE_UNITS
from tests.wire.random_messages import message_classes, random_message
from tests.wire.reference_codec import as_dict, reference_decode, reference_encode

PROPERTY = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("message_class", message_classes(), ids=lambda cls: cls.__name__)
@PROPERTY
@given(seed=st.integers(0, 2**64 - 1), data=st.data())
def test_round_trip_and_reference(message_class: type[Message], seed: int, data: st.DataObject) -> None:
    """Any message of any version: both codecs write the same bytes and read the same values out of them."""
    version = data.draw(st.integers(*message_class.VERSIONS))
    fullness = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    message = random_message(message_class, version, Random(seed), fullness)
    encoded = encode(message, version)
    assert encoded == reference_encode(message, version)
    decoded = decode(message_class, memoryview(encoded), version)
    assert decoded == message
    assert as_dict(decoded, version) == reference_decode(message_class.__name__, encoded, version)
    assert encode(decoded, version) == encoded


@pytest.mark.parametrize("message_class", message_classes(), ids=lambda cls: cls.__name__)
def test_every_version_round_trips_its_defaults(message_class: type[Message]) -> None:
    low, high = message_class.VERSIONS
    for version in range(low, high + 1):
        encoded = encode(message_class(), version)
        assert decode(message_class, encoded, version) == message_class()
        assert decode_from(message_class, b"...." + encoded, 4, version)[1] == len(encoded) + 4


T = TypeVar("T")


def run_steps(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What the generator returns, and how often it yielded."""
    yields = 0
    while True:
        try:
            next(steps)
            yields += 1
        except StopIteration as stop:
            return stop.value, yields


def test_decoding_in_steps_yields_every_thousand_elements_and_gives_the_same() -> None:
    topics = [MetadataRequest.MetadataRequestTopic(name=f"t{n}") for n in range(3 * SLICE_UNITS + 5)]
    data = encode(MetadataRequest(topics=topics), 12)
    message, yields = run_steps(decode_steps(MetadataRequest, data, 12))
    assert message == decode(MetadataRequest, data, 12)
    assert yields == 3
    assert run_steps(decode_steps(HeartbeatRequest, encode(HeartbeatRequest(), 4), 4)) == (HeartbeatRequest(), 0)
    with pytest.raises(ProtocolError):
        run_steps(decode_steps(MetadataRequest, data[:-1], 12))


def test_encoding_in_steps_yields_every_thousand_elements_and_gives_the_same() -> None:
    topics = [MetadataResponse.MetadataResponseTopic(name=f"t{n}") for n in range(3 * SLICE_UNITS + 5)]
    message = MetadataResponse(topics=topics)
    assert run_steps(encode_steps(message, 12)) == (encode_parts(message, 12), 3)
    assert run_steps(encode_steps(HeartbeatRequest(), 4)) == (encode_parts(HeartbeatRequest(), 4), 0)
    with pytest.raises(UnsupportedFieldError):
        run_steps(encode_steps(ProduceRequest(transactional_id="t"), 0))


@pytest.mark.parametrize("message_class", message_classes(), ids=lambda cls: cls.__name__)
@settings(PROPERTY, max_examples=3)
@given(seed=st.integers(0, 2**64 - 1), data=st.data())
def test_encoding_in_steps_gives_the_same_for_any_message(
    message_class: type[Message], seed: int, data: st.DataObject
) -> None:
    version = data.draw(st.integers(*message_class.VERSIONS))
    message = random_message(message_class, version, Random(seed), 1.0)
    assert run_steps(encode_steps(message, version))[0] == encode_parts(message, version)


class FileSlice:
    """Records that stay in a file."""

    def __init__(self, size: int) -> None:
        self.size = size


def fetch_response(*records: Any) -> FetchResponse:
    partitions = [
        FetchResponse.PartitionData(partition_index=index, records=value) for index, value in enumerate(records)
    ]
    topic = FetchResponse.FetchableTopicResponse(topic_id=bytes(range(16)), partitions=partitions)
    return FetchResponse(responses=[topic])


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_file_slices_pass_through_as_parts_of_their_own(version: int) -> None:
    """The bytes around a slice equal those around as many bytes in memory."""
    small, large = FileSlice(100), FileSlice(1_000_000)
    parts = encode_parts(fetch_response(small, b"in memory", None, large), version)
    assert [part for part in parts if not isinstance(part, bytes)] == [small, large]
    flat = b"".join(part if isinstance(part, bytes) else bytes(part.size) for part in parts)
    in_memory = fetch_response(bytes(100), b"in memory", None, bytes(1_000_000))
    assert flat == encode(in_memory, version)
    assert encode_parts(in_memory, version) == [flat]


def test_decoded_records_are_views_and_not_copies() -> None:
    partition = ProduceRequest.PartitionProduceData(index=0, records=b"batch")
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    frame = bytearray(encode(ProduceRequest(topic_data=[topic]), 9))
    records = decode(ProduceRequest, frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"batch"
    frame[frame.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


def test_a_field_the_version_lacks_is_refused_unless_it_is_ignorable_or_at_its_default() -> None:
    with pytest.raises(UnsupportedFieldError, match="version 2 has no transactional_id"):
        encode(ProduceRequest(transactional_id="x"), 2)
    encode(ProduceRequest(transactional_id=None), 2)
    encode(FetchRequest(session_epoch=7), 6)
    with pytest.raises(UnsupportedFieldError, match="forgotten_topics_data"):
        encode(FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic()]), 6)
    with pytest.raises(UnsupportedFieldError, match="include_topic_authorized_operations"):
        encode(MetadataRequest(include_topic_authorized_operations=True), 7)
    with pytest.raises(UnsupportedFieldError, match="allow_auto_topic_creation"):
        encode(MetadataRequest(allow_auto_topic_creation=False), 3)


def test_null_where_only_later_versions_allow_it_is_refused() -> None:
    """Metadata 0 has no null for all topics: it has an empty list."""
    with pytest.raises(TypeError):
        encode(MetadataRequest(topics=None), 0)
    assert decode(MetadataRequest, encode(MetadataRequest(topics=None), 1), 1).topics is None
    with pytest.raises(ProtocolError, match="null"):
        decode(MetadataRequest, struct.pack(">i", -1), 0)


def test_a_version_outside_the_range_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="versions 0-4, not 5"):
        encode(ApiVersionsRequest(), 5)
    with pytest.raises(ValueError, match="versions 0-4, not 5"):
        decode(ApiVersionsRequest, b"", 5)


def test_unknown_tagged_fields_survive_at_every_level() -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="t", unknown_tagged_fields=((3, b"abc"), (700, b"")))
    request = CreateTopicsRequest(topics=[topic], unknown_tagged_fields=((0, b"\0" * 200),))
    decoded = decode(CreateTopicsRequest, encode(request, 7), 7)
    assert decoded == request
    assert decoded.topics[0].unknown_tagged_fields == ((3, b"abc"), (700, b""))


def test_unknown_tags_are_written_in_order_with_known_ones() -> None:
    response = FetchResponse(
        node_endpoints=[FetchResponse.NodeEndpoint(node_id=1, host="h", port=2)],
        unknown_tagged_fields=((5, b"five"),),
    )
    encoded = encode(response, 16)
    assert encoded.index(b"five") > encoded.index(b"h")
    assert decode(FetchResponse, encoded, 16) == response
    with pytest.raises(ValueError, match="tag 0 follows tag 0"):
        encode(FetchResponse(node_endpoints=response.node_endpoints, unknown_tagged_fields=((0, b""),)), 16)


def test_a_tagged_struct_is_none_when_absent_and_absent_when_full_of_defaults() -> None:
    partition = ProduceResponse.PartitionProduceResponse
    leader = ProduceResponse.LeaderIdAndEpoch
    topic = ProduceResponse.TopicProduceResponse(partition_responses=[partition(), partition(current_leader=leader())])
    response = ProduceResponse(responses=[topic])
    decoded = decode(ProduceResponse, encode(response, 10), 10)
    assert [p.current_leader for p in decoded.responses[0].partition_responses] == [None, None]
    topic.partition_responses[1].current_leader = leader(leader_id=3)
    assert decode(ProduceResponse, encode(response, 10), 10) == response


def test_nullable_structs() -> None:
    """KIP-893: a byte says whether it is null."""
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="t", partition_index=4)
    for value in (None, cursor):
        request = DescribeTopicPartitionsRequest(cursor=value)
        assert decode(DescribeTopicPartitionsRequest, encode(request, 0), 0) == request
    assignment = ConsumerGroupHeartbeatResponse.Assignment()
    response = ConsumerGroupHeartbeatResponse(assignment=assignment)
    assert decode(ConsumerGroupHeartbeatResponse, encode(response, 0), 0) == response


def test_bytes_after_the_message_are_left_alone_as_in_kafka() -> None:
    assert decode(HeartbeatRequest, encode(HeartbeatRequest(), 4) + b"more", 4) == HeartbeatRequest()


def test_a_string_is_at_most_32767_bytes_also_with_a_varint_length() -> None:
    longest = ApiVersionsRequest(client_software_name="x" * 32767)
    assert decode(ApiVersionsRequest, encode(longest, 3), 3) == longest
    with pytest.raises(ValueError, match="too long"):
        encode(ApiVersionsRequest(client_software_name="x" * 32768), 3)
    frame = b"\x81\x80\x02" + b"x" * 32768 + b"\x01\x00"
    with pytest.raises(ProtocolError, match="at most 32767"):
        decode(ApiVersionsRequest, frame, 3)


HOSTILE = {
    "empty": (ApiVersionsRequest, 3, b""),
    "not UTF-8": (ApiVersionsRequest, 3, b"\x02\xff\x01\x00"),
    "string longer than the frame": (ApiVersionsRequest, 3, b"\x10abc"),
    "varint without an end": (ApiVersionsRequest, 3, b"\xff" * 20),
    "varint of more than 31 bits": (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f"),
    "negative count": (MetadataRequest, 0, struct.pack(">i", -5)),
    "count beyond the frame": (MetadataRequest, 0, struct.pack(">i", 2**31 - 1) + bytes(100)),
    "compact count beyond the frame": (MetadataRequest, 9, b"\xff\xff\xff\xff\x07" + bytes(100)),
    "int array beyond the frame": (OffsetFetchRequest, 1, b"\0\0\0\0\0\1\0\0\0\0\0\3" + bytes(8)),
    "tag beyond the frame": (ApiVersionsRequest, 3, b"\x01\x01\x01\x05\x40ab"),
    "tag count beyond the frame": (ApiVersionsRequest, 3, b"\x01\x01\xff\xff\xff\xff\x07"),
    "known tag of another size": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x01\x00\x03\x02ab"),
    "tag of another version": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x01\x01\x00"),
    "negative string length": (HeartbeatRequest, 0, b"\xff\xfe" + bytes(20)),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_bytes_raise_protocol_error(case: str) -> None:
    message_class, version, data = HOSTILE[case]
    with pytest.raises(ProtocolError):
        decode(message_class, data, version)
    with pytest.raises(ProtocolError):
        decode(message_class, memoryview(bytearray(data)), version)


def test_every_prefix_of_a_message_raises_protocol_error() -> None:
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="host", port=9092)
    data = encode(MetadataResponse(brokers=[broker], cluster_id="id"), 12)
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(MetadataResponse, data[:end], 12)


def test_elements_of_a_frame_are_bounded_over_all_arrays() -> None:
    partitions = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[1] * 40)
    data = encode(OffsetFetchRequest(group_id="g", topics=[partitions] * 10), 5)
    assert decode(OffsetFetchRequest, data, 5, max_elements=410)
    with pytest.raises(ProtocolError, match="still allowed"):
        decode(OffsetFetchRequest, data, 5, max_elements=409)
    million_tags = b"\x01\x01\xc0\x84\x3d" + b"\x09\x00" * 1_000_000
    with pytest.raises(ProtocolError, match="still allowed"):
        decode(ApiVersionsRequest, million_tags, 3)


def test_messages_compare_by_value_and_are_not_hashable() -> None:
    assert HeartbeatRequest(group_id="g") == HeartbeatRequest(group_id="g")
    assert HeartbeatRequest(group_id="g") != HeartbeatRequest(group_id="h")
    assert HeartbeatRequest() != ApiVersionsRequest()
    assert "group_id='g'" in repr(HeartbeatRequest(group_id="g"))
    with pytest.raises(TypeError):
        hash(HeartbeatRequest())
    with pytest.raises(AttributeError):
        HeartbeatRequest().groupid = "typo"  # type: ignore[attr-defined]


@pytest.mark.parametrize("character", ["x", "ä", "€", "𝄞"])
@pytest.mark.parametrize("version", [5, 1], ids=["compact", "int16"])
def test_an_error_message_is_cut_between_characters_to_what_a_string_holds(character: str, version: int) -> None:
    for size in (32766, 32767, 32768, 32769, 32770, 32771, 100_000):
        text = "y" * (size % 4) + character * (size // len(character.encode()))
        topic = CreateTopicsResponse.CreatableTopicResult(name="t", error_message=text)
        decoded = decode(CreateTopicsResponse, encode(CreateTopicsResponse(topics=[topic]), version), version)
        found = decoded.topics[0].error_message or ""
        if len(text.encode()) <= 32767:
            assert found == text
            continue
        assert found.endswith("...")
        assert text.startswith(found[:-3])
        assert 32764 <= len(found.encode()) <= 32767


def test_no_other_string_is_cut() -> None:
    topic = CreateTopicsResponse.CreatableTopicResult(name="x" * 32768)
    for version in (5, 1):
        with pytest.raises((ValueError, struct.error)):
            encode(CreateTopicsResponse(topics=[topic]), version)


def test_every_text_for_people_is_one_that_is_cut() -> None:
    def strings(message: type[Message], nested: type[Message] | None = None) -> Iterator[str]:
        for field in struct_fields(message, nested):
            if field.struct is not None:
                yield from strings(message, field.struct)
            elif field.type_name == "string":
                yield field.name

    found = {name for info in API_INFO.values() for name in strings(info.response_class())}
    assert {name for name in found if "message" in name or "error" in name or "reason" in name} == ERROR_TEXTS
