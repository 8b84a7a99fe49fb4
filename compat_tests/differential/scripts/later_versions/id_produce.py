"""Produce 13: by the id that a client has of a topic, whatever became of it. Played once the broker serves it."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.kafka_4.topics import ASKED, NO_ID, SOME_ID, Probes, in_states
from compat_tests.differential.records import TIME, Batch, Several
from compat_tests.differential.script import Ask, Response, ask
from compat_tests.differential.scripts.later_versions import id_fetch
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import ApiKey

PRODUCE = ApiKey.PRODUCE
VERSION = 13
Place = tuple[Any, int, Any]
"""A topic id, a partition and its records."""


def produce(*places: Place, acks: int = 1, **options: Any) -> Ask:
    """Each place in an entry of its own."""
    topics = [
        {"topic_id": topic_id, "partition_data": [{"index": index, "records": records}]}
        for topic_id, index, records in places
    ]
    return ask(PRODUCE, v=VERSION, acks=acks, timeout_ms=60_000, topic_data=topics, **options)


def one(value: bytes, **fields: Any) -> Batch:
    """A record with a key, as compacted topics want it."""
    return Batch([(b"k", value, TIME)], **fields)


SEEN = [id_fetch.several((ASKED, 0, 0)), id_fetch.several((ASKED, 1, 0)), id_fetch.several(("{other}", 0, 0))]

PRODUCE_PROBES: Probes = {
    "places": [
        *(produce((ASKED, index, one(b"x"))) for index in (0, 1, 7, -1)),
        produce((ASKED, 0, one(b"y")), acks=-1),
        produce((ASKED, 0, one(b"z")), acks=2),
        produce(),
        *SEEN,
    ],
    "mixed": [
        SEEN[0],
        produce((ASKED, 0, one(b"a")), (SOME_ID, 0, one(b"b")), ("{other}", 0, one(b"c"))),
        produce(("{other}", 0, one(b"d")), (ASKED, 7, one(b"e")), (ASKED, 1, one(b"f"))),
        produce((NO_ID, 0, one(b"g")), ("{other}", 0, one(b"h"))),
        *SEEN,
    ],
    "records": [
        produce((ASKED, 0, Batch([b"no key"]))),
        produce((ASKED, 0, one(b"x", damage={-1: b"!"}))),
        produce((ASKED, 0, Several([one(b"x"), one(b"y")]))),
        produce((ASKED, 0, one(b"x" * 200_000))),
        produce((ASKED, 0, b"")),
        *SEEN,
    ],
    "idempotent": [
        ask(
            ApiKey.INIT_PRODUCER_ID,
            v=4,
            transactional_id=None,
            transaction_timeout_ms=60_000,
            bind={"pid": "producer_id"},
        ),
        *(
            produce((ASKED, 0, one(b"%d" % sequence, producer_id="{pid}", producer_epoch=0, sequence=sequence)))
            for sequence in (0, 1, 1, 5, 0)
        ),
        *SEEN,
    ],
    "unacknowledged": [produce((ASKED, 1, one(b"x")), acks=0, response=Response.NONE), *SEEN],
}

SCRIPTS = [
    script
    for script in in_states("id-produce", PRODUCE, PRODUCE_PROBES, versions=(VERSION, VERSION))
    if SERVED[PRODUCE][1] >= VERSION
]
