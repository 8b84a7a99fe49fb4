"""What a leader makes of an append, against Kafka's LogValidator: the same stored batches, or the same refusal.

We check every record (`AppendRules.check_every_record`), as LogValidator always does. LogValidator runs after the CRC
check, so every damaged batch here has a correct CRC.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import NamedTuple

from compat_tests.records.java_records import ask_java, dump
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import TimestampType, computed_crc, iter_batches, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from kpybroker.wire.records.default_record import INT64_MAX
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record
from kpybroker.wire.records.record_errors import RecordValidationError
from kpybroker.wire.records.validate import AppendContext, validate_and_assign

NOW_MS = 1_700_000_000_000
BASE_OFFSET = 1234
LEADER_EPOCH = 5
MARKER = bytes(
    build_end_transaction_batch(
        EndTransactionMarker(ControlRecordType.ABORT, 3, NOW_MS), producer_id=9, producer_epoch=1
    )
)


class Case(NamedTuple):
    records: bytes
    rules: AppendRules
    from_client: bool = True

    def command(self) -> str:
        headers = [header for _, header in iter_batches(self.records)]
        source = next((header.codec for header in reversed(headers) if header.is_compressed), Codec.NONE)
        target = source if self.rules.codec is None else self.rules.codec
        words = (
            "validate",
            int(source),
            int(target),
            int(self.rules.compacted),
            self.rules.to_magic,
            int(self.rules.timestamp_type),
            self.rules.timestamp_before_max_ms,
            self.rules.timestamp_after_max_ms,
            "CLIENT" if self.from_client else "COORDINATOR",
            NOW_MS,
            BASE_OFFSET,
            LEADER_EPOCH,
            self.records.hex(),
        )
        return " ".join(map(str, words))

    def outcome(self) -> str:
        """What Records.java says where we agree with it."""
        try:
            call = AppendContext(BASE_OFFSET, NOW_MS, LEADER_EPOCH, self.from_client)
            result = validate_and_assign(bytearray(self.records), self.rules, call)
        except RecordValidationError as error:
            return " ".join([f"error {error.code.name}", *(str(wrong.batch_index) for wrong in error.record_errors)])
        except KafkaError as error:
            return f"error {error.code.name}"
        changed = int(result.is_rebuilt)
        return f"{result.last_offset} {result.max_timestamp} {changed} {dump(result.data)}"


def records(random: Random) -> list[Record]:
    """Now and then without a key or with a timestamp out of bounds."""
    return [
        Record(
            offset,
            random.choice([-1, NOW_MS - 50, NOW_MS, NOW_MS + 50, NOW_MS - 5000, NOW_MS + 5000])
            if random.random() < 0.3
            else NOW_MS - offset,
            random.choice([None, b"", b"key"]) if random.random() < 0.3 else b"key-%d" % offset,
            random.choice([None, b"", bytes(100)]),
        )
        for offset in range(random.choice([1, 1, 2, 10]))
    ]


def rules(random: Random, to_magic: int = 2) -> AppendRules:
    bounded = random.random() < 0.4
    return AppendRules(
        max_message_bytes=10**9,
        compacted=random.random() < 0.3,
        codec=random.choice([None, None, *Codec]) if to_magic == 2 else None,
        timestamp_type=random.choice(list(TimestampType)),
        timestamp_before_max_ms=1000 if bounded else INT64_MAX,
        timestamp_after_max_ms=100 if bounded else INT64_MAX,
        to_magic=to_magic,
        check_every_record=True,
    )


def sent(random: Random, magic: int, codec: Codec, *, with_producers: bool = True) -> bytes:
    timestamp_type = TimestampType.LOG_APPEND_TIME if random.random() < 0.1 else TimestampType.CREATE_TIME
    if magic < 2:
        return bytes(
            build_message_set(
                records(random), magic, codec=codec, timestamp_type=timestamp_type, log_append_time=NOW_MS
            )
        )
    has_producer = with_producers and random.random() < 0.4
    return bytes(
        build_batch_of(
            records(random),
            BatchFields(
                codec=codec,
                timestamp_type=timestamp_type,
                log_append_time=NOW_MS,
                producer_id=7 if has_producer else -1,
                producer_epoch=2 if has_producer else -1,
                base_sequence=5 if has_producer else -1,
                is_transactional=has_producer and random.random() < 0.5,
            ),
        )
    )


def with_true_crc(batch: bytearray) -> bytes:
    batch[17:21] = computed_crc(batch, 0, parse_header(batch)).to_bytes(4, "big")
    return bytes(batch)


def compare(cases: list[Case]) -> None:
    wrong = []
    for case, java in zip(cases, ask_java(case.command() for case in cases), strict=True):
        ours = case.outcome()
        if java.startswith("error ") and not names_records(java):
            java_code = " ".join(java.split()[:2])
            agreed = ours == java_code
        else:
            agreed = ours == java
        if not agreed:
            wrong.append(f"{case.command()[:1500]}\n {case.rules}\n ours {ours[:1000]}\n java {java[:1000]}")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:5])


def names_records(response: str) -> bool:
    """Whether an error names records rather than an exception."""
    return all(word.isdigit() for word in response.split()[2:])


def test_what_is_stored_and_what_is_refused() -> None:
    random = Random("validation")
    formats = [(magic, codec) for magic in (0, 1, 2) for codec in Codec if magic == 2 or codec is not Codec.ZSTD]
    compare([Case(sent(random, magic, codec), rules(random)) for magic, codec in formats for _ in range(100)])


def test_older_formats_of_the_log() -> None:
    random = Random("older")
    formats = itertools.product((0, 1, 2), [codec for codec in Codec if codec is not Codec.ZSTD], (0, 1))
    cases = [
        Case(sent(random, magic, codec, with_producers=False), rules(random, to))
        for magic, codec, to in formats
        for _ in range(20)
    ]
    wrong = []
    for case, java in zip(cases, ask_java(case.command() for case in cases), strict=True):
        ours = case.outcome()
        if in_general(ours, case.rules) != in_general(java, case.rules):
            wrong.append(f"{case.command()[:1500]}\n {case.rules}\n ours {ours[:1000]}\n java {java[:1000]}")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:5])


def in_general(response: str, rules: AppendRules) -> str:
    """Without what may differ: whether a set that needs no conversion is written again, as we do, or left in place;
    and the time at which Kafka says that messages without timestamps came.
    """
    words = response.split(" ")
    if words[0] == "error":
        return " ".join(words if names_records(response) else words[:2])
    return " ".join([words[0], "-" if rules.to_magic == 0 else words[1], *words[3:]])


def test_headers_that_lie() -> None:
    random = Random("headers")
    cases = []
    for _ in range(600):
        batch = bytearray(sent(random, 2, random.choice(list(Codec))))
        place, width = random.choice([(21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4)])
        value = random.choice([-1, 0, 1, 2, 9, 10, 16, 32, 64, 2**15 - 1])
        batch[place : place + width] = value.to_bytes(width, "big", signed=True)
        if parse_header(batch).attributes & 7 <= Codec.ZSTD:  # Kafka checks the codec before LogValidator does
            cases.append(Case(with_true_crc(batch), rules(random)))
    compare(cases)


def test_records_that_lie() -> None:
    """Bytes of an uncompressed batch changed at random. No producers: a sequence at a negative offset is any number."""
    random = Random("bytes")
    cases = []
    for _ in range(1500):
        batch = bytearray(sent(random, 2, Codec.NONE, with_producers=False))
        for _ in range(random.choice([1, 1, 2])):
            batch[random.randrange(61, len(batch))] = random.choice([0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)])
        cases.append(Case(with_true_crc(batch), rules(random)))
    compare(cases)


def test_what_coordinators_write() -> None:
    random = Random("coordinators")
    cases = [Case(MARKER, replace(rules(random), codec=codec), from_client=False) for codec in (None, *Codec)]
    compare(cases)


def test_several_messages_are_one_append() -> None:
    """Old clients send a set of single messages; two wrappers, or two magics, are refused."""
    random = Random("several")
    one = bytes(build_message_set(records(random), 1, codec=Codec.GZIP))
    other = bytes(build_message_set(records(random), 0))
    two = bytes(build_batch_of(records(random)))
    plain = AppendRules(check_every_record=True)
    compare([Case(buffer, plain) for buffer in (one + one, other + one, one + other, two + two, other + other)])


def test_rules_of_produce_versions() -> None:
    random = Random("versions")
    batch, zstd = (
        bytes(build_batch_of(records(random))),
        bytes(build_batch_of(records(random), BatchFields(codec=Codec.ZSTD))),
    )
    old = bytes(build_message_set(records(random)[:1], 1))
    buffers = [
        b"",
        b"short",
        batch,
        batch + batch,
        batch + batch[:-1],
        zstd,
        zstd + batch,
        batch + zstd,
        old,
        old + batch,
    ]
    wrong = []
    cases = list(itertools.product((3, 6, 7, 11), buffers))
    responses = ask_java(f"produce {version} {buffer.hex() or '-'}" for version, buffer in cases)
    for (version, buffer), java in zip(cases, responses, strict=True):
        try:
            validate_and_assign(bytearray(buffer), AppendRules(), AppendContext(0, 0, 0), version)
            ours = "ok"
        except KafkaError as error:
            ours = f"error {error.code.name}"
        if ours != " ".join(java.split()[:2]):
            wrong.append((version, buffer.hex()[:100], ours, java))
    assert not wrong
