"""Batches whose headers are not true of their records: stored, read back, looked up by time, rolled and cleaned.

What time retention does with them is in `expiry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.records import TIME, Batch
from compat_tests.differential.script import Step, ask, script
from compat_tests.differential.scripts.offsets import offsets
from compat_tests.differential.scripts.produce import NEW_PRODUCER
from compat_tests.differential.steps import create, everything, fetch_one, produce
from compat_tests.differential.transactional import producers
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

PRODUCE = ApiKey.PRODUCE
RECORDS = [(b"k", b"a", TIME), (b"k", b"b", TIME + 30), (b"l", b"c", TIME + 20)]
MAXIMA = (TIME + 20, TIME, -1, 0, TIME + 90, -2, 2**63 - 1)
"""Of the last record, of the first, none, zero, above all, and what no clock says."""
CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
WHEN = (0, TIME, TIME + 1, TIME + 25, TIME + 31)


def wrong(codec: Codec = Codec.NONE, magic: int = 2, values: Sequence[Any] = RECORDS, **claims: int) -> Batch:
    return Batch(values, magic=magic, codec=codec, claims=claims)


def found(partition: int, topic: str = "{t}") -> list[Step]:
    """What is stored in a partition, and what lookups by time find."""
    return [
        everything(topic, partition),
        *(offsets(when, partition, topic) for when in WHEN),
        offsets(-3, partition, topic),
    ]


def each(*batches: Batch) -> list[Step]:
    """Each to a partition of its own, on a connection of its own."""
    sent = [produce("{t}", batch, partition=n, on=f"client {n}") for n, batch in enumerate(batches)]
    return [create("{t}", partitions=len(batches)), *sent, *(step for n in range(len(batches)) for step in found(n))]


SCRIPTS = [
    *(
        script(
            f"claims-largest-{codec.name.lower()}",
            PRODUCE,
            "the largest timestamp is that of the records, whatever the header says",
            each(*(wrong(codec, max_timestamp=maximum) for maximum in MAXIMA)),
            versions=(7 if codec is Codec.ZSTD else 3, 11),
        )
        for codec in CODECS
    ),
    script(
        "claims-largest-of-one",
        PRODUCE,
        "the same of batches of one record",
        each(*(wrong(codec, values=RECORDS[:1], max_timestamp=wrong_) for codec in CODECS[:2] for wrong_ in MAXIMA)),
        versions=(3, 11),
    ),
    script(
        "claims-largest-on-one-connection",
        PRODUCE,
        "and of a client that sends right ones as well",
        create("{t}"),
        *(
            produce("{t}", wrong(max_timestamp=maximum))
            for wrong_maximum in MAXIMA
            for maximum in (wrong_maximum, TIME + 30)
        ),
        found(0),
        versions=(3, 11),
    ),
    script(
        "claims-base-timestamp",
        PRODUCE,
        "every record's time moves with it",
        each(*(wrong(codec, base_timestamp=base) for codec in CODECS[:2] for base in (TIME + 5, TIME - 5, 0, -1))),
        versions=(3, 11),
    ),
    script(
        "claims-counts",
        PRODUCE,
        "more or fewer records than there are",
        each(
            *(
                wrong(codec, records_count=count, last_offset_delta=delta)
                for codec in CODECS[:2]
                for count, delta in ((2, 1), (4, 3), (3, 1), (2, 2), (0, 0), (0, -1), (-1, -2), (1_000_000, 999_999))
            )
        ),
        versions=(3, 11),
    ),
    script(
        "claims-attributes",
        PRODUCE,
        "a time of the broker's, a control batch, a delete horizon, bits that mean nothing, another codec",
        each(
            *(
                wrong(attributes=bits, max_timestamp=maximum)
                for bits in (0x40, 0x180, -0x8000)
                for maximum in (0, TIME)
            ),
            *(wrong(attributes=bits) for bits in (0x08, 0x20, 0x40, 0x80, 0x100, 0x4000, -0x8000, 1, 2, 3, 4, 5, 7)),
        ),
        versions=(3, 11),
    ),
    script(
        "claims-places",
        PRODUCE,
        "base offset, leader epoch, producer id, epoch and sequence without each other",
        each(
            wrong(base_offset=7),
            wrong(partition_leader_epoch=9),
            wrong(producer_id=4),
            wrong(producer_epoch=3),
            wrong(base_sequence=5),
            wrong(producer_id=4, producer_epoch=0),
            wrong(producer_id=4, base_sequence=0),
        ),
        versions=(3, 11),
    ),
    script(
        "claims-idempotent",
        PRODUCE,
        "an idempotent producer: its batches, the same ones again, and what is known of it",
        create("{t}", partitions=len(MAXIMA)),
        NEW_PRODUCER,
        *(
            produce(
                "{t}",
                Batch(RECORDS, codec=codec, producer_id="{pid}", producer_epoch=0, sequence=sequence, claims=claims),
                partition=n,
                on=f"client {n}",
            )
            for n, maximum in enumerate(MAXIMA)
            for claims in ({"max_timestamp": maximum},)
            for codec in (Codec.NONE, Codec.LZ4)
            for sequence in ((0, 0) if codec is Codec.NONE else (3, 3))
        ),
        *(step for n in range(len(MAXIMA)) for step in (*found(n), producers(n))),
        versions=(3, 11),
    ),
    script(
        "claims-old-magic",
        PRODUCE,
        "message sets of magic 0 and 1 are converted, and a wrapper's time is not that of its messages",
        each(
            *(wrong(codec, 1, max_timestamp=maximum) for codec in CODECS[1:4] for maximum in MAXIMA),
            *(wrong(Codec.NONE, 1, RECORDS[:1], max_timestamp=maximum) for maximum in MAXIMA),
            *(Batch(RECORDS, magic=0, codec=codec) for codec in CODECS[:4]),
        ),
        versions=(0, 2),
    ),
    script(
        "claims-stamped",
        PRODUCE,
        "a topic whose broker says what time it is",
        create("{t}", message_timestamp_type="LogAppendTime", partitions=len(MAXIMA)),
        *(produce("{t}", wrong(max_timestamp=maximum), partition=n) for n, maximum in enumerate(MAXIMA)),
        *(everything("{t}", n) for n in range(len(MAXIMA))),
        versions=(11, 11),
    ),
    script(
        "claims-limits",
        PRODUCE,
        "the limits of timestamps are for those of the records",
        create("{t}", message_timestamp_before_max_ms=1000, partitions=len(MAXIMA)),
        *(produce("{t}", wrong(max_timestamp=maximum), partition=n) for n, maximum in enumerate(MAXIMA)),
        create("{t}-after", message_timestamp_after_max_ms=1000, partitions=len(MAXIMA)),
        *(produce("{t}-after", wrong(max_timestamp=maximum), partition=n) for n, maximum in enumerate(MAXIMA)),
        *(step for n in range(len(MAXIMA)) for step in found(n, "{t}-after")),
        versions=(11, 11),
    ),
    script(
        "claims-recompressed",
        PRODUCE,
        "a topic that compresses again",
        create("{t}", compression_type="lz4", partitions=len(MAXIMA)),
        *(produce("{t}", wrong(Codec.GZIP, max_timestamp=maximum), partition=n) for n, maximum in enumerate(MAXIMA)),
        *(step for n in range(len(MAXIMA)) for step in found(n)),
        versions=(11, 11),
    ),
    script(
        "claims-rolled",
        PRODUCE,
        "a segment is full of time when its records say so",
        create("{t}", segment_ms=1000, partitions=len(MAXIMA)),
        *(
            produce("{t}", wrong(values=[(b"k", b"v", TIME + after)], max_timestamp=maximum), partition=n)
            for n, maximum in enumerate(MAXIMA)
            for after in (0, 900, 1100, 1200, 2500)
        ),
        *(
            ask(
                ApiKey.LIST_OFFSETS,
                v=0,
                replica_id=-1,
                topics=[
                    {
                        "name": "{t}",
                        "partitions": [{"partition_index": n, "timestamp": -1, "max_num_offsets": 100}],
                    }
                ],
            )
            for n in range(len(MAXIMA))
        ),
        versions=(11, 11),
    ),
    script(
        "claims-cleaned",
        PRODUCE,
        "what compaction leaves, and when it knows that tombstones are old",
        create(
            "{t}",
            cleanup_policy="compact",
            segment_bytes=150,
            min_cleanable_dirty_ratio=0.01,
            delete_retention_ms=60_000,
        ),
        *(
            produce("{t}", wrong(values=[(b"k", b"v%d" % n, TIME + n), (b"d", None, TIME + 9)], max_timestamp=maximum))
            for n, maximum in enumerate(MAXIMA)
        ),
        fetch_one("{t}", until={"responses.0.partitions.0.records.0.attributes": 0x40}),
        offsets(TIME),
        offsets(-3),
        versions=(11, 11),
    ),
]
