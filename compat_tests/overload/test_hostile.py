"""Hostile input against the real process: it lives, serves others, grows by 64 MiB at most, and stays calm.

Each attack is a function that does its worst to an address. What a request may order with everybody's permission (there
is no authorizer here) is left out: a million partitions, say, or another controller's word.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from compat_tests.overload.frames.large import large_frames
from compat_tests.overload.raw import Raw, frame_of, framed
from compat_tests.overload.victim import MIB, Victim
from compat_tests.support.quick import create_topic
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_request_header
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.append_rules import CHECKED_RECORDS_MIN
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, parse_header, set_max_timestamp
from kpybroker.wire.records.builder import build_batch, varint
from kpybroker.wire.records.legacy import encode_message
from tests.wire import bombs
from tests.wire.fuzz.fuzz_decode import LARGE_FRAME_BYTES, Mutator, read_corpus

Address = tuple[str, int]
Attack = Callable[[Address], None]

GROWTH_MAX = 64 * MIB
SEED = 20_240_611
FRAMES_PER_CONNECTION = 8
FALSE_TIMESTAMP = 1_700_000_000_001
MUTATED_FRAMES = 3000
# Any client may send these here, and they would be carried out.
ORDERS = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CREATE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
TOPICS: dict[str, dict[str, Any]] = {
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "bounded": {"message_timestamp_after_max_ms": "3600000"},
    "recompressed": {"compression_type": "gzip"},
    "uncompressed": {"compression_type": "uncompressed"},
    "opaque": {},
}


def header_for(key: int, version: int) -> bytes:
    return encode_request_header(RequestHeader(ApiKey(key), version, 7, "raw"))


def each_served() -> Iterator[tuple[ApiKey, int]]:
    for key, (oldest, newest) in SERVED.items():
        for version in range(oldest, newest + 1):
            yield key, version


# --- frames


def absurd_lengths(address: Address) -> None:
    fetch, produce = struct.pack(">hh", 1, 4), struct.pack(">hh", 0, 7)
    for size, start in (
        (-1, b""),
        (-(2**31), b""),
        (2**31 - 1, b""),
        (2**31 - 1, produce),
        (105_000_000, produce),
        (LARGE_FRAME_BYTES + 1, fetch + bytes(100)),
        (0, b""),
        (1, b"\0"),
        (7, bytes(7)),
    ):
        with Raw(address) as raw:
            raw.send(struct.pack(">i", size) + start)
            assert raw.is_closed(), f"a frame of {size} bytes is waited for"


def truncated_frames(address: Address) -> None:
    whole = frame_of(MetadataRequest(), 12)
    for cut in range(len(whole)):
        with Raw(address) as raw:
            raw.send(whole[:cut])


def unknown_keys_and_versions(address: Address) -> None:
    for key in (-1, -32768, 32767, 52, 71, 99, *(key for key in API_INFO if key not in SERVED)):
        with Raw(address) as raw:
            raw.send(framed(struct.pack(">hhih", key, 0, 1, -1)))
            assert raw.is_closed(), f"API key {key}"
    for key, (_, newest) in SERVED.items():
        for version in (-1, newest + 1, 32767):
            if key is not ApiKey.API_VERSIONS:
                with Raw(address) as raw:
                    raw.send(framed(struct.pack(">hhihb", key, version, 1, -1, 0)))
                    assert raw.is_closed(), f"{key.name} {version}"


def garbage_after_headers(address: Address) -> None:
    noise = random.Random(SEED)
    for key, version in each_served():
        if key not in ORDERS:
            for fill in (b"\xff" * 200, noise.randbytes(200)):
                with Raw(address) as raw:
                    raw.send(framed(header_for(key, version) + fill))


def random_bytes(address: Address) -> None:
    noise = random.Random(SEED)
    for size in (1, 10, 100, 10_000, 1_000_000):
        for _ in range(10):
            with Raw(address) as raw:
                try:
                    raw.send(noise.randbytes(size))
                except ConnectionError:
                    pass


def mutated_requests(address: Address) -> None:
    """Every API and version, changed a little, several to a connection; what comes back is not looked at."""
    choose = random.Random(SEED)
    mutator = Mutator(choose)
    corpus = [frame for frame in read_corpus() if parse_request_header(frame).api_key not in ORDERS]
    frames = [mutator.mutate(choose.choice(corpus), choose.choice(corpus)) for _ in range(MUTATED_FRAMES)]
    frames = [frame for frame in frames if len(frame) < 2 or int.from_bytes(frame[:2], "big") not in ORDERS]
    for start in range(0, len(frames), FRAMES_PER_CONNECTION):
        with Raw(address, timeout_s=0.02) as raw:
            try:
                raw.send(b"".join(map(framed, frames[start : start + FRAMES_PER_CONNECTION])))
                raw.is_closed()
            except ConnectionError:
                pass


# --- counts


def large_arrays(keys: Iterable[ApiKey], elements: int, address: Address) -> None:
    """Each array of each request, with as many elements."""
    for key in keys:
        if key not in ORDERS:
            for frame in large_frames(API_INFO[key], SERVED[key][1], elements):
                with Raw(address, timeout_s=60) as raw:
                    raw.send(framed(frame))
                    raw.socket.shutdown(socket.SHUT_WR)
                    raw.is_closed()


def many_elements(address: Address) -> None:
    """The largest arrays that a frame may hold. The C library keeps for seconds what is freed, and it adds up."""
    large_arrays((key for key in SERVED if key < ApiKey.CONSUMER_GROUP_HEARTBEAT), 100_000, address)


def many_elements_of_kafka_4(address: Address) -> None:
    """The same in the requests that Kafka 4 has added."""
    large_arrays((key for key in SERVED if key >= ApiKey.CONSUMER_GROUP_HEARTBEAT), 100_000, address)


def counts_with_nothing_behind(address: Address) -> None:
    for count in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x08", b"\xff" * 11):
        for key, version in each_served():
            if API_INFO[key].flexible_from <= version and key not in ORDERS:
                with Raw(address) as raw:
                    raw.send(framed(header_for(key, version) + count + bytes(50)))


def tagged_fields(address: Address) -> None:
    """As many tags as fit, in the header and in the body."""
    tags = b"".join(_varint(tag) + b"\x00" for tag in range(900_000))
    for count in (100_001, 900_000):
        for start in (
            struct.pack(">hhih", 3, 12, 1, -1) + _varint(count),
            struct.pack(">hhih", 3, 12, 1, -1) + b"\0" + b"\0\0\0" + _varint(count),
        ):
            with Raw(address) as raw:
                raw.send(framed(start + tags[: LARGE_FRAME_BYTES - 100]))
                assert raw.is_closed()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# --- records


def produce(topic: str, records: bytes, version: int) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic_data = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    return frame_of(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data), version)


def batch_around(section: bytes, codec: Codec, count: int) -> bytes:
    """A magic 2 batch with a true CRC around whatever stands for its records."""
    template = build_batch([(b"k", b"v", 1_700_000_000_000)])
    batch = bytearray(template[:RECORD_BATCH_OVERHEAD]) + section
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    set_max_timestamp(batch, 0, parse_header(batch), parse_header(batch).timestamp_type, FALSE_TIMESTAMP)
    return bytes(batch)


def _bombs() -> Iterator[tuple[Codec, bytes]]:
    for codec, bomb in bombs.all_bombs():
        if len(bomb) < 900_000:
            yield codec, bomb


def bombs_in_batches(address: Address) -> None:
    for codec, bomb in _bombs():
        for topic in TOPICS:
            with Raw(address) as raw:
                raw.send(produce(topic, batch_around(bomb, codec, 1000), 9))
                raw.response(ApiKey.PRODUCE, 9)


def bombs_in_old_messages(address: Address) -> None:
    for codec, bomb in _bombs():
        for magic in (0, 1):
            message = bytes(encode_message(0, magic, codec, 1_700_000_000_000, None, bomb))
            for topic in ("compacted", "opaque"):
                with Raw(address) as raw:
                    raw.send(produce(topic, message, 2))
                    raw.response(ApiKey.PRODUCE, 2)


def many_tiny_records(address: Address) -> None:
    """Sound batches and bombs that are made of nothing but records, to be walked, converted and recompressed."""
    for count in (100_000, 1_000_000, 8_000_000):
        section = tiny_records(count)
        for codec in (Codec.NONE, Codec.GZIP, Codec.ZSTD):
            batch = batch_around(compress(codec, section), codec, count)
            if len(batch) <= 1_048_588:
                for topic in TOPICS:
                    with Raw(address) as raw:
                        raw.send(produce(topic, batch, 9))
                        raw.response(ApiKey.PRODUCE, 9)


def tiny_records(count: int) -> bytes:
    """Seven bytes each, all at offset delta 0: only a walk finds out. Key of one byte, null value."""
    body = b"\0" + varint(0) + varint(0) + varint(0) + varint(-1) + varint(0)
    return (varint(len(body)) + body) * count


def many_old_messages(address: Address) -> None:
    message = bytes(encode_message(0, 1, 0, 1_700_000_000_000, b"k", None))
    for count in (CHECKED_RECORDS_MIN, 500_000):
        with Raw(address) as raw:
            raw.send(produce("opaque", message * count, 2))
            raw.response(ApiKey.PRODUCE, 2)
        wrapper = bytes(encode_message(0, 1, Codec.GZIP, 1, None, compress(Codec.GZIP, message * count, magic=1)))
        with Raw(address) as raw:
            raw.send(produce("opaque", wrapper, 2))
            raw.response(ApiKey.PRODUCE, 2)


def old_consumers(address: Address) -> None:
    """What the attacks before have left in the logs, asked for in the oldest formats."""
    for version in range(4):
        for topic in TOPICS:
            wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**31 - 1)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=2**31 - 1,
                topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
            )
            with Raw(address) as raw:
                raw.ask(request, version)


ATTACKS: tuple[Attack, ...] = (
    absurd_lengths,
    truncated_frames,
    unknown_keys_and_versions,
    garbage_after_headers,
    random_bytes,
    mutated_requests,
    many_elements,
    many_elements_of_kafka_4,
    counts_with_nothing_behind,
    tagged_fields,
    bombs_in_batches,
    bombs_in_old_messages,
    many_tiny_records,
    many_old_messages,
    old_consumers,
)

LONG_ATTACKS = (many_elements, many_elements_of_kafka_4, bombs_in_batches, many_tiny_records)
"""`test_loop` and `test_bombs` have the same inputs, smaller."""


@pytest.fixture(scope="module")
def prepared(victim: Victim) -> Victim:
    for topic, config in TOPICS.items():
        create_topic(victim.broker.bootstrap, topic, **config)
    # What every broker has after a while: its modules loaded, its codecs compiled.
    with Raw(victim.address) as raw:
        for version in range(13):
            raw.ask(MetadataRequest(), version)
    large_arrays(SERVED, 1, victim.address)
    victim.bystander.progresses()
    return victim


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=attack.__name__, marks=[pytest.mark.wide] if attack in LONG_ATTACKS else [])
        for attack in ATTACKS
    ],
)
def test_attack(prepared: Victim, attack: Attack) -> None:
    prepared.reset_peak()
    before = prepared.rss
    written = prepared.bystander.acknowledged
    attack(prepared.address)
    during = prepared.bystander.acknowledged - written
    prepared.is_unharmed()
    grown = prepared.peak_rss - before
    print(
        f"{attack.__name__}: {grown / MIB:.1f} MiB at the most, the bystander wrote {during} records at the same time"
    )
    assert grown <= GROWTH_MAX


def test_the_bystander_lost_nothing(prepared: Victim) -> None:
    prepared.bystander.finish()
