"""ShareFetch and ShareAcknowledge: sessions, limits, every kind of acknowledgement, right ones and wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compat_tests.differential.kafka_4.share_steps import (
    ACCEPT,
    ACKNOWLEDGE,
    EARLIEST,
    EMPTIED,
    FETCH,
    GAP,
    HOLDING,
    LOCK,
    OFFSETS,
    REJECT,
    RELEASE,
    RENEW,
    RESET,
    a_share_group,
    acknowledge,
    acks,
    assigned,
    at_once,
    beat,
    entry,
    fetch,
    offsets,
    place,
    sets,
)
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.kafka_4.topics import FILLED, cut_to, deleted, made
from compat_tests.differential.records import Batch
from compat_tests.differential.script import Close, Script, Step
from compat_tests.differential.steps import produce

LONG_MAX = 2**63 - 1
AFTER: Sequence[Step] = [at_once(2, place(0)), acknowledge(-1), offsets(("{t}", [0]))]
"""What is to be had then, and where the group is."""

WRONG: dict[str, Sequence[dict[str, object]]] = {
    "before-start": [acks(-1, 0, ACCEPT)],
    "after-end": [acks(1, 3, ACCEPT)],
    "far-away": [acks(100, 101, ACCEPT)],
    "very-far": [acks(LONG_MAX - 1, LONG_MAX, ACCEPT)],
    "upside-down": [acks(2, 1, ACCEPT)],
    "no-types": [acks(0, 1)],
    "too-few-types": [acks(0, 2, ACCEPT, ACCEPT)],
    "too-many-types": [acks(0, 1, ACCEPT, ACCEPT, ACCEPT)],
    "type-minus-one": [acks(0, 1, -1)],
    "type-5": [acks(0, 1, 5)],
    "one-of-types": [acks(0, 2, ACCEPT, 9, ACCEPT)],
    "renew-unasked": [acks(0, 0, RENEW)],
    "overlapping": [acks(0, 1, ACCEPT), acks(1, 2, ACCEPT)],
    "twice": [acks(0, 0, ACCEPT), acks(0, 0, ACCEPT)],
    "out-of-order": [acks(2, 2, ACCEPT), acks(0, 1, ACCEPT)],
    "good-then-bad": [acks(0, 0, ACCEPT), acks(1, 1, 7)],
    "good-then-unheld": [acks(0, 0, ACCEPT), acks(5, 5, ACCEPT)],
}
RIGHT: dict[str, Sequence[dict[str, object]]] = {
    "accept": [acks(0, 2, ACCEPT)],
    "release": [acks(0, 2, RELEASE)],
    "reject": [acks(0, 2, REJECT)],
    "gap": [acks(0, 2, GAP)],
    "each": [acks(0, 2, ACCEPT, RELEASE, REJECT)],
    "each-other": [acks(0, 2, REJECT, GAP, RELEASE)],
    "part": [acks(1, 1, ACCEPT)],
    "part-released": [acks(1, 2, RELEASE)],
    "several": [acks(0, 0, RELEASE), acks(2, 2, ACCEPT)],
    "nothing": [],
}
MEMBERS: dict[str, Sequence[Step]] = {
    "stranger": [at_once(0, place(0), member="b"), acknowledge(1, place(0, acks(0, 0, ACCEPT)), member="b")],
    "after-release": [
        acknowledge(1, place(0, acks(0, 2, RELEASE))),
        fetch(0, place(0), member="b"),
        acknowledge(2, place(0, acks(0, 0, ACCEPT))),
        acknowledge(1, place(0, acks(0, 2, ACCEPT)), member="b"),
    ],
    "twice": [acknowledge(1, place(0, acks(0, 0, ACCEPT))), acknowledge(2, place(0, acks(0, 0, ACCEPT)))],
    "close-by-fetch": [at_once(-1, place(0, acks(0, 0, ACCEPT))), fetch(0, place(0), member="b")],
    "close": [acknowledge(-1), fetch(0, place(0), member="b")],
    "reopen": [at_once(0, place(0)), at_once(1), acknowledge(2, place(0, acks(0, 2, ACCEPT)))],
    "no-such-partition": [acknowledge(1, place(7, acks(0, 0, ACCEPT)), place(0, acks(0, 0, ACCEPT)))],
    "unfetched-partition": [acknowledge(1, place(1, acks(0, 0, ACCEPT)))],
    "piggybacked": [
        at_once(1, place(0, acks(0, 0, ACCEPT))),
        at_once(2, place(0, acks(9, 9, ACCEPT))),
        at_once(3, place(0, acks(1, 1, RELEASE), acks(2, 2, REJECT))),
        at_once(4),
    ],
    "forgets": [
        at_once(1, forgotten_topics_data=[{"topic_id": "{id}", "partitions": [0, 7]}]),
        at_once(2),
        at_once(3, place(0, acks(0, 2, RELEASE))),
        at_once(4),
    ],
    "member-ids": [
        *(at_once(0, place(0), member=name) for name in ("", "x" * 36, "x" * 37, None, " ")),
        at_once(0, place(0), group_id=None),
        at_once(0, place(0), group_id=""),
        acknowledge(1, member=None),
        acknowledge(1, group_id=None),
    ],
    "epochs": [
        *(at_once(epoch) for epoch in (2, 5, -2, -(2**31), 2**31 - 1)),
        *(acknowledge(epoch) for epoch in (0, 2, -2, 2**31 - 1)),
        at_once(1),
        acknowledge(2),
        acknowledge(-1),
        at_once(-1),
    ],
    "renewals": [
        at_once(1, place(0, acks(0, 0, RENEW)), is_renew_ack=True, max_bytes=0, max_records=0),
        at_once(2, place(0, acks(0, 0, RENEW)), is_renew_ack=True),
        at_once(2, place(0, acks(0, 0, RENEW)), max_bytes=0, max_records=0),
        acknowledge(3, place(0, acks(0, 1, RENEW)), is_renew_ack=True),
        acknowledge(4, place(0, acks(0, 2, RENEW, ACCEPT, RELEASE)), is_renew_ack=True),
        acknowledge(5, place(0, acks(0, 0, RENEW))),
        acknowledge(6, place(0, acks(7, 7, RENEW)), is_renew_ack=True),
    ],
    "lost-connection": [
        fetch(0, place(0), member="b", on="other", max_wait_ms=0, min_bytes=0),
        acknowledge(1, place(0, acks(0, 0, RELEASE))),
        fetch(1, member="b", on="other"),
        Close("other"),
        fetch(2),
    ],
    "records-deleted": [
        cut_to(1),
        acknowledge(1, place(0, acks(0, 0, ACCEPT))),
        acknowledge(2, place(0, acks(0, 1, RELEASE))),
        fetch(3),
    ],
    "topic-deleted": [*deleted(), acknowledge(1, place(0, acks(0, 0, ACCEPT))), acknowledge(-1)],
}
LIMITS: dict[str, Sequence[Step]] = {
    f"{mode}-{records}-{size}": [
        fetch(0, place(0), max_records=records, batch_size=size, share_acquire_mode=strict),
        at_once(1, max_records=records, batch_size=size, share_acquire_mode=strict),
        acknowledge(2, place(0, acks(0, 0, RELEASE))),
        fetch(3, max_records=records, batch_size=size, share_acquire_mode=strict),
    ]
    for mode, strict in (("soft", 0), ("strict", 1))
    for records in (1, 2, 3, 500)
    for size in (1, 2, 500)
}
ODD_LIMITS: list[Step] = [
    at_once(0, place(0), max_records=0),
    at_once(1, place(0), max_records=-1),
    at_once(0, place(0), batch_size=0),
    at_once(1, place(0), max_bytes=0),
    at_once(2, place(0), max_bytes=1),
    at_once(0, place(0), max_bytes=-1),
]
ATTEMPTS: list[Step] = [
    step
    for number in range(5)
    for step in (fetch(2 * number, place(0)), acknowledge(2 * number + 1, place(0, acks(2, 2, RELEASE))))
]


def wide(name: str, version: int, *steps: Step | Sequence[Step]) -> Script:
    api = FETCH if name.startswith(("sg-limit", "sg-start")) else ACKNOWLEDGE
    return replace(next_to_4(name, api, name, *steps, versions=(version, version)), is_wide=True)


SCRIPTS = [
    *(wide(f"sg-wrong-{name}", 2, HOLDING, acknowledge(1, place(0, *said)), AFTER) for name, said in WRONG.items()),
    *(wide(f"sg-wrong-1-{name}", 1, HOLDING, at_once(1, place(0, *said)), AFTER) for name, said in WRONG.items()),
    *(wide(f"sg-right-{name}", 1, HOLDING, acknowledge(1, place(0, *said)), AFTER) for name, said in RIGHT.items()),
    *(wide(f"sg-right-2-{name}", 2, HOLDING, at_once(1, place(0, *said)), AFTER) for name, said in RIGHT.items()),
    *(wide(f"sg-member-{name}", 2, HOLDING, steps) for name, steps in MEMBERS.items()),
    *(wide(f"sg-limit-{name}", 2, a_share_group(), steps) for name, steps in LIMITS.items()),
    wide("sg-limit-odd", 2, HOLDING, acknowledge(-1), ODD_LIMITS),
    wide("sg-limit-of-attempts", 2, a_share_group(), ATTEMPTS, at_once(10), offsets(("{t}", [0]))),
    wide(
        "sg-limit-of-attempts-2",
        2,
        a_share_group(),
        sets(("share.delivery.count.limit", "2")),
        ATTEMPTS[:4],
        at_once(4),
        offsets(("{t}", [0])),
    ),
    wide(
        "sg-start-earliest",
        2,
        [*made(), *FILLED, cut_to(1), *EARLIEST, *assigned("a", "{t}")],
        fetch(0, place(0)),
        offsets(("{t}", [0])),
    ),
    wide(
        "sg-start-by-duration",
        2,
        [*made(), *FILLED, *sets((RESET, "by_duration:P30000D")), *assigned("a", "{t}")],
        fetch(0, place(0)),
        offsets(("{t}", [0])),
    ),
    wide(
        "sg-start-duration-zero",
        2,
        [*made(), *FILLED, *sets((RESET, "by_duration:PT0S")), *assigned("a", "{t}")],
        fetch(0, place(0), max_wait_ms=1000),
        offsets(("{t}", [0])),
        produce("{t}", Batch([b"four"]), v=11),
        fetch(1),
    ),
    wide(
        "sg-lock-expires",
        2,
        a_share_group(),
        sets((LOCK, "1000")),
        fetch(0, place(0)),
        fetch(1),
        acknowledge(2, place(0, acks(0, 2, ACCEPT))),
        offsets(("{t}", [0])),
    ),
    wide(
        "sg-lock-renewed-setting",
        2,
        a_share_group(),
        sets(("share.renew.acknowledge.enable", "false")),
        fetch(0, place(0)),
        acknowledge(1, place(0, acks(0, 0, RENEW)), is_renew_ack=True),
    ),
    replace(
        next_to_4(
            "sg-odd-offsets",
            OFFSETS,
            "partitions below 0, and none",
            a_share_group(),
            offsets(("{t}", [-1])),
            offsets(("{t}", [])),
            offsets(("{t}", [7])),
            versions=(0, 1),
        ),
        is_wide=True,
    ),
    wide(
        "sg-two-topics", 2, HOLDING, made("{t}-other", id_as="other"), at_once(1, topics=[entry("{other}", place(0))])
    ),
    wide("sg-emptied-while-held", 2, HOLDING, EMPTIED, acknowledge(1, place(0, acks(0, 0, ACCEPT))), beat("a", 2)),
]
