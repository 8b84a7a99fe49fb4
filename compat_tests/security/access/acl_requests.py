"""One or more requests of every API for the matrix. Each is refused for another reason than access, or changes nothing,
so that one caller's request has no effect on the next one's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from compat_tests.differential.records import Batch
from kpybroker.wire.api import ApiKey

TOPIC, GROUP, TXN = "acl-topic", "acl-group", "acl-txn"
JOINED, MISSING = "acl-joined", "acl-missing"
OLD_CONTROLLER: Final[dict[str, Any]] = {"controller_id": 0, "controller_epoch": 0, "broker_epoch": -1}
NOT_A_BROKER = 99
CONFIG_TOPIC, CONFIG_BROKER, CONFIG_LOGGER = 2, 4, 8
LATEST = -1


class Names(NamedTuple):
    """What is not the same on both brokers, or for all callers."""

    topic_id: bytes
    caller: str


Fields = Callable[[Names], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the matrix; `label` distinguishes several of one API."""

    api: ApiKey
    version: int
    fields: Fields
    label: str = ""

    def __str__(self) -> str:
        return f"{self.api.name}-v{self.version}{self.label and '-'}{self.label}"


def _fixed(api: ApiKey, version: int, label: str = "", **fields: Any) -> Request:
    return Request(api, version, lambda names: fields, label)


def _batch(*, transactional: bool) -> bytes:
    if transactional:
        return Batch([b"value"], producer_id=1, producer_epoch=0, sequence=0, transactional=True).build({})
    return Batch([b"value"]).build({})


def _produce(version: int, label: str, *, topics: tuple[str, ...] = (TOPIC,), transactional_id: str | None) -> Request:
    records = _batch(transactional=transactional_id is not None)
    data = [{"name": name, "partition_data": [{"index": n, "records": records} for n in (0, 1)]} for name in topics]
    return _fixed(
        ApiKey.PRODUCE,
        version,
        label,
        transactional_id=transactional_id,
        acks=1,
        timeout_ms=1000,
        topic_data=data,
    )


def _fetch(version: int, label: str = "", replica_id: int = -1) -> Request:
    def fields(names: Names) -> dict[str, Any]:
        partitions = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000} for index in (0, 1)]
        return {
            "replica_id": replica_id,
            "replica_state": {"replica_id": replica_id, "replica_epoch": -1},
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1000,
            "session_epoch": -1,
            "topics": [{"topic": TOPIC, "topic_id": names.topic_id, "partitions": partitions}],
        }

    return Request(ApiKey.FETCH, version, fields, label)


def _describe_config(label: str, kind: int, name: str) -> Request:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": ["retention.ms"]}
    return _fixed(ApiKey.DESCRIBE_CONFIGS, 4, label, resources=[resource])


def _alter_config(api: ApiKey, version: int, label: str, kind: int, name: str) -> Request:
    config: dict[str, Any] = {"name": "retention.ms" if kind == CONFIG_TOPIC else "log.retention.ms", "value": "1000"}
    if api is ApiKey.INCREMENTAL_ALTER_CONFIGS:
        config["config_operation"] = 0
    resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
    return _fixed(api, version, label, resources=[resource], validate_only=True)


