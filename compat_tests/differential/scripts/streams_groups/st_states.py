"""What each API says of a streams group in each of its states, and of groups of other kinds: every state times every
request. The requests of one script do not lead to another state, but for the last of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compat_tests.differential import grouped
from compat_tests.differential.grouped import G, commit, committed, drop, everything, leave, part
from compat_tests.differential.kafka_4 import share_steps, steps
from compat_tests.differential.kafka_4.steps import delete, listed, next_to_4
from compat_tests.differential.kafka_4.streams_steps import (
    COUNTING,
    DELETED,
    DESCRIBE,
    EMPTIED,
    HEARTBEAT,
    INTERNAL,
    MISSING,
    PLAIN,
    REVOKING,
    SHARED,
    STANDING_BY,
    STATEFUL,
    a_streams_group,
    beat,
    joins,
    known,
    leaves,
    runs,
    settled,
    tasks,
    topology,
    view,
)
from compat_tests.differential.kafka_4.streams_steps import part as subtopology
from compat_tests.differential.kafka_4.topics import deleted, grown
from compat_tests.differential.script import Script, Step
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, offset
from kpybroker.wire.api import ApiKey

STATES: Mapping[str, Sequence[Step]] = {
    "none": known(),
    "stable": a_streams_group(),
    "revoking": REVOKING,
    "shared": SHARED,
    "standing-by": STANDING_BY,
    "counting": a_streams_group(COUNTING, made=INTERNAL),
    "stateful": settled(STATEFUL),
    "not-ready": [*known(), joins("a", MISSING)],
    "endpoints": [*known(), joins("a", user_endpoint={"host": "h", "port": 80})],
    "shut-down": [*SHARED, beat("a", 3, shutdown_application=True)],
    "committed": [*a_streams_group(), commit(part(0, 5), member="a", generation=2, v=9)],
    "empty": [*a_streams_group(), commit(part(0, 5), member="a", generation=2, v=9), *EMPTIED],
    "deleted": [*a_streams_group(), *DELETED],
    "again": [*a_streams_group(), *DELETED, joins("a")],
    "grown": [*a_streams_group(), *grown(3), beat("a", 2, until={"member_epoch": 3})],
    "topic-deleted": [*a_streams_group(), *deleted(), beat("a", 2, until={"status.0.status_code": 1})],
    "simple": [*known(), commit(part(0, 5), v=9)],
    "classic": [*known(), *grouped.joined("m")],
    "classic-empty": [*known(), *grouped.joined("m"), leave(("{m}", None), v=5), grouped.state("Empty")],
    "consumer": [*known(), steps.joins("a", "{t}", v=1)],
    "consumer-empty": [*known(), steps.joins("a", "{t}", v=1), steps.leaves(v=1)],
    "share": [*known(), *share_steps.assigned("a", "{t}")],
}
"""How each is reached."""

OWN, OTHER_TYPES = ["streams"], ["classic", "Consumer", "share"]
OTHER = topology(subtopology("0", "{t}"), subtopology("1", "{t}"))

PROBES: Mapping[str, tuple[ApiKey, int, Sequence[Step]]] = {
    "heartbeat": (
        HEARTBEAT,
        0,
        [*(beat(member, epoch) for member in ("a", "who") for epoch in (-2, 1, 9)), beat("who", -1)],
    ),
    "stays": (HEARTBEAT, 0, [*(beat("a", epoch) for epoch in (2, 3)), beat("a", 3, endpoint_information_epoch=1)]),
    "join": (HEARTBEAT, 0, [joins("new"), joins("new"), view(), leaves("new"), view()]),
    "join-odd": (
        HEARTBEAT,
        0,
        [joins("new", None), joins("new", OTHER), joins("new", {**PLAIN, "epoch": 1}), joins("new", MISSING), view()],
    ),
    "join-again": (HEARTBEAT, 0, [joins("a"), joins("a", process_id="other"), joins("a", rack_id="r"), view()]),
    "leave": (HEARTBEAT, 0, [leaves(), leaves(), view(), leaves("b"), view()]),
    "tasks": (
        HEARTBEAT,
        0,
        [
            runs("a", 2, tasks(s0=[0])),
            runs("a", 2, tasks(s0=[7])),
            runs("a", 2, tasks(s9=[0])),
            runs("a", 2, [], tasks(s0=[0])),
            runs("a", 3),
            runs("b", 3, tasks(s0=[1])),
            view(),
        ],
    ),
    "shut-down": (
        HEARTBEAT,
        0,
        [beat("who", 2, shutdown_application=True), leaves(shutdown_application=True), beat("b", 3), joins("c")],
    ),
    "describe": (DESCRIBE, 0, [view(), view(G, "{t}-none", "", G), view(include_authorized_operations=True)]),
    "list": (
        ApiKey.LIST_GROUPS,
        5,
        [
            *(listed(types=types) for types in (OWN, OTHER_TYPES, ["Streams"], ["what"])),
            listed(["Stable", "notready"], OWN),
            listed(["Reconciling", "Empty"]),
            listed(["NotReady"]),
        ],
    ),
    "delete": (ApiKey.DELETE_GROUPS, 2, [delete(G, "{t}-none"), delete(), view(), listed(v=5), committed(0, v=9)]),
    "describe-others": (
        ApiKey.DESCRIBE_GROUPS,
        6,
        [grouped.describe(), grouped.describe(v=5), steps.view(), steps.view(v=0), share_steps.view()],
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
    "consumer-joins": (ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, [steps.joins("new", "{t}", v=1), view()]),
    "share-member": (
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        [share_steps.beat("a", 1), share_steps.leaves(), share_steps.joins("new", "{t}"), view()],
    ),
    "commit": (
        ApiKey.OFFSET_COMMIT,
        9,
        [
            commit(part(0, 1), v=9),
            commit(part(0, 2), v=9),
            *(commit(part(0, 3), member="a", generation=epoch, v=9) for epoch in (1, 2, 3)),
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
            *(commit_offsets(offset(0, 1), member_id="a", generation_id=epoch, v=3) for epoch in (1, 2, 3)),
        ],
    ),
    "delete-offsets": (ApiKey.OFFSET_DELETE, 0, [drop("{t}-none", 0), drop("{t}", 0)]),
}
"""API, version and requests by what they are about."""

QUICK = frozenset(
    (
        *("heartbeat-stable", "stays-shared", "join-none", "leave-shared", "tasks-revoking", "describe-counting"),
        *("list-not-ready", "delete-empty", "describe-others-stable", "classic-member-empty", "commit-committed"),
        *("shut-down-shared", "consumer-joins-empty", "join-classic-empty"),
    )
)
"""Those that are played always: each request once, in different states."""


def _scripts() -> list[Script]:
    scripts = []
    for what, (api, version, probes) in PROBES.items():
        for state, reached in STATES.items():
            name = f"{what}-{state}"
            about = f"{what}, of a group that is {state}"
            made_of = next_to_4(f"st-{name}", api, about, reached, probes, versions=(version, version))
            scripts.append(replace(made_of, is_wide=name not in QUICK))
    return scripts


SCRIPTS = _scripts()
assert {script.name.removeprefix("st-") for script in SCRIPTS} >= QUICK
