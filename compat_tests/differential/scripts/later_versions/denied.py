"""Authorization: responses to a client that may not read or describe, in the versions with topic ids and in the others
that Kafka 3.9 does not have. Whatever no rule denies is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compat_tests.differential.grouped import G, part
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.kafka_4.topics import COMMITTED, FILLED, OTHER, SOME_ID, made
from compat_tests.differential.script import Ask, Script, Step, ask
from compat_tests.differential.scripts import fetch as fetching
from compat_tests.differential.scripts.later_versions import id_fetch, id_offsets, later_offsets, later_topics
from compat_tests.differential.transactional import LIST, begin
from kpybroker.wire.api import ApiKey

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
ALL, READ, DESCRIBE, DESCRIBE_CONFIGS = 2, 3, 8, 10
CLUSTER_NAME = "kafka-cluster"
DENY, ALLOW, LITERAL = 2, 3, 3
TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED = 29, 30, 31
Denial = tuple[int, str, int]
"""The kind of a resource, its name and an operation."""


def deny(*denials: Denial) -> Ask:
    """Everything else is allowed about these resources: where there is a rule, what it does not name is denied."""
    creations = [
        {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": LITERAL,
            "principal": "User:*",
            "host": "*",
            "operation": operation,
            "permission_type": permission,
        }
        for kind, name, denied in denials
        for operation, permission in ((ALL, ALLOW), (denied, DENY))
    ]
    return ask(ApiKey.CREATE_ACLS, creations=creations)


def rights_of_topic(until: Any) -> Ask:
    return ask(
        ApiKey.METADATA,
        v=12,
        topics=[{"name": "{t}", "topic_id": bytes(16)}],
        include_topic_authorized_operations=True,
        until=until,
        compared=False,
    )


EVERY_RIGHT = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
WITHOUT_RIGHT = {"topics.0.topic_authorized_operations": EVERY_RIGHT - (1 << READ)}
DENIED = {"topics.0.error_code": TOPIC_DENIED}

DENIALS: dict[str, Sequence[Step]] = {
    "read": [deny((TOPIC, "{t}", READ)), rights_of_topic(WITHOUT_RIGHT)],
    "describe": [deny((TOPIC, "{t}", DESCRIBE)), rights_of_topic(DENIED)],
    "all": [deny((TOPIC, "{t}", ALL)), rights_of_topic(DENIED)],
}
"""Of the topic; and a request that shows that every part of the broker knows it."""

PROBES: dict[ApiKey, tuple[int, Sequence[Step]]] = {
    ApiKey.FETCH: (
        18,
        [
            id_fetch.several(("{id}", 0, 0)),
            id_fetch.several(("{id}", 0, 0), ("{other}", 0, 0), (SOME_ID, 0, 0), ("{id}", 7, 0)),
            fetching.session(0, 0, fetching.part(0), bind={"session": "session_id"}),
            fetching.session("{session}", 1),
        ],
    ),
    ApiKey.OFFSET_COMMIT: (
        10,
        [
            id_offsets.commit(("{id}", [part(0, 5)])),
            id_offsets.commit(("{id}", [part(0, 6), part(7, 1)]), ("{other}", [part(0, 7)]), (SOME_ID, [part(0, 1)])),
        ],
    ),
    ApiKey.OFFSET_FETCH: (
        10,
        [
            id_offsets.fetch(id_offsets.asked(("{id}", [0, 7]))),
            id_offsets.fetch(id_offsets.asked(("{id}", [0]), ("{other}", [0]), (SOME_ID, [0]))),
            id_offsets.fetch(id_offsets.EVERYTHING),
        ],
    ),
    ApiKey.LIST_OFFSETS: (
        11,
        [
            later_offsets.several(("{t}", [(0, -1), (0, -6)]), (OTHER, [(0, -6)])),
            later_offsets.several(("{t}", [(7, -1)])),
        ],
    ),
    ApiKey.METADATA: (
        13,
        [
            later_topics.metadata((None, "{id}")),
            later_topics.metadata((None, "{id}"), (None, "{other}"), (None, SOME_ID)),
            later_topics.metadata(("{t}", bytes(16)), (OTHER, bytes(16))),
            ask(ApiKey.METADATA, topics=None, only={"topics": "name={t}"}),
        ],
    ),
}

OTHERS: dict[str, tuple[ApiKey, int, Denial, dict[str, Any], Sequence[Ask]]] = {
    "commit-group": (
        ApiKey.OFFSET_COMMIT,
        10,
        (GROUP, G, READ),
        {"topics.0.partitions.0.error_code": GROUP_DENIED},
        [id_offsets.commit(("{id}", [part(0, 5)]), (SOME_ID, [part(1, 5)]))],
    ),
    "committed-group": (
        ApiKey.OFFSET_FETCH,
        10,
        (GROUP, G, DESCRIBE),
        {"groups.0.error_code": GROUP_DENIED},
        [
            id_offsets.fetch(id_offsets.asked(("{id}", [0]), (SOME_ID, [1]))),
            id_offsets.fetch(id_offsets.EVERYTHING, id_offsets.asked(("{id}", [0]), group="{t}-none")),
        ],
    ),
    "transactions": (
        LIST,
        2,
        (TRANSACTIONAL_ID, "{t}-a", DESCRIBE),
        {"transaction_states": [[]]},
        [ask(LIST, transactional_id_pattern="{t}-[ab]", state_filters=[], producer_id_filters=[])],
    ),
}
ON_THE_CLUSTER: dict[str, tuple[int, int, Ask]] = {
    "log-dirs": (5, DESCRIBE, later_topics.log_dirs(("{t}", [0]))),
    "resources": (1, DESCRIBE_CONFIGS, ask(ApiKey.LIST_CONFIG_RESOURCES, resource_types=[16])),
}
"""Version, operation and request. The rule is for this request alone, and taken back after it."""


def denied_on_cluster(operation: int, question: Ask) -> list[Step]:
    """Ask, once with the rule and once without."""
    rule = {
        "resource_type_filter": CLUSTER,
        "resource_name_filter": CLUSTER_NAME,
        "pattern_type_filter": LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": operation,
        "permission_type": DENY,
    }
    return [
        deny((CLUSTER, CLUSTER_NAME, operation)),
        replace(question, until={"error_code": CLUSTER_DENIED}),
        ask(ApiKey.DELETE_ACLS, filters=[rule]),
        replace(question, until={"error_code": 0}),
    ]


def secured(name: str, api: ApiKey, version: int, *steps: Step | Sequence[Step]) -> Script:
    made_before: list[Step] = [
        *(*made(), *made(OTHER, id_as="other"), *FILLED, *COMMITTED),
        begin("{t}-a", "a"),
    ]
    about = "what is denied, and what that hides"
    return replace(next_to_4(name, api, about, made_before, *steps, versions=(version, version)), is_secured=True)


SCRIPTS = [
    *(
        secured(f"denied-{what}-{api.name.lower()}", api, version, denial, probes)
        for what, denial in DENIALS.items()
        for api, (version, probes) in PROBES.items()
    ),
    *(
        secured(f"denied-{what}", api, version, deny(denial), replace(probes[-1], until=until), probes)
        for what, (api, version, denial, until, probes) in OTHERS.items()
    ),
    *(
        secured(f"denied-{what}", question.api, version, denied_on_cluster(operation, question))
        for what, (version, operation, question) in ON_THE_CLUSTER.items()
    ),
]
