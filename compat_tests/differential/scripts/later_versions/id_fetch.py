"""Fetch 18: by the id that a client has of a topic, whatever became of it."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.kafka_4.topics import ASKED, NO_ID, SOME_ID, STATES, Probes, in_states
from compat_tests.differential.script import Ask, ask
from compat_tests.differential.scripts.fetch import AT_ONCE, FETCH, OPEN, WAITS, fetch, part, session

LONG_MAX = 2**63 - 1
V = (18, 18)
ID: dict[str, Any] = {"topic_id": ASKED}


def several(*topics: tuple[Any, int, int], **options: Any) -> Ask:
    """(topic id, partition, offset), each in an entry of its own."""
    entries = [{"topic_id": topic_id, "partitions": [part(index, offset)]} for topic_id, index, offset in topics]
    return ask(FETCH, **{"max_wait_ms": 0, "min_bytes": 0, **options}, topics=entries)


def as_follower(replica: int, *parts: dict[str, Any], **options: Any) -> Ask:
    return fetch(*parts, **ID, replica_state={"replica_id": replica, "replica_epoch": -1}, **options)


FETCH_PROBES: Probes = {
    "places": [
        fetch(part(0), **ID),
        fetch(part(0, 2), **ID),
        fetch(part(0, 9), **ID),
        fetch(part(1), **ID),
        fetch(part(7), **ID),
        fetch(part(-1), **ID),
        fetch(part(0), part(1), part(7), **ID),
        fetch(part(0), **ID, isolation_level=1),
        fetch(part(0, max_bytes=1), **ID, max_bytes=1),
        fetch(part(0), **ID, rack_id="a"),
    ],
    "twice-and-mixed": [
        fetch(part(0), part(0, 1), **ID),
        several((ASKED, 0, 0), (ASKED, 0, 1)),
        several((ASKED, 0, 0), (SOME_ID, 0, 0), ("{other}", 0, 0), (ASKED, 1, 0)),
        several(("{other}", 0, 0), (SOME_ID, 0, 0), (ASKED, 7, 0), (ASKED, 0, 0)),
        several((ASKED, 0, 0), (ASKED, 0, 9), max_bytes=60),
    ],
    "epochs": [
        *(fetch(part(0, current_leader_epoch=epoch), **ID) for epoch in (-2, 0, 1, 99)),
        *(fetch(part(0, 1, last_fetched_epoch=epoch), **ID) for epoch in (-2, 0, 1)),
        fetch(part(0, 9, last_fetched_epoch=0, current_leader_epoch=0), **ID),
    ],
    "sessions": [
        session(0, 0, part(0), part(1), **ID, bind=OPEN),
        session("{session}", 1),
        session("{session}", 2, part(0, 1), **ID),
        several(("{other}", 0, 0), (ASKED, 7, 0), session_id="{session}", session_epoch=3),
        session("{session}", 4),
        session("{session}", 5, forgotten_topics_data=[{"topic_id": ASKED, "partitions": [0, 7]}]),
        session("{session}", 6),
        session("{session}", 6),
        session("{session}", -1),
    ],
    "high-watermarks": [
        *(fetch(part(0, high_watermark=mark), **ID) for mark in (-1, 0, 1, 3, 99, LONG_MAX)),
        fetch(part(0, 3, high_watermark=3), **ID, max_wait_ms=1),
        as_follower(5, part(0, high_watermark=0)),
        as_follower(5, part(0, replica_directory_id=SOME_ID)),
        as_follower(-2, part(0, high_watermark=0)),
    ],
}
"""A follower of KRaft sends a high watermark (KIP-1166); of a consumer it means nothing."""

WITH_RECORDS = ("filled", "compacted", "grown", "renewed")
GONE = ("deleted", "again", "unknown")

SCRIPTS = [
    *in_states("id-fetch", FETCH, FETCH_PROBES, states=[state for state in STATES if state != "zero"], versions=V),
    *in_states(
        "id-fetch",
        FETCH,
        {"waits-not": [fetch(part(0), **ID, min_bytes=1, **AT_ONCE)]},
        states=("cut", *WITH_RECORDS, *GONE),
        versions=V,
    ),
    *in_states(
        "id-fetch",
        FETCH,
        {
            "waits": [
                several((ASKED, 7, 0), (ASKED, 0, 0), min_bytes=1, **AT_ONCE),
                several((ASKED, 0, 9), ("{other}", 0, 0), min_bytes=1, **AT_ONCE),
                fetch(part(0), **ID, min_bytes=100_000, **WAITS),
                fetch(part(1), **ID, min_bytes=1, **WAITS),
            ]
        },
        states=WITH_RECORDS,
        versions=V,
    ),
    *in_states(
        "id-fetch",
        FETCH,
        {
            "waits-for-others": [
                several((ASKED, 0, 0), ("{other}", 0, 0), min_bytes=1, **WAITS),
                session(0, 0, part(0), **ID, min_bytes=1, bind=OPEN, **WAITS),
                session("{session}", 1, min_bytes=1, **WAITS),
            ]
        },
        states=GONE,
        versions=V,
    ),
    *in_states(
        "id-fetch",
        FETCH,
        {
            "zeros": [
                fetch(part(0), topic_id=NO_ID),
                several((NO_ID, 0, 0), (ASKED, 0, 0)),
                several((ASKED, 0, 0), (NO_ID, 0, 0)),
            ]
        },
        states=("filled", "deleted"),
        versions=V,
    ),
]