_CAROLS_ACL: Final = {
    "resource_type": 3,
    "resource_name": "carols",
    "resource_pattern_type": 3,
    "principal": "User:carol",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_FILTER: Final[dict[str, Any]] = {
    "resource_type_filter": 3,
    "resource_name_filter": "carols",
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_PARTITIONS: Final = [{"name": TOPIC, "partition_indexes": [0, 1]}]
_TXN_TOPICS: Final = [{"name": TOPIC, "partitions": [0, 1]}, {"name": MISSING, "partitions": [0]}]
_COMMITS: Final = [
    {
        "name": name,
        "partitions": [{"partition_index": index, "committed_offset": 1, "committed_metadata": ""} for index in (0, 1)],
    }
    for name in (TOPIC, MISSING)
]


def _by_id(names: Names) -> dict[str, Any]:
    return {"topics": [{"topic_id": names.topic_id, "name": None}], "include_topic_authorized_operations": True}


def _records() -> list[Request]:
    both = (0, 1)
    offsets = {"name": TOPIC, "partitions": [{"partition_index": n, "timestamp": LATEST} for n in both]}
    epochs = {"topic": TOPIC, "partitions": [{"partition": n, "leader_epoch": 0} for n in both]}
    delete = {"name": TOPIC, "partitions": [{"partition_index": n, "offset": 0} for n in both]}
    return [
        _produce(3, "plain", transactional_id=None),
        _produce(11, "two", topics=(TOPIC, MISSING), transactional_id=None),
        _produce(11, "transactional", transactional_id=TXN),
        _fetch(4),
        _fetch(12),
        _fetch(17),
        _fetch(12, "follower", NOT_A_BROKER),
        _fetch(17, "follower", NOT_A_BROKER),
        _fixed(ApiKey.LIST_OFFSETS, 0, replica_id=-1, topics=[offsets]),
        _fixed(ApiKey.LIST_OFFSETS, 9, replica_id=-1, topics=[offsets]),
        _fixed(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=[epochs]),
        _fixed(ApiKey.DELETE_RECORDS, 2, topics=[delete], timeout_ms=1000),
    ]


def _topics() -> list[Request]:
    asked: dict[str, Any] = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    new = {"name": "acl-new", "num_partitions": 1, "replication_factor": 1}
    return [
        _fixed(ApiKey.METADATA, 0, "named", topics=[{"name": TOPIC}]),
        _fixed(ApiKey.METADATA, 1, "all", topics=None),
        _fixed(ApiKey.METADATA, 9, "all", topics=None, **asked),
        _fixed(
            ApiKey.METADATA,
            10,
            "missing",
            topics=[{"name": TOPIC}, {"name": MISSING}],
            allow_auto_topic_creation=False,
            **asked,
        ),
        Request(ApiKey.METADATA, 12, _by_id, "by-id"),
        Request(
            ApiKey.METADATA,
            12,
            lambda names: {"topics": [{"name": f"acl-auto-{names.caller}"}], "allow_auto_topic_creation": True},
            "auto",
        ),
        _fixed(ApiKey.CREATE_TOPICS, 7, topics=[new], timeout_ms=5000, validate_only=True),
        _fixed(ApiKey.DELETE_TOPICS, 5, topic_names=[MISSING], timeout_ms=5000),
        _fixed(ApiKey.DELETE_TOPICS, 6, topics=[{"name": MISSING}], timeout_ms=5000),
        Request(ApiKey.DELETE_TOPICS, 6, lambda _: {"topics": [{"name": None, "topic_id": b"\1" * 16}]}, "no-id"),
        _fixed(
            ApiKey.CREATE_PARTITIONS,
            3,
            topics=[{"name": TOPIC, "count": 2, "assignments": None}],
            timeout_ms=5000,
            validate_only=True,
        ),
    ]


def _groups() -> list[Request]:
    asked: dict[str, Any] = {"group_id": GROUP, "topics": _PARTITIONS}
    several: dict[str, Any] = {"group_id": GROUP, "topics": [*_PARTITIONS, {"name": MISSING, "partition_indexes": [0]}]}
    protocol = {"name": "range", "metadata": b""}
    delete = [{"name": name, "partitions": [{"partition_index": n} for n in (0, 1)]} for name in (TOPIC, MISSING)]
    return [
        _fixed(ApiKey.OFFSET_COMMIT, 2, group_id=GROUP, generation_id_or_member_epoch=-1, topics=_COMMITS),
        _fixed(ApiKey.OFFSET_COMMIT, 9, group_id=GROUP, generation_id_or_member_epoch=-1, topics=_COMMITS),
        _fixed(ApiKey.OFFSET_FETCH, 0, **asked),
        _fixed(ApiKey.OFFSET_FETCH, 1, **asked),
        _fixed(ApiKey.OFFSET_FETCH, 7, **asked),
        _fixed(ApiKey.OFFSET_FETCH, 9, groups=[several]),
        _fixed(ApiKey.OFFSET_FETCH, 9, "all", groups=[{"group_id": GROUP, "topics": None}]),
        _fixed(ApiKey.FIND_COORDINATOR, 0, key=GROUP),
        _fixed(ApiKey.FIND_COORDINATOR, 6, "groups", key_type=0, coordinator_keys=[GROUP, "other"]),
        _fixed(ApiKey.FIND_COORDINATOR, 6, "transactions", key_type=1, coordinator_keys=[TXN]),
        _fixed(
            ApiKey.JOIN_GROUP,
            9,
            group_id=JOINED,
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        ),
        _fixed(ApiKey.HEARTBEAT, 4, group_id=GROUP, generation_id=1, member_id="m"),
        _fixed(ApiKey.LEAVE_GROUP, 5, group_id=GROUP, members=[{"member_id": "m"}]),
        _fixed(ApiKey.SYNC_GROUP, 5, group_id=GROUP, generation_id=1, member_id="m", assignments=[]),
        _fixed(ApiKey.DESCRIBE_GROUPS, 5, groups=[GROUP, MISSING], include_authorized_operations=True),
        _fixed(ApiKey.LIST_GROUPS, 5),
        _fixed(ApiKey.DELETE_GROUPS, 2, groups_names=[MISSING]),
        _fixed(ApiKey.OFFSET_DELETE, 0, group_id=GROUP, topics=delete),
        _fixed(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, group_id=GROUP, member_id="", member_epoch=0),
    ]


def _transactions() -> list[Request]:
    wrong: dict[str, Any] = {"producer_id": 12345, "producer_epoch": 3}
    txn: dict[str, Any] = {"transactional_id": TXN, **wrong}
    old: dict[str, Any] = {f"v3_and_below_{name}": value for name, value in txn.items()} | {
        "v3_and_below_topics": _TXN_TOPICS[:1]
    }
    two: dict[str, Any] = dict(old, v3_and_below_topics=_TXN_TOPICS)
    between: dict[str, Any] = {**txn, "verify_only": True, "topics": _TXN_TOPICS[:1]}
    marker: dict[str, Any] = {
        "producer_id": 1,
        "producer_epoch": 0,
        "transaction_result": True,
        "topics": [{"name": MISSING, "partition_indexes": [0]}],
    }
    init: dict[str, Any] = {"transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
    return [
        _fixed(ApiKey.INIT_PRODUCER_ID, 5, "idempotent", transactional_id=None, **init),
        _fixed(ApiKey.INIT_PRODUCER_ID, 5, "transactional", transactional_id=TXN, **init | {"producer_id": 12345}),
        _fixed(ApiKey.ADD_PARTITIONS_TO_TXN, 3, **old),
        _fixed(ApiKey.ADD_PARTITIONS_TO_TXN, 3, "two", **two),
        _fixed(ApiKey.ADD_PARTITIONS_TO_TXN, 5, transactions=[between]),
        _fixed(ApiKey.ADD_OFFSETS_TO_TXN, 4, group_id=GROUP, **txn),
        _fixed(ApiKey.END_TXN, 4, committed=True, **txn),
        _fixed(ApiKey.TXN_OFFSET_COMMIT, 4, group_id=GROUP, generation_id=-1, member_id="", topics=_COMMITS, **txn),
        _fixed(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker]),
        _fixed(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[*_PARTITIONS, {"name": MISSING, "partition_indexes": [0]}]),
        _fixed(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[TXN, "other"]),
        _fixed(ApiKey.LIST_TRANSACTIONS, 1, state_filters=[], producer_id_filters=[]),
    ]


def _configuration() -> list[Request]:
    found = [_describe_config("topic", CONFIG_TOPIC, TOPIC), _describe_config("missing", CONFIG_TOPIC, MISSING)]
    found += [_describe_config("broker", CONFIG_BROKER, "0"), _describe_config("logger", CONFIG_LOGGER, "0")]
    for api, version in ((ApiKey.ALTER_CONFIGS, 2), (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)):
        found += [_alter_config(api, version, label, kind, name) for label, kind, name in _RESOURCES]
    return found


_RESOURCES: Final = (
    ("topic", CONFIG_TOPIC, TOPIC),
    ("missing", CONFIG_TOPIC, MISSING),
    ("broker", CONFIG_BROKER, "0"),
)


def _cluster() -> list[Request]:
    reassigned = [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": None}]}]
    level = {"feature": "unknown.version", "max_version_level": 1, "upgrade_type": 1}
    return [
        _fixed(ApiKey.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True, endpoint_type=1),
        _fixed(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=[{"topic": TOPIC, "partitions": [0]}]),
        _fixed(
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            2,
            dirs=[{"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [0]}]}],
        ),
        _fixed(
            ApiKey.ELECT_LEADERS,
            2,
            election_type=0,
            topic_partitions=[{"topic": TOPIC, "partitions": [0]}],
            timeout_ms=1000,
        ),
        _fixed(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, timeout_ms=1000, topics=reassigned),
        _fixed(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=1000, topics=None),
        _fixed(ApiKey.DESCRIBE_ACLS, 3, **_FILTER),
        _fixed(ApiKey.CREATE_ACLS, 3, creations=[_CAROLS_ACL]),
        _fixed(ApiKey.DELETE_ACLS, 3, filters=[_FILTER]),
        _fixed(ApiKey.UPDATE_FEATURES, 1, timeout_ms=1000, feature_updates=[level], validate_only=True),
    ]


def _between_brokers() -> list[Request]:
    partition = {"topic_name": TOPIC, "topic_id": b"\1" * 16, "partitions": []}
    return [
        _fixed(ApiKey.LEADER_AND_ISR, 7, topic_states=[], live_leaders=[], **OLD_CONTROLLER),
        _fixed(ApiKey.STOP_REPLICA, 4, topic_states=[], **OLD_CONTROLLER),
        _fixed(ApiKey.UPDATE_METADATA, 8, topic_states=[], live_brokers=[], **OLD_CONTROLLER),
        _fixed(ApiKey.CONTROLLED_SHUTDOWN, 3, broker_id=NOT_A_BROKER, broker_epoch=-1),
        _fixed(ApiKey.ALTER_PARTITION, 3, broker_id=0, broker_epoch=0, topics=[partition]),
        _fixed(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=0, broker_epoch=0),
    ]


def _logins() -> list[Request]:
    """Served only where these APIs are."""
    entity = [{"entity_type": "user", "entity_name": "acl-user"}]
    quota = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]}
    return [
        _fixed(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            1,
            components=[{"entity_type": "user", "match_type": 2, "match": None}],
            strict=False,
        ),
        _fixed(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[quota], validate_only=True),
        _fixed(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": "acl-user"}]),
        _fixed(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[{"name": "acl-user", "mechanism": 1}], upsertions=[]),
        _fixed(ApiKey.CREATE_DELEGATION_TOKEN, 3, renewers=[], max_lifetime_ms=1000),
        _fixed(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=b"no token", renew_period_ms=1),
        _fixed(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=b"no token", expiry_time_period_ms=1),
        _fixed(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None),
    ]


def all_requests() -> list[Request]:
    """At least one of every API that asks the authorizer."""
    parts = (_records, _topics, _groups, _transactions, _configuration, _cluster, _between_brokers, _logins)
    return [request for part in parts for request in part()]
