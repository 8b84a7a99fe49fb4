"""Frames: requests that a broker is sent, responses it reads from a peer, what is embedded in both, tree's requests."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from random import Random

from kpybroker.coordination.server.jute import JuteError
from kpybroker.coordination.server.requests import decode_connect, decode_request
from kpybroker.core.group.migration.embedded import parse_assignment, parse_subscription
from kpybroker.core.modern_group.values import TopicMetadata
from kpybroker.metrics.clients.decoding import NotOtlp
from kpybroker.metrics.clients.decoding import decode as decode_metrics
from kpybroker.wire import fast_produce
from kpybroker.wire.api import API_INFO
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import parse_response_header
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.messages.produce import ProduceRequest
from tests.fuzz.target import Target
from tests.support.metrics.pushes import gauge, metrics_data
from tests.wire.fuzz.fuzz_decode import read_corpus, run_frame
from tests.wire.random_messages import random_message

APIS = sorted(API_INFO.values(), key=lambda info: info.key)


def response(data: bytes) -> None:
    """A byte for the API, one for the version, and the response with its header. What is read is written the same."""
    if len(data) < 2:
        return
    info = APIS[data[0] % len(APIS)]
    low, high = info.valid_versions
    version = low + data[1] % (high - low + 1)
    _, at = parse_response_header(data[2:], info.key, version)
    message = decode(info.response_class(), data[2 + at :], version)
    try:
        written = encode(message, version)
    except ValueError as error:
        if "follows tag" not in str(error):  # Java reads unordered tags, and refuses to write them
            raise
        return
    assert encode(decode(info.response_class(), written, version), version) == written


def responses() -> Iterable[bytes]:
    for number, info in enumerate(APIS):
        low, high = info.valid_versions
        for version in {low, high}:
            message = random_message(info.response_class(), version, Random(number), 0.5)
            tags = b"\0" if info.response_header_version(version) else b""
            body = encode(message, version)
            if len(body) < 300:
                yield bytes((number, version - low)) + struct.pack(">i", 1) + tags + body


def produce(data: bytes) -> None:
    """The short way to read a Produce request and the codec agree, or the short way leaves it to the codec."""
    if not data:
        return
    low, high = fast_produce.VERSIONS
    version = low + data[0] % (high - low + 1)
    frame = memoryview(data)[1:]
    short = fast_produce.read(frame, 0, version)
    if short is None:
        return
    acks, timeout_ms, topic, topic_id, index, records = short
    whole = decode(ProduceRequest, frame, version)
    (one,) = whole.topic_data
    (partition,) = one.partition_data
    sent_id = one.topic_id if version >= fast_produce.TOPIC_IDS_FROM else ZERO_UUID
    assert (acks, timeout_ms, topic, topic_id, index) == (
        whole.acks,
        whole.timeout_ms,
        one.name,
        sent_id,
        partition.index,
    )
    assert partition.records is not None
    assert bytes(partition.records) == bytes(records)


def produces() -> Iterable[bytes]:
    low, high = fast_produce.VERSIONS
    for version in range(low, high + 1):
        partition = ProduceRequest.PartitionProduceData(index=1, records=memoryview(b"records"))
        topic = ProduceRequest.TopicProduceData(name="t", topic_id=bytes(16), partition_data=[partition])
        yield bytes((version - low,)) + encode(ProduceRequest(acks=1, timeout_ms=9, topic_data=[topic]), version)


def subscriptions() -> Iterable[bytes]:
    for kind in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        for version in range(kind.VERSIONS[0], kind.VERSIONS[1] + 1):
            yield struct.pack(">h", version) + encode(random_message(kind, version, Random(version), 0.8), version)


def embedded(data: bytes) -> None:
    """Both, of the same bytes."""
    for parse in (parse_subscription, parse_assignment):
        try:
            parse(data, TOPICS)
        except ProtocolError:
            continue


class _Topics:
    """None is there."""

    version = 0

    def by_name(self, name: str) -> TopicMetadata | None:
        return None

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        return None


TOPICS = _Topics()


def tree_requests() -> Iterable[bytes]:
    """A create, a read with a watch, a multi that checks a version."""
    yield struct.pack(">iii2si3siii5siii6si", 1, 1, 2, b"/a", 3, b"abc", 1, 31, 5, b"world", 6, 0, 0, b"anyone", 0)
    yield struct.pack(">iii2s?", 2, 4, 2, b"/a", True)
    yield struct.pack(">iii?ii2siibii", 3, 14, 13, False, -1, 2, b"/a", 0, -1, 1, -1, -1)


TARGETS = (
    Target("requests", run_frame, (), read_corpus, ("kpybroker.wire.codec", "kpybroker.wire.primitives")),
    Target("responses", response, (ProtocolError,), responses, ("kpybroker.wire.codec", "kpybroker.wire.headers")),
    Target("fast-produce", produce, (), produces, ("kpybroker.wire.fast_produce",)),
    Target("consumer-protocol", embedded, (), subscriptions, ("kpybroker.core.group.migration.embedded",)),
    Target(
        "client-metrics",
        decode_metrics,
        (NotOtlp,),
        lambda: [metrics_data(gauge("org.apache.kafka.a", 1.0, node=1), client_id="c")],
        ("kpybroker.metrics.clients.decoding",),
    ),
    Target(
        "tree-connect",
        decode_connect,
        (JuteError,),
        lambda: [bytes(28) + struct.pack(">i", 16)[:0] + bytes(1)],
        ("kpybroker.coordination.server.jute",),
    ),
    Target(
        "tree-requests",
        decode_request,
        (JuteError,),
        tree_requests,
        ("kpybroker.coordination.server.requests", "kpybroker.coordination.server.jute"),
    ),
)
