"""Names that no topic, user or group can have, and numbers that name nothing: refused, not stumbled over."""

from __future__ import annotations

from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey

ODD = ("", "a/b", "a b", "ä", "x" * 300, "x" * 32767)


def make(name: str) -> Ask:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return ask(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000)


def grow(name: str) -> Ask:
    return ask(ApiKey.CREATE_PARTITIONS, topics=[{"name": name, "count": 3, "assignments": None}], timeout_ms=10_000)


def delete(name: str) -> Ask:
    by_name = [{"name": name, "topic_id": bytes(16)}]
    return ask(ApiKey.DELETE_TOPICS, topics=by_name, topic_names=[name], timeout_ms=10_000)


def described(name: str) -> Ask:
    return ask(ApiKey.DESCRIBE_CONFIGS, resources=[{"resource_type": 2, "resource_name": name}])


def fetch_as(replica_id: int) -> Ask:
    partition = {"partition": 0, "partition_max_bytes": 1000}
    topics = [{"topic": "{t}", "partitions": [partition]}]
    return ask(ApiKey.FETCH, replica_id=replica_id, max_wait_ms=0, topics=topics)


SCRIPTS = [
    script("odd-create-topics", ApiKey.CREATE_TOPICS, "names that no topic can have", *map(make, ODD)),
    script(
        "odd-create-partitions",
        ApiKey.CREATE_PARTITIONS,
        "of topics that cannot be, and of a path in the tree",
        create("{t}"),
        *map(grow, (*ODD, "..", ".", "{t}/partitions")),
    ),
    script(
        "odd-delete-topics",
        ApiKey.DELETE_TOPICS,
        "of topics that cannot be, and of a path in the tree",
        create("{t}"),
        *map(delete, (*ODD, "..", ".", "{t}/partitions")),
    ),
    script("odd-describe-configs", ApiKey.DESCRIBE_CONFIGS, "of topics that cannot be", *map(described, (*ODD, ".."))),
    script(
        "odd-scram-users",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "users whose names are no nodes of the tree",
        *(ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": name}]) for name in ("a/b", "..", ".", "a\nb")),
    ),
    script("odd-fetch-itself", ApiKey.FETCH, "a fetch of the leader by itself", create("{t}"), fetch_as(0)),
]
