"""Static members of consumer groups: replaced, fenced, gone for a while, gone for good."""

from __future__ import annotations

from compat_tests.differential.grouped import G, commit, leave, part
from compat_tests.differential.kafka_4.steps import (
    HEARTBEAT,
    beat,
    full,
    joins,
    leaves,
    next_to_4,
    seen,
    topic,
    view,
)
from compat_tests.differential.script import Step

ONE = {"instance_id": "one"}
TWO = {"instance_id": "two"}


def two_static() -> list[Step]:
    """a is one, with 0 and 1; b is two, with 2 and 3; both in epoch 3."""
    return [
        topic(),
        joins("a", "{t}", **ONE),
        joins("b", "{t}", **TWO),
        beat("a", 2, {"id": [0, 1, 2, 3]}, **ONE),
        beat("a", 2, {"id": [0, 1]}, **ONE),
        beat("b", 3, **TWO),
        seen("Stable"),
    ]


def flat(*steps: Step | list[Step]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        found.extend(flat(*step)) if isinstance(step, list) else found.append(step)
    return found


SCRIPTS = [
    next_to_4(
        "cg-static-joins",
        HEARTBEAT,
        "an instance joins, is there already, is away, comes back under another id and under its own",
        topic(),
        joins("a", "{t}", **ONE),
        joins("a", "{t}", **ONE),
        joins("b", "{t}", **ONE),
        beat("a", 2, **ONE),
        beat("a", 2),
        beat("b", 2, **ONE),
        leaves("a", -2, **ONE),
        view(),
        beat("a", 2, **ONE),
        beat("a", -2, **ONE),
        joins("b", "{t}", **ONE),
        view(),
        [beat("a", epoch, **ONE) for epoch in (0, 1, 2, -1, -2)],
        joins("a", "{t}", **ONE),
        leaves("b", -2, **ONE),
        joins("b", "{t}", **ONE),
        leaves("b", -2, **ONE),
        joins("c", "{t}-none", "{t}", **ONE),
        view(),
        beat("c", 3, {"id": [0, 1, 2, 3]}, **ONE),
        leaves("c", -1, **ONE),
        view(),
        joins("b", "{t}", **ONE),
    ),
    next_to_4(
        "cg-static-two",
        HEARTBEAT,
        "two instances; one goes for a while, and comes back while the other rebalances",
        flat(two_static()),
        leaves("b", -2, **TWO),
        seen("Reconciling"),
        beat("a", 3, **ONE),
        joins("c", "{t}", **TWO),
        view(),
        leaves("c", -2, **TWO),
        beat("a", 3, subscribed_topic_names=[], **ONE),
        beat("a", 3, {}, **ONE),
        joins("d", "{t}", **TWO),
        view(),
        beat("b", 3, **TWO),
        beat("c", 3, **TWO),
        full("d", 4, "{t}", owned={"id": [0, 1, 2, 3]}, **TWO),
        leaves("a", -1, **ONE),
        leaves("a", -2, **ONE),
        leaves("d", -2, **TWO),
        view(),
    ),
    next_to_4(
        "cg-static-mistakes",
        HEARTBEAT,
        "instances that there are not, or that are another's, in each epoch; an instance id for a dynamic member",
        flat(two_static()),
        [beat("a", epoch, **TWO) for epoch in (-2, -1, 0, 1, 2, 3, 4)],
        [beat("who", epoch, **ONE) for epoch in (-2, -1, 0, 1, 3, 4)],
        [beat("a", epoch, instance_id="none") for epoch in (-2, -1, 1, 3)],
        joins("who", "{t}", **ONE),
        joins("c", "{t}"),
        [beat("c", epoch, **ONE) for epoch in (-2, -1, 4)],
        beat("c", 4, instance_id="three"),
        joins("c", "{t}", instance_id="three"),
        beat("c", 4, instance_id="three"),
        beat("c", 4),
        leaves("c", -2),
        leaves("c", -2, instance_id="three"),
        view(),
    ),
    next_to_4(
        "cg-static-away",
        HEARTBEAT,
        "what the coordinator lets a member do that is away, and others while it is",
        flat(two_static()),
        leaves("b", -2, **TWO),
        [beat("b", epoch, **TWO) for epoch in (-2, 1, 2, 3, 4)],
        [beat("b", epoch) for epoch in (1, 3)],
        [commit(part(0, 1), member="b", generation=epoch, v=9) for epoch in (-2, -1, 0, 2, 3)],
        joins("c", "{t}"),
        beat("a", 3, {"id": [0, 1]}, **ONE),
        beat("a", 3, {"id": [0]}, **ONE),
        view(),
        leaves("b", -1, **TWO),
        beat("a", 4, {"id": [0]}, **ONE),
        beat("c", 4),
        view(),
    ),
    next_to_4(
        "cg-static-same-id",
        HEARTBEAT,
        "an instance comes back under the id that it had, changed or not",
        flat(two_static()),
        leaves("b", -2, **TWO),
        joins("b", "{t}", **TWO),
        beat("b", 3, **TWO),
        leaves("b", -2, **TWO),
        joins("b", "{t}-none", **TWO),
        beat("b", 4, {}, **TWO),
        view(),
        leaves("b", -2, **TWO),
        joins("b", "{t}", server_assignor="range", rack_id="r", timeout=1_000, **TWO),
        beat("b", 5, **TWO),
        view(),
    ),
    next_to_4(
        "cg-removed",
        HEARTBEAT,
        "an administrator removes members with LeaveGroup, by id, by instance, several at once, and such that are not",
        flat(two_static()),
        joins("c", "{t}"),
        leave(("who", None), v=5),
        leave(("", "one"), v=5),
        beat("a", 3, **ONE),
        leave(("a", "two"), ("", "none"), ("c", "two"), v=5),
        leave(("b", "two"), ("b", "two"), ("c", None), ("", None), v=5),
        beat("b", 3, **TWO),
        view(),
        leave(("c", None), v=5),
        leave(("c", None), v=0),
        leave(("c", None), v=5, group=G + "-none"),
    ),
]
