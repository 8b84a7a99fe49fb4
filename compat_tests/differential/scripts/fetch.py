"""Fetch: places, limits, sessions, topic ids, leader epochs, what old clients get."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.records import TIME, Batch
from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.steps import create, produce
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

FETCH = ApiKey.FETCH
NO_ID = bytes(16)
SOME_ID = b"\x01" * 16


def part(partition: int, offset: int = 0, max_bytes: int = 1_000_000, **more: Any) -> dict[str, Any]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes, **more}


def fetch(*parts: dict[str, Any], topic: str = "{t}", topic_id: Any = "{id}", **options: Any) -> Ask:
    """One topic; its name in the versions that have it, its id in the others."""
    fields: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, **options}
    topics = [{"topic": topic, "topic_id": topic_id, "partitions": list(parts)}] if parts else []
    return ask(FETCH, topics=topics, **fields)


def session(session_id: Any, epoch: int, *parts: dict[str, Any], **options: Any) -> Ask:
    return fetch(*parts, session_id=session_id, session_epoch=epoch, **options)


ID = {"id": "topics.0.topic_id"}
OPEN = {"session": "session_id"}

SCRIPTS = [
    script(
        "fetch-places",
        FETCH,
        "every kind of offset and partition",
        create("{t}", partitions=2, bind=ID),
        produce("{t}", Batch([b"one", b"two"])),
        produce("{t}", Batch([(b"k", b"three", TIME), (b"k", None, TIME)])),
        fetch(part(0)),
        fetch(part(0, 1)),
        fetch(part(0, 2)),
        fetch(part(0, 3)),
        fetch(part(0, 4)),
        fetch(part(0, 5)),
        fetch(part(0, -1)),
        fetch(part(1)),
        fetch(part(2)),
        fetch(part(-1)),
        fetch(part(0), part(1), part(7)),
        fetch(part(0), part(0, 2)),
        fetch(part(0), topic="{t}-missing", topic_id=SOME_ID),
        fetch(part(0), topic="bad name", topic_id=NO_ID),
        fetch(),
    ),
    script(
        "fetch-limits",
        FETCH,
        "KIP-74: the first batch comes whole whatever the limits are, later ones only when they fit",
        create("{t}", partitions=3, bind=ID),
        *(produce("{t}", Batch([b"%d" % n * 300]), partition=partition) for partition in (0, 1) for n in range(4)),
        fetch(part(0, max_bytes=1), part(1, max_bytes=1)),
        fetch(part(0, max_bytes=0), part(1, max_bytes=0)),
        fetch(part(0, max_bytes=400), part(1, max_bytes=800)),
        fetch(part(0, max_bytes=800), part(1, max_bytes=800), max_bytes=900),
        fetch(part(0), part(1), max_bytes=1),
        fetch(part(0), part(1), max_bytes=0),
        fetch(part(2), part(1), part(0), max_bytes=500),
        fetch(part(2), part(1, 4), part(0, 3, 10), max_bytes=500),
        fetch(part(0, max_bytes=-1), max_bytes=1000),
        fetch(part(0, max_bytes=371), max_bytes=1000),
        fetch(part(0, max_bytes=372), max_bytes=1000),
        fetch(part(0), max_bytes=-1),
    ),
    script(
        "fetch-waiting",
        FETCH,
        "min_bytes and max_wait",
        create("{t}", partitions=2, bind=ID),
        produce("{t}", Batch([b"one"])),
        fetch(part(0), min_bytes=1, max_wait_ms=5000),
        fetch(part(0), min_bytes=100_000, max_wait_ms=30),
        fetch(part(0, 1), min_bytes=1, max_wait_ms=30),
        fetch(part(0, 1), min_bytes=0, max_wait_ms=5000),
        fetch(part(0), part(9), min_bytes=100_000, max_wait_ms=30),
        fetch(part(0, 9), min_bytes=1, max_wait_ms=5000),
        fetch(min_bytes=1, max_wait_ms=30),
    ),
    script(
        "fetch-old-clients",
        FETCH,
        "down-conversion, compressed batches too; zstd needs version 10",
        create("{t}", bind=ID),
        produce("{t}", Batch([(b"k", b"v", TIME), (None, b"w", TIME + 1)])),
        produce("{t}", Batch([b"a" * 100, b"b" * 100], codec=Codec.GZIP)),
        produce("{t}", Batch([b"a" * 100, b"b" * 100], codec=Codec.SNAPPY)),
        fetch(part(0)),
        fetch(part(0, 1)),
        fetch(part(0, 3)),
        fetch(part(0, 3, 10)),
        produce("{t}", Batch([b"z" * 100], codec=Codec.ZSTD)),
        fetch(part(0, 4)),
        fetch(part(0, 6)),
        create("{t}-2", bind={"id2": "topics.0.topic_id"}, message_downconversion_enable="false"),
        produce("{t}-2", Batch([b"new"])),
        fetch(part(0), topic="{t}-2", topic_id="{id2}"),
        create("{t}-3", bind={"id3": "topics.0.topic_id"}, compression_type="zstd"),
        produce("{t}-3", Batch([b"new"])),
        fetch(part(0), topic="{t}-3", topic_id="{id3}"),
    ),
    script(
        "fetch-sessions",
        FETCH,
        "KIP-227: open, only what is new, change, forget, close, wrong epochs and ids",
        create("{t}", partitions=3, bind=ID),
        produce("{t}", Batch([b"one"])),
        session(0, 0, part(0), part(1), bind=OPEN),
        session("{session}", 1),
        session("{session}", 2, part(0, 1)),
        produce("{t}", Batch([b"two"])),
        produce("{t}", Batch([b"other"]), partition=1),
        session("{session}", 3),
        session("{session}", 4),
        session("{session}", 5, part(2), part(0, 2), part(1, 1)),
        produce("{t}", Batch([b"third"]), partition=2),
        session(
            "{session}",
            6,
            forgotten_topics_data=[{"topic": "{t}", "topic_id": "{id}", "partitions": [2, 7]}],
        ),
        session("{session}", 7),
        session("{session}", 7),
        session("{session}", 9),
        session("{session}", 8),
        session("{session}", 9, part(9)),
        session("{session}", 10),
        session("{session}", 11, forgotten_topics_data=[{"topic": "{t}", "topic_id": "{id}", "partitions": [9]}]),
        session("{session}", 12, part(0, 99)),
        session("{session}", 13),
        session(12345, 1),
        session(12345, 0, part(0), bind={"other": "session_id"}),
        session("{other}", -1),
        session("{other}", 1),
        session("{session}", 0, part(0), bind={"third": "session_id"}),
        session("{session}", 14),
        session("{third}", 1),
        session(0, -1, part(0)),
        session(0, 5, part(0)),
        session(0, 0),
        versions=(7, 17),
    ),
    script(
        "fetch-session-topics",
        FETCH,
        "a session's topic that goes, comes and has a new id",
        create("{t}", bind=ID),
        produce("{t}", Batch([b"one"])),
        session(0, 0, part(0), bind=OPEN),
        session("{session}", 1, part(0), topic="{t}-later", topic_id=SOME_ID),
        session("{session}", 2),
        ask(ApiKey.DELETE_TOPICS, v=5, topic_names=["{t}"], timeout_ms=5000),
        session("{session}", 3),
        session("{session}", 4),
        create("{t}", bind={"again": "topics.0.topic_id"}, until={"topics.0.error_code": 0}),
        produce("{t}", Batch([b"again"])),
        session("{session}", 5, part(0), topic_id="{again}"),
        session("{session}", 6),
        versions=(7, 17),
    ),
    script(
        "fetch-topic-ids",
        FETCH,
        "ids that are unknown, zero, of a deleted topic",
        create("{t}", bind=ID),
        produce("{t}", Batch([b"one"])),
        fetch(part(0), topic_id=SOME_ID),
        fetch(part(0), topic_id=NO_ID),
        fetch(part(5)),
        ask(
            FETCH,
            max_wait_ms=0,
            min_bytes=0,
            topics=[
                {"topic_id": "{id}", "partitions": [part(0)]},
                {"topic_id": SOME_ID, "partitions": [part(0)]},
                {"topic_id": "{id}", "partitions": [part(1)]},
            ],
        ),
        ask(ApiKey.DELETE_TOPICS, v=6, topics=[{"name": None, "topic_id": "{id}"}], timeout_ms=5000),
        fetch(part(0), until={"responses.0.partitions.0.error_code": 100}),
        create("{t}", until={"topics.0.error_code": 0}),
        fetch(part(0)),
        versions=(13, 17),
    ),
    script(
        "fetch-leader-epochs",
        FETCH,
        "KIP-320 and KIP-595: epochs that the leader does not have",
        create("{t}", bind=ID),
        produce("{t}", Batch([b"one"])),
        produce("{t}", Batch([b"two"])),
        *(fetch(part(0, current_leader_epoch=epoch)) for epoch in (0, 1, 99, -2)),
        *(fetch(part(0, 1, last_fetched_epoch=epoch)) for epoch in (0, 1, -2)),
        fetch(part(0, 2, last_fetched_epoch=0)),
        fetch(part(0, 9, last_fetched_epoch=0)),
        fetch(part(0, 9, last_fetched_epoch=3, current_leader_epoch=0)),
        versions=(9, 17),
    ),
    script(
        "fetch-isolation",
        FETCH,
        "read committed, read uncommitted, and a number that is neither",
        create("{t}", bind=ID),
        produce("{t}", Batch([b"one"])),
        fetch(part(0), isolation_level=1),
        fetch(part(0, 1), isolation_level=1),
        fetch(part(0, 2), isolation_level=1),
        fetch(part(0), part(3), isolation_level=0),
        versions=(4, 17),
    ),
    script(
        "fetch-replicas",
        FETCH,
        "a broker that is no replica, a debugging consumer, a rack",
        create("{t}", bind=ID),
        produce("{t}", Batch([b"one"])),
        fetch(part(0), replica_id=5, replica_state={"replica_id": 5}),
        fetch(part(0), replica_id=-2, replica_state={"replica_id": -2}),
        fetch(part(0), rack_id="a"),
    ),
]
