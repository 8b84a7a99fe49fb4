"""Records: what a producer sends, what a log holds, and the records of internal topics."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from kpybroker.core.group import records as group
from kpybroker.core.share_coordinator import records as share
from kpybroker.core.share_coordinator.values import SharePartitionKey, StateBatch
from kpybroker.core.transaction import records as transaction
from kpybroker.registry.election.protocol import decode_assignment, decode_identity
from kpybroker.registry.store.records import Unreadable, parsed_object, parsed_version
from kpybroker.storage.inspection.dump_internal import decode_internal
from kpybroker.wire.compression import Codec
from kpybroker.wire.crc import crc32c
from kpybroker.wire.errors import KafkaError, ProtocolError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import TimestampType, iter_batches, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.claims import is_true
from kpybroker.wire.records.control import parse_end_transaction_marker
from kpybroker.wire.records.convert import down_convert
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record, iter_records
from kpybroker.wire.records.validate import AppendContext, validate_and_assign, validate_fast
from tests.fuzz.target import Target

NOW_MS = 1_700_000_000_000
BYTES_MAX = 1 << 20
RULES = (
    AppendRules(),
    AppendRules(check_every_record=True),
    AppendRules(compacted=True, max_uncompressed_bytes=BYTES_MAX),
    AppendRules(codec=Codec.LZ4, max_uncompressed_bytes=BYTES_MAX),
    AppendRules(timestamp_type=TimestampType.LOG_APPEND_TIME),
    AppendRules(to_magic=1, max_uncompressed_bytes=BYTES_MAX),
    AppendRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=1000),
)
CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


def sealed(data: bytes) -> bytearray:
    """With the checksum that its first batch should have, so that the rest of the validation is reached."""
    batch = bytearray(data)
    if len(batch) > 61 and batch[16] == 2:
        batch[8:12] = struct.pack(">i", len(batch) - 12)
        batch[17:21] = struct.pack(">I", crc32c(memoryview(batch)[21:]))
    return batch


def append(data: bytes) -> None:
    """A byte for the topic's rules, one for the version of Produce, then the records. What is taken can be read."""
    if len(data) < 2:
        return
    rules, version = RULES[data[0] % len(RULES)], 3 + data[1] % 11
    sent = sealed(data[2:])
    taken: Buffer
    fast = validate_fast(bytearray(sent), rules, 100, 1, version)
    try:
        checked = validate_and_assign(sent, rules, AppendContext(100, NOW_MS, 1), version)
    except KafkaError:
        return
    taken = checked.data
    if fast is not None and rules.opaque:
        assert bytes(fast.data) == bytes(taken), "the fast path stores something else"
    for position, header in iter_batches(taken):
        assert header.base_offset >= 100
        verify_crc(taken, position, header)
        if not rules.opaque:
            assert len(list(iter_records(taken, header, position, max_bytes=1 << 26))) <= checked.records_count


def read(data: bytes) -> None:
    """A log's bytes, which may be damaged: batches, their records, and those as older clients get them."""
    for position, header in iter_batches(data):
        is_true(data[position : position + header.size], 1000, BYTES_MAX)
        for record in iter_records(data, header, position, max_bytes=BYTES_MAX, read_headers_max=10):
            if header.is_control:
                parse_end_transaction_marker(record)
    for magic in (0, 1):
        down_convert(data, magic, 0, max_bytes=BYTES_MAX)


def batches() -> Iterable[bytes]:
    for codec in CODECS:
        entries = [(b"k", b"value" * 9, NOW_MS), (None, None, NOW_MS + 1)]
        yield bytes(build_batch(entries, BatchFields(codec=codec)))
        yield bytes(build_batch(entries, BatchFields(codec=codec, producer_id=7, producer_epoch=0, base_sequence=0)))
    for magic in (0, 1):
        for codec in CODECS[:4]:
            yield bytes(build_message_set(records_of(entries), magic, codec=codec))


def records_of(entries: list[tuple[bytes | None, bytes | None, int]]) -> list[Record]:
    batch = build_batch(entries)
    (placed,) = iter_batches(batch)
    return list(iter_records(batch, placed[1]))


def appended() -> Iterable[bytes]:
    for number, batch in enumerate(batches()):
        yield bytes((number % len(RULES), 9)) + batch


def keyed(decode: Callable[[bytes, bytes | None], object], topic: str | None = None) -> Callable[[bytes], object]:
    """A byte for the key's size; a size beyond the data: no value. What the dump makes of it is made as well."""

    def run(data: bytes) -> None:
        if not data:
            return
        key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
        if topic is not None:
            decode_internal(topic, key, value)
            decode_internal(topic, key, None)
        decode(key, value if len(data) > data[0] else None)

    return run


def keys(*types: int) -> Callable[[], Iterable[bytes]]:
    """The key of each type with short texts, and a value of zeros."""
    return lambda: [bytes((12,)) + struct.pack(">hh", one, 1) + b"g\0\1t\0\0\0\0" + bytes(60) for one in types]


def share_records() -> Iterable[bytes]:
    """A snapshot, a tombstone, an update."""
    key = SharePartitionKey("g", bytes(16), 0)
    batches = (StateBatch(3, 9, 0, 1), StateBatch(10, 10, 4, 5))
    state = share.ShareState(1, 2, 3, 3, 0, batches, NOW_MS, NOW_MS)
    for record in (
        share.ShareSnapshot(key, state),
        share.ShareSnapshot(key, None),
        share.ShareUpdate(key, 1, 3, 5, 1, batches),
    ):
        encoded, value = share.encode_record(record)
        yield bytes((len(encoded),)) + encoded + (value or b"")


def registry(data: bytes) -> None:
    """A record of the registry's topic."""
    value = parsed_object(data)
    parsed_version(value)


def election(data: bytes) -> None:
    decode_identity(data)
    decode_assignment(data)


TARGETS = (
    Target("append", append, (), appended, ("kpybroker.wire.records", "kpybroker.wire.compression")),
    Target("read", read, (KafkaError,), batches, ("kpybroker.wire.records", "kpybroker.wire.compression")),
    Target(
        "group-records",
        keyed(group.decode_record, "__consumer_offsets"),
        (ProtocolError,),
        keys(*range(22)),
        ("kpybroker.core.group.records", "kpybroker.core.consumer_group.encoding"),
    ),
    Target(
        "transaction-records",
        keyed(transaction.decode_record, "__transaction_state"),
        (ProtocolError,),
        keys(0, 1),
        ("kpybroker.core.transaction.records",),
    ),
    Target(
        "share-records",
        keyed(share.decode_record, "__share_group_state"),
        (ProtocolError,),
        share_records,
        ("kpybroker.core.share_coordinator.records",),
    ),
    Target(
        "registry-records",
        registry,
        (Unreadable,),
        lambda: [b'{"subject":"s","version":1,"id":1,"schema":"{}","references":[],"metadata":{},"deleted":false}'],
        ("kpybroker.registry.store.records",),
    ),
    Target(
        "registry-election",
        election,
        (),
        lambda: [b'{"version":1,"host":"h","port":8081,"master_eligibility":true,"scheme":"http","leader":false}'],
        ("kpybroker.registry.election.protocol",),
    ),
)
