"""Metadata 13, DescribeLogDirs 5, AlterPartitionReassignments 1 and DescribeCluster 2, of topics in every state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.kafka_4.topics import ASKED, NO_ID, OTHER, SOME_ID, Probes, in_states
from compat_tests.differential.script import Ask, ask
from compat_tests.differential.scripts.topics import CLUSTER, LOG_DIRS, METADATA, identified
from kpybroker.wire.api import ApiKey

REASSIGN = ApiKey.ALTER_PARTITION_REASSIGNMENTS


def metadata(*topics: tuple[str | None, Any], **options: Any) -> Ask:
    return ask(METADATA, topics=identified(*topics), **{"allow_auto_topic_creation": False, **options})


METADATA_PROBES: Probes = {
    "names": [
        metadata(("{t}", NO_ID)),
        metadata(("{t}", NO_ID), ("{t}", NO_ID)),
        metadata(("{t}", NO_ID), (OTHER, NO_ID), ("{t}-missing", NO_ID), ("bad name", NO_ID)),
        metadata(("{t}", NO_ID), include_topic_authorized_operations=True),
        ask(METADATA, topics=None, only={"topics": "name={t}"}),
        ask(METADATA, topics=[]),
    ],
    "ids": [
        metadata((None, ASKED)),
        metadata((None, ASKED), (None, ASKED)),
        metadata((None, ASKED), (None, SOME_ID), (None, "{other}")),
        metadata(("{t}", ASKED)),
        metadata((OTHER, ASKED)),
        metadata((OTHER, NO_ID), (None, ASKED)),
        metadata((None, ASKED), include_topic_authorized_operations=True, allow_auto_topic_creation=True),
        metadata((None, NO_ID), (None, "{other}")),
    ],
}


def log_dirs(*topics: tuple[str, list[int]]) -> Ask:
    return ask(LOG_DIRS, topics=[{"topic": name, "partitions": indexes} for name, indexes in topics])


LOG_DIRS_PROBES: Probes = {
    "sizes": [
        log_dirs(("{t}", [0, 1])),
        log_dirs(("{t}", [1, 7]), (OTHER, [0])),
        log_dirs(("{t}", [0]), ("{t}", [0])),
        log_dirs(("{t}", [0, 0])),
        log_dirs(("{t}-missing", [0]), ("{t}", [])),
        ask(LOG_DIRS, topics=None, only={"results.0.topics": "name={t}"}),
    ],
}


def reassign(allowed: bool, *wanted: tuple[str, int, list[int] | None]) -> Ask:
    """(topic, partition, its replicas-to-be), each in an entry of its own; None cancels."""
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}
        for name, index, replicas in wanted
    ]
    return ask(REASSIGN, topics=topics, allow_replication_factor_change=allowed)


def reassigned(allowed: bool) -> Sequence[Ask]:
    return [
        *(reassign(allowed, ("{t}", 0, replicas)) for replicas in ([0], None, [], [9], [0, 9], [0, 0], [-1], [-1, 0])),
        *(reassign(allowed, ("{t}", 7, replicas)) for replicas in ([0], [0, 9], [], None)),
        *(reassign(allowed, ("{t}-missing", 0, replicas)) for replicas in ([0], [0, 9], None)),
        reassign(allowed, ("{t}", 0, [0]), (OTHER, 0, [0, 9]), (OTHER, 1, [0])),
        reassign(allowed),
        ask(REASSIGN, topics=[{"name": "{t}", "partitions": []}], allow_replication_factor_change=allowed),
    ]


REASSIGN_PROBES: Probes = {"any-factor": reassigned(True), "same-factor": reassigned(False)}
"""With and without the flag of KIP-860."""

NAMED_STATES = ("empty", "filled", "compacted", "cut", "grown", "deleted", "renewed")

SCRIPTS = [
    *in_states("later-metadata", METADATA, METADATA_PROBES, versions=(13, 13)),
    *in_states("later-dirs", LOG_DIRS, LOG_DIRS_PROBES, states=NAMED_STATES, versions=(5, 5)),
    *in_states("later-moves", REASSIGN, REASSIGN_PROBES, states=("filled", "grown", "deleted"), versions=(1, 1)),
    *(
        next_to_4(
            f"later-cluster-{endpoints}",
            CLUSTER,
            "with and without fenced brokers (KIP-1073), and what may be done",
            *(
                ask(
                    CLUSTER,
                    endpoint_type=endpoints,
                    include_fenced_brokers=fenced,
                    include_cluster_authorized_operations=rights,
                )
                for fenced in (False, True)
                for rights in (False, True)
            ),
            versions=(2, 2),
        )
        for endpoints in (0, 1, 2, 3, -1)
    ),
]
