"""ConsumerGroupHeartbeat: what is refused before a group is asked, in which order, with which words."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.steps import HEARTBEAT, beat, next_to_4, topic, view
from compat_tests.differential.script import Ask
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

JOIN: dict[str, Any] = {
    "group": G,
    "member": "a",
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["{t}"],
    "topic_partitions": [],
}
OWNS = [{"topic_id": "{id}", "partitions": [0]}]
TEXTS: tuple[dict[str, Any], ...] = (
    {"member": ""},
    {"group": ""},
    {"instance_id": ""},
    {"rack_id": ""},
    {"server_assignor": "none"},
)
JOIN_MISTAKES = (
    *TEXTS[:4],
    {"rebalance_timeout_ms": -1},
    {"topic_partitions": None},
    {"topic_partitions": OWNS},
    {"subscribed_topic_names": None},
    TEXTS[4],
)
BLANKS = (" ", "\t\n ", "\0", "\u00a0", "\u2003")
"""Of white space, and not: Java's `trim` removes what is below U+0021 and nothing else."""


def with_mistakes(epoch: int, *mistakes: dict[str, Any]) -> Ask:
    fields = dict(JOIN) if epoch == 0 else {"group": G, "member": "a"}
    for mistake in mistakes:
        fields |= mistake
    return beat(epoch=epoch, **fields)


def pairs(epoch: int, mistakes: tuple[dict[str, Any], ...]) -> list[Ask]:
    """Each alone, then any two of them: the first in the order is the one that is reported."""
    both = [two for two in combinations(mistakes, 2) if not two[0].keys() & two[1].keys()]
    return [with_mistakes(epoch, *wrong) for wrong in [*((one,) for one in mistakes), *both]]


assert JOIN.keys() - {"group", "member"} <= set(ConsumerGroupHeartbeatRequest.__slots__)

SCRIPTS = [
    next_to_4(
        "cg-invalid-join",
        HEARTBEAT,
        "each field of a join wrong or missing, and any two of them; no group is made of any",
        topic(),
        # version 0 lets a join name no member: then it is the other mistake that is reported, or there is none
        pairs(0, JOIN_MISTAKES[1:]),
        view(),
    ),
    next_to_4(
        "cg-invalid-join-id",
        HEARTBEAT,
        "the same without a member id",
        topic(),
        [with_mistakes(0, {"member": ""}, mistake) for mistake in JOIN_MISTAKES[1:]],
        view(),
    ),
    next_to_4(
        "cg-invalid-stay",
        HEARTBEAT,
        "the same of a member that stays, and of one that leaves for good, for a while, and in another way",
        pairs(1, TEXTS),
        pairs(-1, TEXTS),
        pairs(-2, (*TEXTS, {"rack_id": "r"})),
        pairs(-2, TEXTS[:2]),
        with_mistakes(-2, {"instance_id": "i"}, {"server_assignor": "none"}),
        with_mistakes(-2, {"instance_id": "i"}),
        pairs(-3, TEXTS),
        with_mistakes(-3),
        with_mistakes(-2_147_483_648),
        view(),
    ),
    next_to_4(
        "cg-invalid-blank",
        HEARTBEAT,
        "texts of white space, and of what is none to Java",
        [
            with_mistakes(1, {name: blank})
            for name in ("member", "group", "instance_id", "rack_id", "server_assignor")
            for blank in BLANKS
        ],
        [with_mistakes(-2, {"instance_id": "i", "member": blank}) for blank in BLANKS],
    ),
    next_to_4(
        "cg-assignors",
        HEARTBEAT,
        "names of assignors that there are, and are not",
        topic(),
        [
            with_mistakes(0, {"server_assignor": name})
            for name in ("Uniform", "RANGE", "", " ", "sticky", "cooperative-sticky", "range ", "uniform", "range")
        ],
        view(),
    ),
]
