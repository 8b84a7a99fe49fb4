"""The paths of Kafka's znodes, and the names of the nodes below them (kafka.zk.ZkData).

Principals and client ids are sanitized in paths; topics, groups and broker ids are written as they are.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQID = "/brokers/seqid"
TOPICS = "/brokers/topics"
CONFIG_CHANGES = "/config/changes"
ADMIN = "/admin"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
LATEST_PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
MIGRATION = "/migration"
CONSUMERS = "/consumers"
ACLS = "/kafka-acl"
ACLS_EXTENDED = "/kafka-acl-extended"
ACL_CHANGES = "/kafka-acl-changes"
ACL_EXTENDED_CHANGES = "/kafka-acl-extended-changes"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"

CONFIG_TOPICS, CONFIG_CLIENTS, CONFIG_USERS, CONFIG_BROKERS, CONFIG_IPS = (
    "topics",
    "clients",
    "users",
    "brokers",
    "ips",
)
CONFIG_TYPES = (CONFIG_TOPICS, CONFIG_CLIENTS, CONFIG_USERS, CONFIG_BROKERS, CONFIG_IPS)
CONFIG_GROUPS = "groups"
"""Of groups. Kafka in ZooKeeper mode has no such type, so the node is there only while a group sets something."""
CONFIG_CLIENT_METRICS = "client-metrics"
"""Of subscriptions to client metrics, by the name of their type in Kafka. As groups: Kafka in ZooKeeper mode has no
such type, logs an error about each notification of a change, and goes on.
"""
CONFIG_DEFAULT_ENTITY = "<default>"

# The prefixes of sequential nodes.
CONFIG_CHANGE_PREFIX = "config_change_"
ISR_CHANGE_PREFIX = "isr_change_"
LOG_DIR_EVENT_PREFIX = "log_dir_event_"
ACL_CHANGES_PREFIX = "acl_changes_"
TOKEN_CHANGE_PREFIX = "token_change_"


def config_type_path(entity_type: str) -> str:
    """Parent of the configurations of one type, which is one of CONFIG_TYPES."""
    return f"/config/{entity_type}"


PERSISTENT_PATHS = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQID,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    *map(config_type_path, CONFIG_TYPES),
)
"""Nodes that every broker creates at its start if they are missing, with their parents (ZkData.PersistentZkPaths)."""

SECURE_ROOT_PATHS = (
    ADMIN,
    "/brokers",
    "/cluster",
    "/config",
    CONTROLLER,
    CONTROLLER_EPOCH,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    "/delegation_token",
    ACLS_EXTENDED,
    MIGRATION,
    FEATURE,
    ACLS,
    ACL_CHANGES,
    f"{ACLS_EXTENDED}/prefixed",
    ACL_EXTENDED_CHANGES,
)
"""The roots of all that `zookeeper.set.acl` protects (ZkData.SecureRootPaths)."""

_SENSITIVE_ROOTS = (config_type_path(CONFIG_USERS), config_type_path(CONFIG_BROKERS), DELEGATION_TOKENS)


def is_sensitive(path: str) -> bool:
    """Whether only its creator may read the node under `zookeeper.set.acl` (ZkData.sensitivePath)."""
    return path.startswith(_SENSITIVE_ROOTS)


def is_secured(path: str) -> bool:
    """False for the one root that stays open under `zookeeper.set.acl` (ZkData.defaultAcls)."""
    return path != CONSUMERS


def broker_path(broker_id: int) -> str:
    """A broker's registration, an ephemeral node."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """A topic's assignment; its partitions are below it."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Parent of a topic's partition nodes."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """Parent of a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    """Leader, epochs and ISR of a partition."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(entity_type: str, entity: str) -> str:
    """`entity` is sanitized, and may be a path (`alice/clients/app`); see `user_client_entity`."""
    return f"/config/{entity_type}/{entity}"


def user_client_entity(user: str, client_id: str) -> str:
    """The entity under `users` of a user and client id pair, both sanitized."""
    return f"{user}/clients/{client_id}"


def group_entity(group_id: str) -> str:
    """The entity under `groups` of a group, sanitized; no node may be named `.` or `..`."""
    return sanitize(group_id) if group_id not in (".", "..") else group_id.replace(".", "%2E")


def group_of_entity(entity: str) -> str:
    """The reverse of `group_entity`."""
    return desanitize(entity)


def client_metrics_entity(subscription: str) -> str:
    """The entity under `client-metrics` of a subscription, as that of a group."""
    return group_entity(subscription)


def client_metrics_of_entity(entity: str) -> str:
    """The reverse of `client_metrics_entity`."""
    return desanitize(entity)


def config_change_path() -> str:
    """Where to create a sequential notification of a configuration change."""
    return f"{CONFIG_CHANGES}/{CONFIG_CHANGE_PREFIX}"


def isr_change_path(sequence: str = "") -> str:
    """A notification of ISR changes; without `sequence`, where to create a sequential one."""
    return f"{ISR_CHANGE_NOTIFICATION}/{ISR_CHANGE_PREFIX}{sequence}"


def log_dir_event_path(sequence: str = "") -> str:
    """A notification of a failed log directory; without `sequence`, where to create a sequential one."""
    return f"{LOG_DIR_EVENT_NOTIFICATION}/{LOG_DIR_EVENT_PREFIX}{sequence}"


def delete_topic_path(topic: str) -> str:
    """The request to delete a topic."""
    return f"{DELETE_TOPICS}/{topic}"


def consumer_offset_path(group: str, topic: str, partition: int) -> str:
    """An offset that an old consumer committed to the tree."""
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"


def consumer_offsets_path(group: str) -> str:
    """Parent of a group's offsets in the tree."""
    return f"{CONSUMERS}/{group}/offsets"


def acl_path(pattern_type: str, resource_type: str, resource_name: str) -> str:
    """The ACLs of a resource. `pattern_type` is in upper case ("LITERAL"), `resource_type` as in "TransactionalId"."""
    root = ACLS if pattern_type == "LITERAL" else f"{ACLS_EXTENDED}/{pattern_type.lower()}"
    return f"{root}/{resource_type}/{resource_name}"


def acl_change_path(pattern_type: str) -> str:
    """Where to create a sequential notification of an ACL change; `pattern_type` as in `acl_path`."""
    root = ACL_CHANGES if pattern_type == "LITERAL" else ACL_EXTENDED_CHANGES
    return f"{root}/{ACL_CHANGES_PREFIX}"


def delegation_token_path(token_id: str) -> str:
    """A delegation token's node."""
    return f"{DELEGATION_TOKENS}/{token_id}"


def delegation_token_change_path() -> str:
    """Where to create a sequential notification of a token change."""
    return f"{DELEGATION_TOKEN_CHANGES}/{TOKEN_CHANGE_PREFIX}"


def sequence_number(name: str, prefix: str) -> str:
    """The digits after the last `prefix` in a sequential node's name or path."""
    return name[name.rindex(prefix) + len(prefix) :]


def sanitize(name: str) -> str:
    """A principal or client id as a node's name (org.apache.kafka.common.utils.Sanitizer)."""
    return quote(name, safe="").replace("~", "%7E")


def desanitize(name: str) -> str:
    """The principal or client id that `sanitize` turned into a node's name."""
    return unquote(name)
