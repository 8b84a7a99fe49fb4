"""Metadata, CreateTopics, CreatePartitions, DeleteTopics, DescribeCluster, DescribeLogDirs."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.records import Batch
from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.steps import create, produce
from kpybroker.wire.api import ApiKey

METADATA = ApiKey.METADATA
CREATE = ApiKey.CREATE_TOPICS
PARTITIONS = ApiKey.CREATE_PARTITIONS
DELETE = ApiKey.DELETE_TOPICS
CLUSTER = ApiKey.DESCRIBE_CLUSTER
LOG_DIRS = ApiKey.DESCRIBE_LOG_DIRS

LONG = "x" * 249
NO_ID = bytes(16)
SOME_ID = b"\x01" * 16


def metadata(*names: str, create_missing: bool = False, **options: Any) -> Ask:
    topics = [{"name": name} for name in names]
    return ask(METADATA, topics=topics, allow_auto_topic_creation=create_missing, **options)


def identified(*topics: tuple[str | None, Any]) -> list[dict[str, Any]]:
    """Topics as they are asked for: a name, an id, or both."""
    return [{"name": name, "topic_id": topic_id} for name, topic_id in topics]


def wanted(name: str = "{t}", partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


def make(*topics: dict[str, Any], **options: Any) -> Ask:
    return ask(CREATE, topics=list(topics), **{"timeout_ms": 60_000, **options})


def placed(*places: list[int], first: int = 0) -> dict[str, Any]:
    """An assignment given by hand."""
    assignments = [{"partition_index": first + n, "broker_ids": brokers} for n, brokers in enumerate(places)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


def configured(**config: str | None) -> dict[str, Any]:
    return {"configs": [{"name": key.replace("_", "."), "value": value} for key, value in config.items()]}


def make_with(name: str, **config: str | None) -> Ask:
    return make(wanted(name, **configured(**config)))


def grow(name: str, count: int, assignments: list[list[int]] | None = None, **options: Any) -> Ask:
    places = None if assignments is None else [{"broker_ids": brokers} for brokers in assignments]
    topic = {"name": name, "count": count, "assignments": places}
    return ask(PARTITIONS, topics=[topic], **{"timeout_ms": 60_000, **options})


def delete(*names: str, timeout_ms: int = 60_000, **options: Any) -> Ask:
    by_name = identified(*((name, NO_ID) for name in names))
    return ask(DELETE, topics=by_name, topic_names=list(names), timeout_ms=timeout_ms, **options)


def delete_ids(*topics: tuple[str | None, Any], timeout_ms: int = 60_000) -> Ask:
    return ask(DELETE, topics=identified(*topics), timeout_ms=timeout_ms)


SCRIPTS = [
    script(
        "metadata-names",
        METADATA,
        "topics that are there, unknown, invalid, asked for twice",
        create("{t}-a", partitions=3),
        create("{t}-b"),
        metadata("{t}-a"),
        metadata("{t}-b", "{t}-a"),
        metadata("{t}-a", "{t}-a"),
        metadata("{t}-a", "a b", "{t}-b"),
        *(metadata(name) for name in ("bad name", "", ".", "..", LONG + "y", "a/b", "ä", "__consumer_offsets")),
    ),
    script(
        "metadata-all",
        METADATA,
        "all topics: null, and empty in version 0; none: empty",
        create("{t}-a", partitions=2),
        create("{t}-b"),
        ask(METADATA, topics=[], only={"topics": "name={t}"}),
        ask(METADATA, topics=None, only={"topics": "name={t}"}, v=12),
        ask(METADATA, topics=None, only={"topics": "name={t}"}, v=1),
    ),
    script(
        "metadata-creates",
        METADATA,
        "a missing topic is made by asking for it, where the client allows",
        metadata("{t}-no"),
        metadata("{t}-no", "__consumer_offsets"),
        metadata("{t}-no", until={"topics.0.error_code": [3, 0]}, v=12),
        metadata("{t}-yes", create_missing=True, until={"topics.0.error_code": 0}),
        metadata("{t}-yes"),
        metadata("bad name", create_missing=True),
        metadata(".", create_missing=True),
        metadata("", create_missing=True),
        metadata(LONG + "y", create_missing=True),
        versions=(4, 12),
    ),
    script(
        "metadata-always-creates",
        METADATA,
        "before version 4 every question creates",
        metadata("{t}-yes", until={"topics.0.error_code": 0}),
        metadata("bad name"),
        versions=(0, 3),
    ),
    script(
        "metadata-ids",
        METADATA,
        "topics by id: known, unknown, zero, with a name too",
        create("{t}", bind={"id": "topics.0.topic_id"}),
        *(
            ask(METADATA, topics=identified(*topics), allow_auto_topic_creation=True)
            for topics in (
                [(None, "{id}")],
                [(None, SOME_ID)],
                [(None, NO_ID)],
                [("{t}", "{id}")],
                [("{t}", SOME_ID)],
                [("{t}", NO_ID), (None, "{id}")],
            )
        ),
        versions=(10, 12),
    ),
    script(
        "metadata-operations",
        METADATA,
        "what the client may do, when it asks",
        create("{t}"),
        metadata("{t}", include_topic_authorized_operations=True),
        metadata("{t}", include_cluster_authorized_operations=True),
        metadata("{t}-no", include_topic_authorized_operations=True),
        versions=(8, 12),
    ),
    script(
        "create-topics",
        CREATE,
        "partitions, factors, defaults, names",
        make(wanted()),
        make(wanted()),
        make(wanted("{t}-3", 3)),
        make(wanted("{t}-default", -1, -1)),
        make(wanted("{t}-0", 0)),
        make(wanted("{t}-neg", -2)),
        make(wanted("{t}-f0", 1, 0)),
        make(wanted("{t}-f2", 1, 2)),
        make(wanted("{t}-f-neg", 1, -2)),
        *(make(wanted(name)) for name in ("", ".", "..", "a b", "a/b", LONG + "y", "ä", "__consumer_offsets")),
        make(wanted("{t}.dot")),
        make(wanted("{t}_dot")),
        make(),
        metadata("{t}", "{t}-3"),
    ),
    script(
        "create-several-topics",
        CREATE,
        "right and wrong ones in one request, the same twice, no time to wait",
        make(wanted("{t}-a"), wanted("{t}-b", 0), wanted("{t}-c", 2), wanted("a b")),
        make(wanted("{t}-d"), wanted("{t}-d")),
        make(wanted("{t}-e"), wanted("{t}-d"), wanted("{t}-d", 2)),
        make(wanted("{t}-now"), timeout_ms=0),
        make(wanted("{t}-now2"), timeout_ms=-1),
        metadata("{t}-now", until={"topics.0.error_code": 0}),
    ),
    script(
        "create-placed-topics",
        CREATE,
        "assignments given by hand",
        make({"name": "{t}-a", **placed([0], [0])}),
        make({"name": "{t}-b", **placed([0, 1])}),
        make({"name": "{t}-c", **placed([7])}, timeout_ms=50),
        make({"name": "{t}-d", **placed([0, 0])}),
        make({"name": "{t}-e", **placed([0], first=1)}),
        make({"name": "{t}-f", **placed([])}, timeout_ms=50),
        make({"name": "{t}-g", **placed([0], [0, 1])}),
        make({"name": "{t}-h", **placed([0]), "num_partitions": 1}),
        make({"name": "{t}-i", **placed([0]), "replication_factor": 1}),
        make({"name": "{t}-j", **placed([0], first=-1)}),
        make(
            {
                "name": "{t}-k",
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [{"partition_index": 0, "broker_ids": [0]}, {"partition_index": 0, "broker_ids": [0]}],
            }
        ),
        make({"name": "{t}-l", **placed([-1])}, timeout_ms=50),
        metadata("{t}-a"),
    ),
    script(
        "create-configured-topics",
        CREATE,
        "configuration: right, unknown, wrong, null, twice",
        make_with("{t}-a", retention_ms="1000", cleanup_policy="compact"),
        make_with("{t}-b", no_such_key="1"),
        make_with("{t}-c", retention_ms="soon"),
        make_with("{t}-d", retention_ms="-2"),
        make_with("{t}-e", cleanup_policy="burn"),
        make_with("{t}-f", cleanup_policy=""),
        make_with("{t}-g", retention_ms=None),
        make_with("{t}-h", segment_bytes="13"),
        make_with("{t}-i", compression_type="rar"),
        make_with("{t}-j", max_message_bytes=" 100 "),
        make_with("{t}-k", min_insync_replicas="0"),
        make_with("{t}-l", retention_ms="1", segment_bytes="nan"),
        make_with("{t}-m", min_compaction_lag_ms="10", max_compaction_lag_ms="5"),
        make_with("{t}-n", message_timestamp_type="Never"),
        make_with("{t}-o", preallocate="maybe"),
        make_with("{t}-p", min_cleanable_dirty_ratio="1.5"),
        make_with("{t}-q", remote_storage_enable="true"),
        make(wanted("{t}-r", configs=[{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}])),
        make_with("{t}-s", leader_replication_throttled_replicas="x"),
        make_with("{t}-t", leader_replication_throttled_replicas="0:0,1:1"),
        make_with("{t}-u", message_format_version="2.0"),
    ),
    script(
        "create-topics-dry",
        CREATE,
        "validate_only checks everything and makes nothing",
        make(wanted("{t}"), validate_only=True),
        make(wanted("{t}", 0), validate_only=True),
        make(wanted("{t}", **configured(retention_ms="soon")), validate_only=True),
        make(wanted("{t}")),
        make(wanted("{t}"), validate_only=True),
        versions=(1, 7),
    ),
    script(
        "create-partitions",
        PARTITIONS,
        "more, fewer, as many, by hand, on nothing",
        create("{t}"),
        grow("{t}", 3),
        grow("{t}", 3),
        grow("{t}", 2),
        grow("{t}", 0),
        grow("{t}", -1),
        grow("{t}-missing", 3),
        grow("", 3),
        grow("{t}", 5, [[0], [0]]),
        grow("{t}", 6, [[0], [0]]),
        grow("{t}", 6, [[7]]),
        grow("{t}", 6, [[0, 0]]),
        grow("{t}", 6, [[0, 1]]),
        grow("{t}", 6, [[]]),
        grow("{t}", 6, [[-1]]),
        grow("{t}", 6, []),
        grow("{t}", 7, validate_only=True),
        grow("{t}", 1, validate_only=True),
        grow("{t}", 8, timeout_ms=0),
        grow("__consumer_offsets", 1),
        metadata("{t}", until={"topics.0.partitions.7.error_code": 0}),
        ask(
            PARTITIONS,
            topics=[
                {"name": "{t}", "count": 9, "assignments": None},
                {"name": "{t}", "count": 10, "assignments": None},
            ],
            timeout_ms=60_000,
        ),
        ask(PARTITIONS, topics=[], timeout_ms=60_000),
    ),
    script(
        "delete-topics",
        DELETE,
        "by name: there, missing, twice, invalid, none",
        create("{t}-a"),
        create("{t}-b"),
        create("{t}-c"),
        delete("{t}-a"),
        delete("{t}-missing"),
        delete("{t}-b", "{t}-missing"),
        delete("{t}-c", "{t}-c"),
        delete("bad name"),
        delete(""),
        delete(),
        metadata("{t}-a", until={"topics.0.error_code": 3}),
    ),
    script(
        "delete-topics-by-id",
        DELETE,
        "by id: known, unknown, zero, with a name, the same twice",
        create("{t}-a", bind={"a": "topics.0.topic_id"}),
        create("{t}-b", bind={"b": "topics.0.topic_id"}),
        delete_ids((None, "{a}")),
        delete_ids((None, SOME_ID)),
        delete_ids((None, NO_ID)),
        delete_ids(("{t}-b", "{b}")),
        delete_ids(("{t}-b", NO_ID), (None, "{b}"), timeout_ms=60_000),
        create("{t}-c", bind={"c": "topics.0.topic_id"}),
        delete_ids((None, "{c}"), (None, "{c}"), timeout_ms=60_000),
        versions=(6, 6),
    ),
    script(
        "describe-cluster",
        CLUSTER,
        "the brokers, who is controller, what may be done; controllers are not to be asked for here",
        ask(CLUSTER),
        ask(CLUSTER, include_cluster_authorized_operations=True),
        ask(CLUSTER, endpoint_type=2),
        ask(CLUSTER, endpoint_type=3),
    ),
    script(
        "describe-log-dirs",
        LOG_DIRS,
        "sizes of replicas: some, all, unknown ones",
        create("{t}", partitions=2),
        produce("{t}", Batch([b"one", b"two"])),
        ask(LOG_DIRS, topics=[{"topic": "{t}", "partitions": [0, 1]}]),
        ask(LOG_DIRS, topics=[{"topic": "{t}", "partitions": [1]}, {"topic": "{t}-missing", "partitions": [0]}]),
        ask(LOG_DIRS, topics=[{"topic": "{t}", "partitions": [7]}]),
        ask(LOG_DIRS, topics=[{"topic": "{t}", "partitions": []}]),
        ask(LOG_DIRS, topics=[]),
        ask(LOG_DIRS, topics=None, only={"results.0.topics": "name={t}"}),
    ),
]
