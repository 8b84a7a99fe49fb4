"""Produce: every acknowledgement, every magic, and everything that a batch can have wrong."""

from __future__ import annotations

from compat_tests.differential.records import TIME, Batch, Several
from compat_tests.differential.script import Response, ask, script
from compat_tests.differential.steps import create, everything, fetch_one, produce, produce_to
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

PRODUCE = ApiKey.PRODUCE

PLAIN = [b"one", b"two", b"three"]
NEW_PRODUCER = ask(
    ApiKey.INIT_PRODUCER_ID,
    v=4,
    transactional_id=None,
    transaction_timeout_ms=60_000,
    bind={"pid": "producer_id", "epoch": "producer_epoch"},
)


def sequenced(sequence: int, *values: bytes, epoch: object = "{epoch}", pid: object = "{pid}") -> Batch:
    return Batch(list(values) or [b"x"], producer_id=pid, producer_epoch=epoch, sequence=sequence)


SCRIPTS = [
    script(
        "produce-acks",
        PRODUCE,
        "each acknowledgement and wrong ones; none has no response, the next one is the next request's",
        create("{t}", partitions=2),
        produce("{t}", Batch([b"one", b"two"]), acks=1),
        produce("{t}", Batch([b"three"]), acks=-1),
        produce("{t}", Batch([b"four"]), acks=0, response=Response.NONE),
        produce("{t}", Batch([b"five"]), acks=1),
        produce("{t}", Batch([b"never"]), acks=2),
        produce("{t}", Batch([b"never"]), acks=-2),
        produce("{t}", Batch([b"other"]), partition=1),
        everything("{t}"),
        # an error no one waits for ends the connection, so that the client asks for metadata
        produce("{t}-missing", Batch([b"x"]), acks=0, response=Response.NONE),
        produce("{t}", Batch([b"six"]), acks=1),
    ),
    script(
        "produce-places",
        PRODUCE,
        "topics and partitions that are not there, several in one request, none at all",
        create("{t}", partitions=2),
        produce("{t}-missing", Batch([b"x"])),
        produce("bad name", Batch([b"x"])),
        produce("", Batch([b"x"])),
        produce("{t}", Batch([b"x"]), partition=2),
        produce("{t}", Batch([b"x"]), partition=-1),
        produce_to(
            ("{t}", 1, Batch([b"a"])), ("{t}", 0, Batch([b"c"])), ("{t}", 9, None), ("{t}-missing", 0, Batch([b"b"]))
        ),
        ask(PRODUCE, acks=1, timeout_ms=1000, topic_data=[]),
        ask(PRODUCE, acks=1, timeout_ms=1000, topic_data=[{"name": "{t}", "partition_data": []}]),
        everything("{t}"),
    ),
    script(
        "produce-internal",
        PRODUCE,
        "topics that only coordinators write to",
        ask(ApiKey.FIND_COORDINATOR, v=3, key="{t}", key_type=0, until={"error_code": 0}),
        produce("__consumer_offsets", Batch([b"x"])),
        produce("__consumer_offsets", Batch([b"x"], damage={17: b"\1\2\3\4"})),
        produce_to(("__consumer_offsets", 9999, Batch([b"x"])), ("{t}-missing", 0, Batch([b"x"]))),
        produce("__transaction_state-missing", Batch([b"x"])),
        produce("__consumer_offsets", Batch([b"x"]), acks=0, response=Response.NONE),
        produce("__consumer_offsets", Batch([b"x"]), acks=3),
    ),
    script(
        "produce-repeated",
        PRODUCE,
        "the same topic twice, the same partition twice in one request",
        create("{t}", partitions=2),
        produce_to(("{t}", 0, Batch([b"a"])), ("{t}-missing", 0, None), ("{t}", 1, Batch([b"b"]))),
        produce_to(("{t}", 0, Batch([b"first"])), ("{t}", 0, Batch([b"second"]))),
        everything("{t}"),
    ),
    script(
        "produce-nothing",
        PRODUCE,
        "no bytes, bytes that are no batch (null records never get a response of Kafka)",
        create("{t}"),
        produce("{t}", b""),
        produce("{t}", b"\0" * 8),
        produce("{t}", b"\0" * 16),
        produce("{t}", b"\0" * 17),
        produce("{t}", b"\0" * 100),
        produce("{t}", b"\xff" * 100),
        everything("{t}"),
    ),
    script(
        "produce-several",
        PRODUCE,
        "several batches, or a whole one and a cut-off one, in one partition",
        create("{t}"),
        produce("{t}", Several([Batch([b"a"]), Batch([b"b"])])),
        produce("{t}", Several([Batch([b"a"]), Batch([b"b"], cut=30)])),
        produce("{t}", Several([Batch([b"a"], magic=1), Batch([b"b"])])),
        produce("{t}", Batch([b"a", b"b"], cut=40)),
        produce("{t}", Batch([b"a", b"b"], cut=75)),
        everything("{t}"),
    ),
    script(
        "produce-damaged",
        PRODUCE,
        "a batch with one field wrong at a time",
        create("{t}"),
        produce("{t}", Batch(PLAIN, damage={17: b"\1\2\3\4"})),  # CRC
        produce("{t}", Batch(PLAIN, damage={65: b"\xff"})),  # a record's byte
        produce("{t}", Batch(PLAIN, damage={16: b"\3"})),  # magic
        produce("{t}", Batch(PLAIN, damage={16: b"\xff"})),
        produce("{t}", Batch(PLAIN, damage={8: b"\0\0\0\x10"})),  # length
        produce("{t}", Batch(PLAIN, damage={8: b"\0\0\x10\0"})),
        produce("{t}", Batch(PLAIN, damage={8: b"\xff\xff\xff\xff"})),
        produce("{t}", Batch(PLAIN, damage={23: b"\0\0\0\1"}, sign=True)),  # last offset delta
        produce("{t}", Batch(PLAIN, damage={23: b"\0\0\0\5"}, sign=True)),
        produce("{t}", Batch(PLAIN, damage={57: b"\0\0\0\1"}, sign=True)),  # count
        produce("{t}", Batch(PLAIN, damage={57: b"\0\0\0\0"}, sign=True)),
        produce("{t}", Batch(PLAIN, damage={57: b"\xff\xff\xff\xff"}, sign=True)),
        produce("{t}", Batch(PLAIN, damage={22: b"\x05"}, sign=True)),  # a codec that is none
        produce("{t}", Batch(PLAIN, damage={22: b"\x20"}, sign=True)),  # control
        produce("{t}", Batch(PLAIN, damage={22: b"\x08"}, sign=True)),  # LogAppendTime set by a client
        produce("{t}", Batch(PLAIN, damage={0: b"\0\0\0\0\0\0\0\x07"})),  # base offset
        produce("{t}", Batch(PLAIN, damage={12: b"\0\0\0\x07"})),  # leader epoch
        everything("{t}"),
    ),
    script(
        "produce-no-records",
        PRODUCE,
        "compressed records that are none",
        create("{t}"),
        produce("{t}", Batch(PLAIN, damage={22: b"\x01"}, sign=True)),
        versions=(11, 11),
    ),
    script(
        "produce-damaged-compressed",
        PRODUCE,
        "records that do not match their batch, where the broker must look at them",
        create("{t}", compression_type="gzip"),
        produce("{t}", Batch(PLAIN, damage={57: b"\0\0\0\2"}, sign=True)),
        produce("{t}", Batch(PLAIN, damage={57: b"\0\0\0\4", 23: b"\0\0\0\3"}, sign=True)),
        produce("{t}", Batch(PLAIN, damage={61: b"\x7f"}, sign=True)),  # the first record's length
        produce("{t}", Batch(PLAIN, damage={61: b"\x01"}, sign=True)),
        produce("{t}", Batch(PLAIN, damage={63: b"\x02"}, sign=True)),  # its timestamp's delta
        produce("{t}", Batch(PLAIN, damage={64: b"\x08"}, sign=True)),  # its offset's delta
        produce("{t}", Batch(PLAIN, damage={65: b"\x7e"}, sign=True)),  # its key's length
        produce("{t}", Batch(PLAIN, codec=Codec.SNAPPY, damage={70: b"\xff\xff"}, sign=True)),
        produce("{t}", Batch(PLAIN, codec=Codec.LZ4, damage={61: b"\xff\xff"}, sign=True)),
        everything("{t}"),
        versions=(3, 11),
    ),
    script(
        "produce-old-magic",
        PRODUCE,
        "message sets of magic 0 and 1 with every codec they have, and nulls",
        create("{t}"),
        *(
            produce("{t}", Batch([(b"k", b"v", TIME), (None, None, TIME + 5), b"w"], magic=magic, codec=codec))
            for magic in (0, 1)
            for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
        ),
        fetch_one("{t}", v=0),
        fetch_one("{t}", v=2),
        everything("{t}"),
    ),
    script(
        "produce-old-magic-damaged",
        PRODUCE,
        "messages with one field wrong at a time",
        create("{t}"),
        *(
            produce("{t}", Batch(PLAIN, magic=magic, damage=damage))
            for magic in (0, 1)
            for damage in (
                {12: b"\1\2\3\4"},  # CRC
                {8: b"\0\0\0\1"},  # size
                {8: b"\0\0\1\1"},
                {17: b"\x07"},  # attributes
                {16: b"\x02"},  # magic
                {0: b"\0\0\0\0\0\0\0\x07"},  # offset
            )
        ),
        produce("{t}", Batch(PLAIN, magic=1, codec=Codec.GZIP, damage={40: b"\xff\xff"})),
        everything("{t}"),
        versions=(0, 2),
    ),
    script(
        "produce-codecs",
        PRODUCE,
        "every codec as it came; zstd only from version 7",
        create("{t}"),
        *(produce("{t}", Batch([b"a" * 100, b"b" * 100], codec=codec)) for codec in Codec),
        everything("{t}"),
        fetch_one("{t}", v=9),
    ),
    script(
        "produce-recompressed",
        PRODUCE,
        "topics with a codec of their own",
        *(
            step
            for own in ("uncompressed", "gzip", "snappy", "lz4", "zstd")
            for step in (
                create(f"{{t}}-{own}", compression_type=own),
                produce(f"{{t}}-{own}", Batch([b"a" * 100, b"b" * 100])),
                produce(f"{{t}}-{own}", Batch([b"a" * 100, b"b" * 100], codec=Codec.GZIP)),
                produce(f"{{t}}-{own}", Batch([b"a" * 100, b"b" * 100], codec=Codec.LZ4)),
                fetch_one(f"{{t}}-{own}"),
            )
        ),
        versions=(3, 11),
    ),
    script(
        "produce-timestamps",
        PRODUCE,
        "times before and after what the topic takes, one by one in record_errors",
        create("{t}", message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000),
        produce("{t}", Batch([b"old"])),
        produce("{t}", Batch([b"old", b"older"])),
        produce("{t}", Batch([(None, b"far", 4_000_000_000_000)])),
        produce("{t}", Batch([(None, b"none", -1)])),
        produce("{t}", Batch([b"old"], magic=1)),
        produce("{t}", Batch([b"zero"], magic=0)),
        create("{t}-2", message_timestamp_after_max_ms=1000),
        produce("{t}-2", Batch([b"ok", (None, b"far", 4_000_000_000_000), b"ok", (None, b"far", 4_000_000_000_001)])),
        produce("{t}-2", Batch([(None, b"none", -1), b"ok"])),
        produce("{t}-2", Batch([(None, b"negative", -2)])),
        fetch_one("{t}-2"),
    ),
    script(
        "produce-append-time",
        PRODUCE,
        "topics that take the broker's clock",
        create("{t}", message_timestamp_type="LogAppendTime"),
        produce("{t}", Batch(PLAIN)),
        produce("{t}", Batch(PLAIN, codec=Codec.GZIP)),
        produce("{t}", Batch(PLAIN, magic=1)),
        produce("{t}", Batch(PLAIN, magic=1, codec=Codec.GZIP)),
        produce("{t}", Batch(PLAIN, magic=0)),
        produce("{t}", Batch([(None, b"far", 4_000_000_000_000)])),
        everything("{t}"),
        fetch_one("{t}", v=2),
    ),
    script(
        "produce-compacted",
        PRODUCE,
        "compacted topics need keys; record_errors names those without",
        create("{t}", cleanup_policy="compact"),
        produce("{t}", Batch([(b"k", b"v", TIME)])),
        produce("{t}", Batch([b"no key"])),
        produce("{t}", Batch([(b"k", b"v", TIME), b"no key", (b"k", None, TIME), b"no key"])),
        produce("{t}", Batch([(b"k", b"v", TIME), b"no key"], codec=Codec.GZIP)),
        produce("{t}", Batch([(b"k", b"v", TIME), b"no key"], magic=1)),
        produce("{t}", Batch([(b"k", b"v", TIME), b"no key"], magic=1, codec=Codec.GZIP)),
        produce("{t}", Batch([(b"", b"", TIME)])),
        everything("{t}"),
    ),
    script(
        "produce-too-large",
        PRODUCE,
        "batches above max.message.bytes and above segment.bytes",
        create("{t}", max_message_bytes=200),
        produce("{t}", Batch([b"a" * 132])),
        produce("{t}", Batch([b"a" * 300])),
        produce("{t}", Batch([b"a" * 50] * 8)),
        produce("{t}", Batch([b"a" * 1000], codec=Codec.GZIP)),
        produce("{t}", Batch([b"a" * 300], magic=1)),
        create("{t}-2", segment_bytes=300, max_message_bytes=1000),
        produce("{t}-2", Batch([b"a" * 500])),
        produce("{t}-2", Batch([b"a" * 100])),
        produce("{t}-2", Batch([b"a" * 100])),
        produce("{t}-3-unknown", Batch([b"a" * 200_000])),
        create("{t}-4"),
        produce("{t}-4", Batch([b"a" * 200_000])),
        everything("{t}"),
        everything("{t}-2"),
    ),
    script(
        "produce-idempotent",
        PRODUCE,
        "sequences: next, duplicate, gap, unknown producer, epochs, what is still remembered",
        create("{t}", partitions=2),
        NEW_PRODUCER,
        produce("{t}", sequenced(0, b"a", b"b")),
        produce("{t}", sequenced(2)),
        produce("{t}", sequenced(2)),
        produce("{t}", sequenced(0, b"a", b"b")),
        produce("{t}", sequenced(5)),
        produce("{t}", sequenced(1)),
        produce("{t}", sequenced(0, b"a", b"b", b"c")),
        *(produce("{t}", sequenced(sequence)) for sequence in (3, 4, 5, 6, 7)),
        produce("{t}", sequenced(3)),
        produce("{t}", sequenced(2)),
        produce("{t}", sequenced(0, b"a", b"b")),
        produce("{t}", sequenced(3), partition=1),
        produce("{t}", sequenced(0), partition=1),
        produce("{t}", sequenced(1, epoch=1)),
        produce("{t}", sequenced(0, epoch=1)),
        produce("{t}", sequenced(8)),
        produce("{t}", sequenced(0)),
        produce("{t}", sequenced(1, epoch=1)),
        produce("{t}", sequenced(5, pid=999_999)),
        produce("{t}", sequenced(-1, pid=999_998)),
        produce("{t}", sequenced(0, pid=999_998, epoch=-1)),
        produce("{t}", Batch([b"x"], sequence=3)),
        everything("{t}"),
        everything("{t}", 1),
        versions=(3, 11),
    ),
    script(
        "produce-sequence-wraps",
        PRODUCE,
        "after 2^31-1 comes 0, within a batch too",
        create("{t}"),
        NEW_PRODUCER,
        produce("{t}", sequenced(2**31 - 2, b"a", pid=888_888)),
        produce("{t}", sequenced(2**31 - 1, b"b", b"c", pid=888_888)),
        produce("{t}", sequenced(1, b"d", pid=888_888)),
        produce("{t}", sequenced(2**31 - 1, b"b", b"c", pid=888_888)),
        everything("{t}"),
        versions=(3, 11),
    ),
]
