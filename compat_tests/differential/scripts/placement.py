"""AlterPartitionReassignments, ListPartitionReassignments, ElectLeaders, AlterReplicaLogDirs: where replicas are and
which one leads, as far as one broker can tell. `compat_tests/cluster` moves them between several."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey

REASSIGN = ApiKey.ALTER_PARTITION_REASSIGNMENTS
REASSIGNMENTS = ApiKey.LIST_PARTITION_REASSIGNMENTS
ELECT = ApiKey.ELECT_LEADERS
MOVE_DIRS = ApiKey.ALTER_REPLICA_LOG_DIRS
LOG_DIRS = ApiKey.DESCRIBE_LOG_DIRS

PREFERRED, UNCLEAN, NO_ELECTION = 0, 1, 5
NOWHERE = "/no/such/directory"
BAD_NAMES = ("{t}-missing", "", "bad name")


def reassign(*wanted: tuple[str, int, list[int] | None]) -> Ask:
    """Topic, partition and its replicas-to-be; None cancels."""
    topics = [
        {"name": topic, "partitions": [{"partition_index": index, "replicas": replicas}]}
        for topic, index, replicas in wanted
    ]
    return ask(REASSIGN, topics=topics)


def reassignments(*named: tuple[str, list[int]]) -> Ask:
    return ask(REASSIGNMENTS, topics=[{"name": topic, "partition_indexes": indexes} for topic, indexes in named])


def elect(kind: int, *named: tuple[str, list[int]], **options: Any) -> Ask:
    partitions = [{"topic": topic, "partitions": indexes} for topic, indexes in named]
    return ask(ELECT, election_type=kind, topic_partitions=partitions, **options)


def move(path: str, *named: tuple[str, list[int]]) -> Ask:
    return ask(MOVE_DIRS, dirs=[{"path": path, "topics": [{"name": t, "partitions": indexes} for t, indexes in named]}])


SCRIPTS = [
    script(
        "reassign-partitions",
        REASSIGN,
        "to where they are; brokers that there are not; nothing to cancel; names of nothing",
        create("{t}", partitions=2),
        reassign(("{t}", 0, [0])),
        reassign(("{t}", 0, None)),
        reassign(("{t}", 0, [])),
        *(reassign(("{t}", 0, replicas)) for replicas in ([9], [0, 9], [0, 0], [-1])),
        *(reassign(("{t}", index, replicas)) for index in (7, -1) for replicas in ([0], None)),
        *(reassign((name, 0, replicas)) for name in BAD_NAMES for replicas in ([0], None)),
        reassign(("{t}", 0, [9]), ("{t}", 1, [0])),
        reassign(("{t}", 0, [9]), ("{t}", 0, [0])),
        reassign(("{t}-missing", 0, [0]), ("{t}", 1, None)),
        reassign(),
        ask(REASSIGN, topics=[{"name": "{t}", "partitions": []}]),
    ),
    script(
        "list-reassignments",
        REASSIGNMENTS,
        "none is going on",
        create("{t}"),
        ask(REASSIGNMENTS, topics=None),
        reassignments(),
        reassignments(("{t}", [0])),
        reassignments(("{t}", [7])),
        reassignments(("{t}", [])),
        *(reassignments((name, [0])) for name in BAD_NAMES),
    ),
    script(
        "elect-leaders",
        ELECT,
        "partitions that have their leader; names of nothing; everything",
        create("{t}", partitions=2),
        *(elect(kind, ("{t}", [0])) for kind in (PREFERRED, UNCLEAN)),
        *(elect(kind, ("{t}", [0, 7]), ("{t}-missing", [0])) for kind in (PREFERRED, UNCLEAN)),
        *(elect(PREFERRED, (name, [0])) for name in BAD_NAMES),
        elect(PREFERRED, ("{t}", [-1])),
        elect(PREFERRED, ("{t}", [])),
        elect(PREFERRED, ("{t}", [0]), timeout_ms=0),
        elect(PREFERRED, ("{t}", [0]), timeout_ms=-1),
        elect(PREFERRED),
        ask(ELECT, election_type=PREFERRED, topic_partitions=None),
    ),
    script(
        "elect-in-another-way",
        ELECT,
        "an election that there is not",
        create("{t}"),
        elect(NO_ELECTION, ("{t}", [0])),
        ask(ELECT, election_type=NO_ELECTION, topic_partitions=None),
    ),
    script(
        "move-log-dirs",
        MOVE_DIRS,
        "to where they are; to where there is nothing; names of nothing",
        create("{t}", partitions=2),
        ask(LOG_DIRS, topics=[], bind={"here": "results.0.log_dir"}),
        move("{here}", ("{t}", [0, 1])),
        move("{here}", ("{t}", [7]), ("{t}-missing", [0])),
        move("{here}", ("{t}", [])),
        move("{here}"),
        *(move("{here}", (name, [0])) for name in BAD_NAMES),
        *(move(path, ("{t}", [0])) for path in (NOWHERE, "relative", "", "/")),
        move(NOWHERE, ("{t}-missing", [0])),
        ask(MOVE_DIRS, dirs=[]),
    ),
]
