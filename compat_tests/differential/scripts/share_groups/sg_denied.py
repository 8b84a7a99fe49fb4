"""Rights in share groups: each request of a client that is denied one operation on the group, or on a topic of it.

Whatever no rule denies is allowed. Each script has a topic and a group of its own, so the rules stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.share_steps import (
    ACCEPT,
    ACKNOWLEDGE,
    ALTER,
    DESCRIBE,
    EMPTIED,
    FETCH,
    FORGET,
    HEARTBEAT,
    HOLDING,
    OFFSETS,
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
    view,
)
from compat_tests.differential.kafka_4.steps import delete, listed, next_to_4
from compat_tests.differential.kafka_4.topics import OTHER, made
from compat_tests.differential.script import Script, Step
from compat_tests.differential.scripts.later_versions.denied import (
    ALL,
    DENIED,
    EVERY_RIGHT,
    GROUP,
    GROUP_DENIED,
    READ,
    TOPIC,
    deny,
    rights_of_topic,
)
from compat_tests.differential.scripts.later_versions.denied import DESCRIBE as TO_DESCRIBE
from kpybroker.wire.api import ApiKey

TO_DELETE = 6
OPERATIONS = {"read": READ, "delete": TO_DELETE, "describe": TO_DESCRIBE, "all": ALL}
RIGHTS_OF_GROUP = sum(1 << bit for bit in (3, 6, 8, 10, 11))

BOTH = [entry("{id}", place(0)), entry("{other}", place(0))]
PROBES: Mapping[str, tuple[ApiKey, int, Sequence[Step]]] = {
    "heartbeat": (
        HEARTBEAT,
        1,
        [
            joins("b", OTHER),
            joins("c", "{t}"),
            joins("d", "{t}", OTHER, "{t}-none"),
            beat("a", 1, subscribed_topic_names=["{t}", OTHER]),
            beat("a", 9),
            leaves("b"),
        ],
    ),
    "describe": (
        DESCRIBE,
        1,
        [view(), view(G, "{t}-none"), view(include_authorized_operations=True)],
    ),
    "offsets": (
        OFFSETS,
        1,
        [
            offsets(("{t}", [0])),
            offsets(("{t}", [0]), (OTHER, [0]), ("{t}-none", [0])),
            offsets(),
            offsets(groups=(G, "{t}-none")),
        ],
    ),
    "fetch": (
        FETCH,
        2,
        [
            at_once(1),
            at_once(2, place(0, acks(0, 0, ACCEPT))),
            fetch(0, topics=BOTH, member="x", max_wait_ms=500),
            at_once(1, member="x"),
            at_once(-1, member="x"),
        ],
    ),
    "acknowledge": (
        ACKNOWLEDGE,
        2,
        [
            acknowledge(1, place(0, acks(0, 0, ACCEPT))),
            acknowledge(2, topics=[entry("{id}", place(0, acks(1, 1, ACCEPT))), entry("{other}", place(0))]),
            acknowledge(-1, place(0, acks(2, 2, ACCEPT))),
            acknowledge(1, place(0, acks(0, 0, ACCEPT)), member="x"),
        ],
    ),
    "list": (ApiKey.LIST_GROUPS, 5, [listed(types=["share"])]),
}
"""Requests about a group whose member holds records."""
WHEN_EMPTY: Mapping[str, tuple[ApiKey, int, Sequence[Step]]] = {
    "alter": (
        ALTER,
        0,
        [
            alter(("{t}", [(0, 1)])),
            alter((OTHER, [(0, 0)]), ("{t}", [(1, 0), (7, 0)]), ("{t}-none", [(0, 0)])),
            alter(),
        ],
    ),
    "forget": (FORGET, 0, [forget(OTHER, "{t}-none"), forget("{t}"), forget()]),
    "delete": (ApiKey.DELETE_GROUPS, 2, [delete("{t}-none"), delete(G, "{t}-none")]),
}
"""Requests about a group that has no members any more."""
REACHED: list[Step] = [*made(OTHER, id_as="other"), *HOLDING, *assigned("a", "{t}", OTHER)]


def denied_for_group(operation: int) -> list[Step]:
    """The rule, and a request that shows that the broker knows it."""
    left = RIGHTS_OF_GROUP - (1 << operation)
    until = {"groups.0.error_code": GROUP_DENIED}
    if operation not in (TO_DESCRIBE, ALL):
        until = {"groups.0.authorized_operations": left}
    return [deny((GROUP, G, operation)), view(include_authorized_operations=True, until=until)]


def denied_for_topic(operation: int) -> list[Step]:
    until = DENIED
    if operation not in (TO_DESCRIBE, ALL):
        until = {"topics.0.topic_authorized_operations": EVERY_RIGHT - (1 << operation)}
    return [deny((TOPIC, "{t}", operation)), rights_of_topic(until)]


def _script(name: str, of: tuple[ApiKey, int, Sequence[Step]], reached: Sequence[Step], denial: list[Step]) -> Script:
    api, version, probes = of
    made_of = next_to_4(
        f"sg-denied-{name}",
        api,
        "what is denied, and what that hides",
        reached,
        denial,
        probes,
        versions=(version,) * 2,
    )
    return replace(made_of, is_secured=True, is_wide=True)


SCRIPTS = [
    _script(f"{kind}-{operation}-{what}", of, reached, denied(OPERATIONS[operation]))
    for kind, denied in (("group", denied_for_group), ("topic", denied_for_topic))
    for operation in OPERATIONS
    for probes, reached in ((PROBES, REACHED), (WHEN_EMPTY, [*REACHED, *EMPTIED]))
    for what, of in probes.items()
]
