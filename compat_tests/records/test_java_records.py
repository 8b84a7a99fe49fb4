"""Record batches against Kafka's own classes: what either side builds the other reads, and both judge alike."""

from __future__ import annotations

import itertools
from random import Random

from compat_tests.records.java_records import ask_java, dump
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.batch import TimestampType, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch_of, empty_batch
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from kpybroker.wire.records.convert import down_convert
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record

FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in Codec if magic == 2 or codec is not Codec.ZSTD]
CASES_EACH = 12
APPEND_TIME = 1_700_000_000_123


def random_bytes(random: Random) -> bytes | None:
    size = random.choice([-1, 0, 1, 10, 63, 64, 200, 40_000 if random.random() < 0.1 else 5])
    if size < 0:
        return None
    return random.randbytes(size) if random.random() < 0.5 else bytes(size)


def random_records(random: Random, *, with_headers: bool = True, dense_from: int | None = None) -> list[Record]:
    offset = random.choice([0, 5, 2**40]) if dense_from is None else dense_from
    records = []
    for _ in range(random.choice([1, 1, 2, 5, 30])):
        headers = tuple(
            (random.choice(["", "h", "größe"]), random_bytes(random))
            for _ in range(random.choice([0, 0, 1, 3]) if with_headers else 0)
        )
        timestamp = random.choice([-1, 0, 5, 10**12 + random.randrange(10**6), 2**61])
        records.append(Record(offset, timestamp, random_bytes(random), random_bytes(random), headers))
        offset += 1 if dense_from is not None else random.choice([1, 1, 2, 1000])
    return records


def build(
    magic: int, codec: Codec, records: list[Record], timestamp_type: TimestampType, level: int | None = None
) -> bytes:
    if magic == 2:
        batch = build_batch_of(
            records, BatchFields(codec=codec, level=level, timestamp_type=timestamp_type, log_append_time=APPEND_TIME)
        )
    else:
        batch = build_message_set(
            records, magic, codec=codec, level=level, timestamp_type=timestamp_type, log_append_time=APPEND_TIME
        )
    return bytes(batch)


def compare(commands: list[str], expected: list[str]) -> None:
    responses = ask_java(commands)
    wrong = [
        f"{command[:3000]}\n ours {ours[:1500]}\n java {java[:1500]}"
        for command, ours, java in zip(commands, expected, responses, strict=True)
        if ours != java
    ]
    assert not wrong, f"{len(wrong)} of {len(responses)}:\n" + "\n".join(wrong[:5])


def test_java_reads_what_we_build() -> None:
    random = Random("java reads")
    buffers = [
        build(magic, codec, random_records(random, with_headers=magic == 2), timestamp_type)
        for magic, codec in FORMATS
        for timestamp_type in TimestampType
        for _ in range(CASES_EACH)
    ]
    buffers += [
        build(2, codec, random_records(random), TimestampType.CREATE_TIME, level)
        for codec, levels in ((Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 9, 12, 17)), (Codec.ZSTD, (-7, 1, 19)))
        for level in levels
        for _ in range(4)
    ]
    compare([f"dump {buffer.hex()}" for buffer in buffers], [dump(buffer) for buffer in buffers])


def test_we_read_what_java_builds() -> None:
    random = Random("java builds")
    sources, commands = [], []
    for (magic, codec), timestamp_type in itertools.product(FORMATS, TimestampType):
        for _ in range(CASES_EACH):
            records = random_records(random)
            source = build_batch_of(records, BatchFields(producer_id=-1))
            sources.append((magic, codec, records, timestamp_type))
            time = APPEND_TIME if timestamp_type else -1
            commands.append(f"build {magic} {codec:d} {timestamp_type:d} {time} {source.hex()}")
    for (magic, codec, records, timestamp_type), response in zip(sources, ask_java(commands), strict=True):
        java = bytes.fromhex(response)
        ours = build(magic, codec, records, timestamp_type)
        assert dump(java) == dump(ours), (magic, codec, timestamp_type)
        if codec is Codec.NONE:
            assert java == ours, (magic, timestamp_type)


def test_idempotent_and_transactional_batches_are_javas_to_the_byte() -> None:
    random = Random("producers")
    batches = [
        build_batch_of(
            random_records(random, dense_from=0),
            BatchFields(
                producer_id=random.randrange(2**62),
                producer_epoch=random.randrange(2**15),
                base_sequence=random.choice([0, 7, 2**31 - 1]),
                is_transactional=random.random() < 0.5,
                partition_leader_epoch=random.randrange(2**31),
            ),
        )
        for _ in range(40)
    ]
    compare([f"build 2 0 0 -1 {batch.hex()}" for batch in batches], [batch.hex() for batch in batches])
    compare([f"dump {batch.hex()}" for batch in batches], [dump(batch) for batch in batches])
    compare(
        [f"empty {batch.hex()}" for batch in batches], [empty_batch(parse_header(batch)).hex() for batch in batches]
    )


def test_transaction_markers_are_javas_to_the_byte() -> None:
    commands, expected = [], []
    for control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        for epoch, time, offset, leader, producer in ((0, 5, 0, 0, 1), (2**31 - 1, APPEND_TIME, 2**40, 77, 2**50)):
            commands.append(f"marker {control_type:d} {epoch} {time} {offset} {leader} {producer} 3")
            marker = EndTransactionMarker(control_type, epoch, time)
            batch = build_end_transaction_batch(
                marker, producer_id=producer, producer_epoch=3, base_offset=offset, partition_leader_epoch=leader
            )
            expected.append(batch.hex())
    compare(commands, expected)


def test_delete_horizons_are_understood() -> None:
    batch = build_batch_of(random_records(Random("horizon")), BatchFields(delete_horizon_ms=10**12))
    compare([f"dump {batch.hex()}"], [dump(batch)])


def test_down_conversion_is_javas() -> None:
    random = Random("down")
    commands, expected = [], []
    for codec, to_magic in itertools.product([codec for codec in Codec if codec is not Codec.ZSTD], (0, 1)):
        for _ in range(CASES_EACH):
            records = random_records(random)
            source = random.choice([2, 2, 1])
            buffer = build(source, codec, records, random.choice(list(TimestampType)))
            first = random.choice([record.offset for record in records])
            commands.append(f"down {to_magic} {first} {buffer.hex()}")
            expected.append(dump(down_convert(buffer, to_magic, first)))
    compare(commands, expected)
