"""What each API says of a share group in each of its states, and of groups of other kinds: every state times every
request. The requests of one script do not lead to another state, but for the last of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compat_tests.differential import grouped
from compat_tests.differential.grouped import G, commit, committed, drop, everything, leave, part
from compat_tests.differential.kafka_4 import steps
from compat_tests.differential.kafka_4.share_steps import (
    ACCEPT,
    ACKNOWLEDGE,
    ALTER,
    DELETED,
    DESCRIBE,
    EARLIEST,
    EMPTIED,
    FETCH,
    FORGET,
    HEARTBEAT,
    HOLDING,
    OFFSETS,
    REJECT,
    RELEASE,
    a_share_group,
    acknowledge,
    acks,
    alter,
    assigned,
    at_once,
    beat,
    fetch,
    forget,
    joins,
    leaves,
    offsets,
    place,
    view,
)
from compat_tests.differential.kafka_4.steps import delete, listed, next_to_4
from compat_tests.differential.kafka_4.topics import FILLED, SOME_ID, deleted, made
from compat_tests.differential.script import Script, Step
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, offset
from kpybroker.wire.api import ApiKey

STATES: Mapping[str, Sequence[Step]] = {
    "none": [*made(), *FILLED],
    "stable": a_share_group(),
    "two": [*a_share_group(partitions=1), *assigned("b", "{t}", partitions=1)],
    "holding": HOLDING,
    "accepted": [*HOLDING, acknowledge(1, place(0, acks(0, 1, ACCEPT)))],
    "released": [*HOLDING, acknowledge(-1, place(0, acks(0, 2, RELEASE)))],
    "empty": [*HOLDING, acknowledge(-1, place(0, acks(0, 0, ACCEPT))), *EMPTIED],
    "altered": [*a_share_group(), *EMPTIED, alter(("{t}", [(0, 2), (1, 0)]))],
    "forgotten": [*a_share_group(), *EMPTIED, forget("{t}")],
    "deleted": [*a_share_group(), *DELETED],
    "again": [*a_share_group(), *DELETED, *EARLIEST, *assigned("a", "{t}")],
    "no-topic": [*made(), *FILLED, joins("a", "{t}-none")],
    "topic-deleted": [*a_share_group(), *deleted(), beat("a", 3, until={"member_epoch": 4})],
    "simple": [*made(), *FILLED, commit(part(0, 5), v=9)],
    "classic": [*made(), *FILLED, *grouped.joined("m")],
    "consumer": [*steps.topic(partitions=2), *FILLED, steps.joins("a", "{t}", v=1)],
    "consumer-empty": [*steps.topic(partitions=2), *FILLED, steps.joins("a", "{t}", v=1), steps.leaves(v=1)],
}
"""How each is reached. Records are at the offsets 0 to 2. Of two partitions chance says which member has which."""

OWN, OTHER_TYPES = ["share"], ["classic", "Consumer"]

PROBES: Mapping[str, tuple[ApiKey, int, Sequence[Step]]] = {
    "heartbeat": (
        HEARTBEAT,
        1,
        [
            *(beat(member, epoch) for member in ("a", "who") for epoch in (-2, 1, 9)),
            beat("who", -1),
        ],
    ),
    "join": (
        HEARTBEAT,
        1,
        [joins("new", "{t}-none"), joins("new"), beat("new", 0), view(), leaves("new"), view()],
    ),
    "leave": (HEARTBEAT, 1, [leaves(), leaves(), view(), leaves("b"), view()]),
    "describe": (DESCRIBE, 1, [view(), view(G, "{t}-none", "", G), view(include_authorized_operations=True)]),
    "offsets": (
        OFFSETS,
        1,
        [offsets(("{t}", [0, 1])), offsets(), offsets(("{t}", [0]), ("{t}-none", [0])), offsets(("{t}-none", []))],
    ),
    "offsets-0": (OFFSETS, 0, [offsets(("{t}", [0, 1]), v=0), offsets(v=0), offsets(groups=(G, "{t}-none", ""), v=0)]),
    "alter": (
        ALTER,
        0,
        [
            alter(("{t}", [(7, 0)]), ("{t}-none", [(0, 0)])),
            alter(("{t}", [(0, 1)])),
            offsets(("{t}", [0])),
            alter(("{t}", [(0, 99), (1, 0)])),
            alter(("{t}", [(0, -1)])),
            offsets(("{t}", [0, 1])),
            alter(),
            view(),
        ],
    ),
    "forget": (
        FORGET,
        0,
        [forget("{t}-none"), forget(), forget("{t}", "{t}-none"), offsets(("{t}", [0])), offsets(), forget("{t}")],
    ),
    "list": (
        ApiKey.LIST_GROUPS,
        5,
        [listed(types=OWN), listed(types=OTHER_TYPES), listed(["Stable", "empty"], ["Share"]), listed(["Dead"])],
    ),
    "delete": (ApiKey.DELETE_GROUPS, 2, [delete(G, "{t}-none"), delete(), view(), listed(v=5), offsets()]),
    "describe-others": (
        ApiKey.DESCRIBE_GROUPS,
        6,
        [grouped.describe(), grouped.describe(v=5), steps.view(), steps.view(v=0)],
    ),
    "classic-member": (
        ApiKey.JOIN_GROUP,
        9,
        [
            grouped.join("who"),
            grouped.join("a"),
            grouped.sync("a", 1),
            grouped.beat("a", 1),
            leave(("a", None), v=5),
            leave(("who", None), v=5),
        ],
    ),
    "consumer-member": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        [steps.beat("a", 1, v=1), steps.beat("a", -1, v=1), steps.beat("who", 9, v=1), view()],
    ),
    "commit": (
        ApiKey.OFFSET_COMMIT,
        9,
        [
            commit(part(0, 1), v=9),
            commit(part(0, 1), member="a", generation=2, v=9),
            commit(part(0, 1), member="who", generation=1, v=9),
            committed(0, v=9),
            everything(v=9),
        ],
    ),
    "txn-commit": (
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        [
            begin(),
            add_offsets(v=3),
            commit_offsets(offset(0, 1), v=3),
            commit_offsets(offset(0, 1), member_id="a", v=3),
        ],
    ),
    "delete-offsets": (ApiKey.OFFSET_DELETE, 0, [drop("{t}-none", 0), drop("{t}", 0)]),
    "fetch": (
        FETCH,
        2,
        [
            at_once(5, place(0)),
            at_once(-1),
            at_once(-2),
            at_once(0, place(7), member="x"),
            at_once(1, member="x"),
            at_once(1, member="x"),
            at_once(-1, member="x"),
            at_once(0, member="x"),
            at_once(1, place(0), member="x", topic_id=SOME_ID),
            at_once(2, member="x"),
            at_once(0, place(0, acks(0, 0, ACCEPT)), member="x"),
            at_once(-1, member="x"),
        ],
    ),
    "acquire": (
        FETCH,
        1,
        [
            fetch(0, place(0), member="x", max_wait_ms=1000),
            at_once(1, member="x"),
            at_once(2, place(0, acks(0, 0, ACCEPT), acks(1, 2, RELEASE, REJECT)), member="x"),
            at_once(3, member="x"),
            offsets(("{t}", [0, 1])),
            at_once(-1, member="x"),
            fetch(0, place(0), member="y", max_wait_ms=1000),  # waits for what the end of the session releases
            offsets(("{t}", [0, 1])),
        ],
    ),
    "acknowledge": (
        ACKNOWLEDGE,
        2,
        [
            acknowledge(0, place(0, acks(0, 0, ACCEPT))),
            acknowledge(1, place(0, acks(0, 0, ACCEPT)), member="x"),
            acknowledge(-1, place(0, acks(0, 0, ACCEPT)), member="x"),
            acknowledge(9, place(0, acks(0, 0, ACCEPT))),
            acknowledge(-1, place(0, acks(0, 5, ACCEPT))),
            acknowledge(-1, member=""),
        ],
    ),
}
"""API, version and requests by what they are about."""

QUICK = frozenset(
    (
        *("heartbeat-stable", "join-none", "describe-two", "offsets-accepted", "alter-empty", "forget-altered"),
        *(
            "delete-empty",
            "list-consumer",
            "classic-member-stable",
            "commit-empty",
            "fetch-holding",
            "acquire-released",
        ),
    )
)
"""Those that are played always: each request once, in different states."""


def _scripts() -> list[Script]:
    scripts = []
    for what, (api, version, probes) in PROBES.items():
        for state, reached in STATES.items():
            name = f"{what}-{state}"
            about = f"{what}, of a group that is {state}"
            made_of = next_to_4(f"sg-{name}", api, about, reached, probes, versions=(version, version))
            scripts.append(replace(made_of, is_wide=name not in QUICK))
    return scripts


SCRIPTS = _scripts()
assert {script.name.removeprefix("sg-") for script in SCRIPTS} >= QUICK
