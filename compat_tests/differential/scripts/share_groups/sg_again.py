"""Sessions up to the limit and above, topics that are made again under a group, and records of transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compat_tests.differential.kafka_4.share_steps import (
    ACCEPT,
    ACKNOWLEDGE,
    EARLIEST,
    EMPTIED,
    FETCH,
    GAP,
    HEARTBEAT,
    HOLDING,
    OFFSETS,
    REJECT,
    RELEASE,
    acknowledge,
    acks,
    alter,
    assigned,
    at_once,
    beat,
    entry,
    fetch,
    forget,
    joins,
    leaves,
    offsets,
    place,
    sets,
    view,
)
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.kafka_4.topics import FILLED, deleted, grown, made
from compat_tests.differential.records import Batch
from compat_tests.differential.script import Ask, Close, Script, Step
from compat_tests.differential.steps import produce
from compat_tests.differential.transactional import added, batch, begin, done, end, write
from kpybroker.wire.api import ApiKey

SESSIONS_MAX = 12
"""`group.share.max.share.sessions` of the pair."""


def opens(number: int, **options: object) -> Ask:
    """Member and connection of their own: Kafka ends only the last session of a connection with it."""
    return at_once(0, place(0), member=f"m{number}", on=f"c{number}", **options)


FULL: list[Step] = [
    opens(0, until={"error_code": 0}, max_wait_ms=10_000, min_bytes=1),
    *(opens(number, until={"error_code": 0}) for number in range(1, SESSIONS_MAX)),
]
"""The first one holds what there is; its fetch waits until the state of the partition is read."""
CLOSED: list[Step] = [at_once(-1, member=f"m{number}", on=f"c{number}") for number in range(SESSIONS_MAX)]
OVER: Mapping[str, Sequence[Step]] = {
    "refused": [
        opens(12),
        opens(12, max_wait_ms=300, min_bytes=1, waits_ms=250),
        at_once(1, member="m12", on="c12"),
        acknowledge(1, place(0, acks(0, 0, ACCEPT)), member="m12", on="c12"),
        at_once(-1, member="m12", on="c12"),
    ],
    "acknowledging": [opens(12), at_once(0, place(0, acks(0, 0, ACCEPT)), member="m12", on="c12")],
    "again": [opens(3), at_once(1, member="m3", on="c3")],
    "again-elsewhere": [at_once(0, place(0), member="m3", on="c12"), at_once(1, member="m3", on="c12")],
    "other-group": [at_once(0, place(0), member="m3", group_id="{t}-other", on="c12")],
    "after-one-closes": [
        at_once(-1, member="m3", on="c3"),
        opens(12, until={"error_code": 0}),
        opens(3),
        at_once(-1, member="m12", on="c12"),
        opens(3),
    ],
    "after-one-is-lost": [
        Close("c3"),
        opens(12, until={"error_code": 0}),
        at_once(1, member="m3", on="c13"),
        at_once(-1, member="m12", on="c12"),
        opens(3),
    ],
    "after-one-acknowledges": [
        acknowledge(-1, member="m3", on="c3"),
        opens(12, until={"error_code": 0}),
        at_once(-1, member="m12", on="c12"),
        opens(3),
    ],
}

NEW_ID: list[Step] = [
    *made(partitions=1, id_as="new"),
    produce("{t}", Batch([b"new 1", b"new 2"]), v=11),
    joins("b", "{t}", until={"assignment.topic_partitions.0.topic_id": "{new}"}, compared=False),
]
HAD: Mapping[str, Sequence[Step]] = {
    "held": HOLDING,
    "accepted": [*HOLDING, acknowledge(1, place(0, acks(0, 2, ACCEPT)))],
    "rejected": [*HOLDING, acknowledge(1, place(0, acks(0, 0, REJECT), acks(2, 2, ACCEPT)))],
}
AGAIN: Mapping[str, Sequence[Step]] = {
    "old-id": [
        at_once(2),
        acknowledge(3, place(0, acks(0, 0, ACCEPT))),
        acknowledge(-1, place(0, acks(1, 1, RELEASE))),
        at_once(0, place(0), member="z"),
    ],
    "new-id": [
        fetch(0, place(0), topic_id="{new}", member="b"),
        acknowledge(1, place(0, acks(0, 0, ACCEPT)), topic_id="{new}", member="b"),
        offsets(("{t}", [0])),
        at_once(2, topics=[entry("{id}", place(0)), entry("{new}", place(0))], member="b"),
        acknowledge(3, place(0, acks(5, 5, ACCEPT)), topic_id="{new}", member="b"),
    ],
    "offsets": [offsets(("{t}", [0, 1])), offsets(), view()],
    "emptied": [
        leaves(),
        leaves("b"),
        view(until={"groups.0.group_state": "Empty"}),
        offsets(("{t}", [0, 1])),
        alter(("{t}", [(0, 1)])),
        offsets(("{t}", [0, 1])),
        forget("{t}"),
        offsets(),
    ],
}
"""What is asked about a topic that was deleted and made again; `id` is its first id, `new` the other one."""

COMMITTED = sets(("share.isolation.level", "read_committed"))
BEGUN: list[Step] = [
    *made(partitions=1),
    begin(),
    begin("{t}-2", "two"),
    *EARLIEST,
    *assigned("a", "{t}", partitions=1),
]


def writes(*values: bytes, seq: int = 0, name: str = "{t}-id", pid: str = "{pid}") -> list[Step]:
    """In the transaction that is open, or a new one."""
    return [added({"{t}": [0]}, name=name, pid=pid), write(batch(*values, seq=seq, pid=pid), name=name, v=11)]


def ended(is_committed: bool, name: str = "{t}-id", pid: str = "{pid}") -> list[Step]:
    state = "CompleteCommit" if is_committed else "CompleteAbort"
    return [end(is_committed, name=name, pid=pid, v=3), done(state, name=name)]


def plain(*values: bytes) -> Step:
    return produce("{t}", Batch(list(values)), v=11)


ABORTED = [*writes(b"a1", b"a2"), *ended(False)]
KEPT = [*writes(b"k1", b"k2"), *ended(True)]
TRANSACTIONS: Mapping[str, Sequence[Step]] = {
    "aborted": [*ABORTED, plain(b"after")],
    "aborted-only": ABORTED,
    "committed": [*KEPT, plain(b"after")],
    "open": [plain(b"before"), *writes(b"o1"), plain(b"after")],
    "aborted-between": [plain(b"before"), *ABORTED, plain(b"after")],
    "two": [
        *writes(b"o1"),
        *writes(b"t1", b"t2", name="{t}-2", pid="{two}"),
        plain(b"between"),
        write(batch(b"o2", seq=1), v=11),
        *ended(False),
        *ended(True, "{t}-2", "{two}"),
        plain(b"after"),
    ],
    "two-one-open": [
        *writes(b"t1", b"t2", name="{t}-2", pid="{two}"),
        *ended(False, "{t}-2", "{two}"),
        *writes(b"o1"),
        plain(b"after"),
    ],
}
READ: list[Step] = [
    fetch(0, place(0), max_wait_ms=500),
    at_once(1),
    acknowledge(2, place(0, acks(0, 0, ACCEPT))),
    acknowledge(3, place(0, acks(1, 2, GAP))),
    at_once(4, place(0, acks(1, 1, RELEASE))),
    at_once(5),
    acknowledge(-1),
    offsets(("{t}", [0])),
    at_once(0, place(0), member="b"),
    at_once(-1, member="b"),
]
"""Some of these acknowledge what is not held."""
LATER: Mapping[str, Sequence[Step]] = {
    "open-then-aborted": [
        *COMMITTED,
        *writes(b"o1", b"o2"),
        at_once(0, place(0)),
        plain(b"after"),
        at_once(1),
        offsets(("{t}", [0])),
        *ended(False),
        fetch(2),
        acknowledge(3, place(0, acks(3, 3, ACCEPT))),
        offsets(("{t}", [0])),
    ],
    "open-then-committed": [
        *COMMITTED,
        *writes(b"o1", b"o2"),
        at_once(0, place(0)),
        *ended(True),
        fetch(1),
        acknowledge(2, place(0, acks(0, 1, ACCEPT), acks(2, 2, GAP))),
        offsets(("{t}", [0])),
    ],
    "level-changed-while-held": [
        *writes(b"o1", b"o2"),
        fetch(0, place(0)),
        *COMMITTED,
        *ended(False),
        acknowledge(1, place(0, acks(0, 1, RELEASE))),
        at_once(2),
        plain(b"after"),
        at_once(3),
        offsets(("{t}", [0])),
    ],
    "level-changed-back": [
        *COMMITTED,
        *writes(b"o1", b"o2"),
        at_once(0, place(0)),
        *sets(("share.isolation.level", "read_uncommitted")),
        fetch(1),
        acknowledge(2, place(0, acks(0, 1, ACCEPT))),
        *ended(False),
        fetch(3),
        offsets(("{t}", [0])),
    ],
    "strict": [
        *COMMITTED,
        *KEPT,
        *writes(b"o1", b"o2", b"o3", seq=2),
        *ended(False),
        plain(b"1", b"2", b"3"),
        *(fetch(epoch, place(0), max_wait_ms=500, max_records=2, share_acquire_mode=1) for epoch in range(4)),
        offsets(("{t}", [0])),
    ],
    "small-batches": [
        *COMMITTED,
        *writes(b"o1", b"o2", b"o3"),
        *ended(False),
        plain(b"1", b"2"),
        *writes(b"k1", b"k2", seq=3),
        *ended(True),
        *(fetch(epoch, place(0), max_wait_ms=500, max_records=1, batch_size=1) for epoch in range(4)),
        offsets(("{t}", [0])),
    ],
    "reset-in-the-middle": [
        *COMMITTED,
        *ABORTED,
        *EMPTIED,
        alter(("{t}", [(0, 1)])),
        *assigned("a", "{t}", partitions=1),
        plain(b"after"),
        fetch(0, place(0)),
        offsets(("{t}", [0])),
    ],
}


def _wide(name: str, api: ApiKey, *steps: Step | Sequence[Step]) -> Script:
    newest = {FETCH: 2, ACKNOWLEDGE: 2, HEARTBEAT: 1, OFFSETS: 1}[api]
    return replace(next_to_4(name, api, name, *steps, versions=(newest, newest)), is_wide=True)


SCRIPTS = [
    *(
        _wide(f"sg-over-{name}", FETCH, made(), FILLED, EARLIEST, assigned("a", "{t}"), FULL, steps, CLOSED)
        for name, steps in OVER.items()
    ),
    *(
        _wide(f"sg-made-again-{name}-{had}", FETCH, reached, deleted(), NEW_ID, steps)
        for had, reached in HAD.items()
        for name, steps in AGAIN.items()
    ),
    _wide("sg-made-again-member", HEARTBEAT, HOLDING, deleted(), NEW_ID, beat("a", 1), beat("a", 9), view()),
    _wide(
        "sg-grown",
        FETCH,
        made(partitions=1),
        FILLED,
        EARLIEST,
        assigned("a", "{t}", partitions=1),
        fetch(0, place(0)),
        grown(2),
        assigned("a", "{t}"),
        fetch(1, place(1), max_wait_ms=1000),
        produce("{t}", Batch([b"grown"]), partition=1, v=11),
        fetch(2),
        offsets(),
    ),
    *(
        _wide(f"sg-{level}-{name}", FETCH, BEGUN, isolation, steps, READ)
        for level, isolation in (("committed", COMMITTED), ("uncommitted", []))
        for name, steps in TRANSACTIONS.items()
    ),
    *(_wide(f"sg-committed-{name}", FETCH, BEGUN, steps) for name, steps in LATER.items()),
]
