"""The `Shape` of every API that a broker may serve: where requests name topics, partitions, groups, transactional ids.

A test walks all served APIs and versions: each has a shape whose fields exist in that version.
"""

from __future__ import annotations

from kpybroker.control.rules.entities import TOP, Array, Names, Shape, array
from kpybroker.wire.api import ApiKey
from kpybroker.wire.schema import FOREVER, Message

ALL = (0, FOREVER)
ERROR = "error_code"
GROUP = (("group", "group_id"),)
TRANSACTION = (("transactional_id", "transactional_id"),)

TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32
GROUP_KEY = 0


def _coordinator(request: Message, names: Names) -> None:
    """What FindCoordinator looks for is a group or a transactional id."""
    if "coordinator_key" in names:
        kind = "group" if getattr(request, "key_type", GROUP_KEY) == GROUP_KEY else "transactional_id"
        names[kind] = names["coordinator_key"]


def _resource(request: Message, names: Names) -> None:
    """The resources of configurations are topics, groups, and others that a rule cannot name."""
    if names.get("resource_type") == TOPIC_RESOURCE:
        names["topic"] = names["resource_name"]
    elif names.get("resource_type") == GROUP_RESOURCE:
        names["group"] = names["resource_name"]


def _response_only(level: Array) -> Array:
    return Array(level.name, level.keys, level.error, level.failed, is_response_only=True)


_TOPICS = array("topics", topic="name")
_TOPICS_OR_IDS = array("topics", topic="name", topic_id="topic_id")
_PARTITIONS = array("partitions", partition="partition_index")
_INDEXES = array("partition_indexes", partition="")
_FAILING_PARTITIONS = array("partitions", ERROR, partition="partition_index")
_RESOURCES = array("resources", resource_type="resource_type", resource_name="resource_name")
_LEADERS = {"leader_id": -1, "leader_epoch": -1}
_FLAT_PARTITIONS = array("partition_errors", ERROR, topic="topic_name", partition="partition_index")
_STATES = array("partition_states", partition="partition_index")
_UNGROUPED_STATES = array("ungrouped_partition_states", topic="topic_name", partition="partition_index")
_TOPIC_STATES = array("topic_states", topic="topic_name", topic_id="topic_id")

_RECORDS: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.PRODUCE: (
        Shape(
            ALL,
            (array("topic_data", topic="name", topic_id="topic_id"), array("partition_data", partition="index")),
            (
                array("responses", topic="name", topic_id="topic_id"),
                array("partition_responses", ERROR, {"base_offset": -1}, partition="index"),
            ),
            TRANSACTION,
        ),
    ),
    # Handled whole: a partition that was left out of a session's first request would not be in the session.
    ApiKey.FETCH: (
        Shape(
            ALL,
            (array("topics", topic="topic", topic_id="topic_id"), array("partitions", partition="partition")),
            (
                array("responses", topic="topic", topic_id="topic_id"),
                array(
                    "partitions",
                    ERROR,
                    {"high_watermark": -1, "last_stable_offset": -1, "log_start_offset": -1, "records": b""},
                    partition="partition_index",
                ),
            ),
            leaves_out=False,
            is_always_handled=True,
        ),
    ),
    ApiKey.LIST_OFFSETS: (
        Shape(
            ALL,
            (_TOPICS, _PARTITIONS),
            (
                _TOPICS,
                array(
                    "partitions",
                    ERROR,
                    {"timestamp": -1, "offset": -1, "leader_epoch": -1},
                    partition="partition_index",
                ),
            ),
        ),
    ),
    ApiKey.DELETE_RECORDS: (
        Shape(
            ALL,
            (_TOPICS, _PARTITIONS),
            (_TOPICS, array("partitions", ERROR, {"low_watermark": -1}, partition="partition_index")),
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Shape(
            ALL,
            (array("topics", topic="topic"), array("partitions", partition="partition")),
            (
                array("topics", topic="topic"),
                array("partitions", ERROR, {"leader_epoch": -1, "end_offset": -1}, partition="partition"),
            ),
        ),
    ),
}

_GROUPS: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.OFFSET_COMMIT: (Shape(ALL, (_TOPICS_OR_IDS, _PARTITIONS), (_TOPICS_OR_IDS, _FAILING_PARTITIONS), GROUP),),
    # A coordinator's errors are the group's: at the group, at the top, and only in the first versions at partitions.
    ApiKey.OFFSET_FETCH: (
        Shape(
            (0, 1),
            (_TOPICS, _INDEXES),
            (_TOPICS, array("partitions", ERROR, {"committed_offset": -1}, partition="partition_index")),
            GROUP,
        ),
        Shape(
            (2, 7),
            (_TOPICS, _INDEXES),
            (
                _TOPICS,
                array(
                    "partitions",
                    ERROR,
                    {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""},
                    partition="partition_index",
                ),
            ),
            GROUP,
            natural=TOP,
        ),
        Shape(
            (8, FOREVER),
            (array("groups", group="group_id"), _TOPICS_OR_IDS, _INDEXES),
            (
                array("groups", ERROR, group="group_id"),
                _TOPICS_OR_IDS,
                array(
                    "partitions",
                    ERROR,
                    {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""},
                    partition="partition_index",
                ),
            ),
            natural=0,
        ),
    ),
    ApiKey.FIND_COORDINATOR: (
        Shape((0, 3), scalars=(("coordinator_key", "key"),), add_names=_coordinator),
        Shape(
            (4, FOREVER),
            (array("coordinator_keys", coordinator_key=""),),
            (array("coordinators", ERROR, {"node_id": -1, "port": -1}, coordinator_key="key"),),
            add_names=_coordinator,
        ),
    ),
    ApiKey.JOIN_GROUP: (Shape(ALL, scalars=GROUP),),
    ApiKey.HEARTBEAT: (Shape(ALL, scalars=GROUP),),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (Shape(ALL, scalars=GROUP),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (
        Shape(ALL, (array("group_ids", group=""),), (array("groups", ERROR, group="group_id"),)),
    ),
    ApiKey.LEAVE_GROUP: (Shape(ALL, scalars=GROUP),),
    ApiKey.SYNC_GROUP: (Shape(ALL, scalars=GROUP),),
    ApiKey.DESCRIBE_GROUPS: (Shape(ALL, (array("groups", group=""),), (array("groups", ERROR, group="group_id"),)),),
    ApiKey.LIST_GROUPS: (Shape(ALL),),
    ApiKey.DELETE_GROUPS: (
        Shape(ALL, (array("groups_names", group=""),), (array("results", ERROR, group="group_id"),)),
    ),
    ApiKey.OFFSET_DELETE: (Shape(ALL, (_TOPICS, _PARTITIONS), (_TOPICS, _FAILING_PARTITIONS), GROUP, natural=TOP),),
}

_TOPIC_IDS = array("topics", topic_id="topic_id")
_STATE_OF_SHARES = (
    Shape(
        ALL,
        (_TOPIC_IDS, array("partitions", partition="partition")),
        (array("results", topic_id="topic_id"), array("partitions", ERROR, partition="partition")),
        GROUP,
    ),
)

_SHARE_GROUPS: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.SHARE_GROUP_HEARTBEAT: (Shape(ALL, scalars=GROUP),),
    ApiKey.SHARE_GROUP_DESCRIBE: (
        Shape(ALL, (array("group_ids", group=""),), (array("groups", ERROR, group="group_id"),)),
    ),
    # Both are handled whole: a partition that was left out would not be in the session.
    ApiKey.SHARE_FETCH: (
        Shape(
            ALL,
            (_TOPIC_IDS, _PARTITIONS),
            (
                array("responses", topic_id="topic_id"),
                array("partitions", ERROR, {"records": b"", "acquired_records": []}, partition="partition_index"),
            ),
            GROUP,
            leaves_out=False,
            is_always_handled=True,
        ),
    ),
    ApiKey.SHARE_ACKNOWLEDGE: (
        Shape(
            ALL,
            (_TOPIC_IDS, _PARTITIONS),
            (array("responses", topic_id="topic_id"), _FAILING_PARTITIONS),
            GROUP,
            is_always_handled=True,
        ),
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.READ_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.WRITE_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.DELETE_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _STATE_OF_SHARES,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        Shape(
            ALL,
            (array("groups", group="group_id"), array("topics", topic="topic_name"), array("partitions", partition="")),
            (
                array("groups", ERROR, group="group_id"),
                array("topics", topic="topic_name"),
                array(
                    "partitions",
                    ERROR,
                    {"start_offset": -1, "leader_epoch": -1, "lag": -1},
                    partition="partition_index",
                ),
            ),
            natural=0,
        ),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (
        Shape(
            ALL,
            (array("topics", topic="topic_name"), _PARTITIONS),
            (array("responses", topic="topic_name"), _FAILING_PARTITIONS),
            GROUP,
            natural=TOP,
        ),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (
        Shape(
            ALL,
            (array("topics", topic="topic_name"),),
            (array("responses", ERROR, topic="topic_name"),),
            GROUP,
            natural=TOP,
        ),
    ),
}

_STREAMS_GROUPS: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.STREAMS_GROUP_HEARTBEAT: (Shape(ALL, scalars=GROUP),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (
        Shape(ALL, (array("group_ids", group=""),), (array("groups", ERROR, group="group_id"),)),
    ),
}

_ADDED = array("topics", topic="name"), array("partitions", partition="")
_ADDED_RESULTS = array("results_by_partition", "partition_error_code", partition="partition_index")

_TRANSACTIONS: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.INIT_PRODUCER_ID: (Shape(ALL, scalars=TRANSACTION),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Shape(
            (0, 3),
            (array("v3_and_below_topics", topic="name"), _ADDED[1]),
            (array("results_by_topic_v3_and_below", topic="name"), _ADDED_RESULTS),
            (("transactional_id", "v3_and_below_transactional_id"),),
        ),
        Shape(
            (4, FOREVER),
            (array("transactions", transactional_id="transactional_id"), *_ADDED),
            (
                array("results_by_transaction", transactional_id="transactional_id"),
                array("topic_results", topic="name"),
                _ADDED_RESULTS,
            ),
        ),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (Shape(ALL, scalars=GROUP + TRANSACTION),),
    ApiKey.END_TXN: (Shape(ALL, scalars=TRANSACTION),),
    ApiKey.WRITE_TXN_MARKERS: (
        Shape(
            ALL,
            (array("markers", producer_id="producer_id"), _TOPICS, _INDEXES),
            (array("markers", producer_id="producer_id"), _TOPICS, _FAILING_PARTITIONS),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        Shape(ALL, (_TOPICS, _PARTITIONS), (_TOPICS, _FAILING_PARTITIONS), GROUP + TRANSACTION),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (Shape(ALL, (_TOPICS, _INDEXES), (_TOPICS, _FAILING_PARTITIONS)),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Shape(
            ALL,
            (array("transactional_ids", transactional_id=""),),
            (array("transaction_states", ERROR, transactional_id="transactional_id"),),
        ),
    ),
    ApiKey.LIST_TRANSACTIONS: (Shape(ALL),),
    ApiKey.LIST_CONFIG_RESOURCES: (Shape(ALL),),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (Shape(ALL),),
    ApiKey.PUSH_TELEMETRY: (Shape(ALL),),
}

_SHOWN_PARTITIONS = _response_only(array("partitions", ERROR, _LEADERS, partition="partition_index"))
_SHOWN_TOPICS = array("topics", ERROR, topic="name", topic_id="topic_id")

_TOPIC_APIS: dict[ApiKey, tuple[Shape, ...]] = {
    # Version 0 has no way to ask for no topics, so it is handled whole.
    ApiKey.METADATA: (
        Shape((0, 0), (_TOPICS,), (_SHOWN_TOPICS, _SHOWN_PARTITIONS), leaves_out=False, is_always_handled=True),
        Shape(
            (1, FOREVER),
            (array("topics", topic="name", topic_id="topic_id"),),
            (_SHOWN_TOPICS, _SHOWN_PARTITIONS),
            is_always_handled=True,
        ),
    ),
    ApiKey.CREATE_TOPICS: (
        Shape(
            ALL,
            (_TOPICS,),
            (array("topics", ERROR, {"num_partitions": -1, "replication_factor": -1, "configs": []}, topic="name"),),
        ),
    ),
    ApiKey.DELETE_TOPICS: (
        Shape((0, 5), (array("topic_names", topic=""),), (array("responses", ERROR, topic="name"),)),
        Shape(
            (6, FOREVER),
            (array("topics", topic="name", topic_id="topic_id"),),
            (array("responses", ERROR, topic="name", topic_id="topic_id"),),
        ),
    ),
    ApiKey.CREATE_PARTITIONS: (Shape(ALL, (_TOPICS,), (array("results", ERROR, topic="name"),)),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Shape(ALL, (_TOPICS,), (_SHOWN_TOPICS, _SHOWN_PARTITIONS)),),
}

_ALTERED = Array("responses", _RESOURCES.keys, ERROR)

_CONFIGURATION: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.DESCRIBE_CONFIGS: (
        Shape(ALL, (_RESOURCES,), (Array("results", _RESOURCES.keys, ERROR),), add_names=_resource),
    ),
    ApiKey.ALTER_CONFIGS: (Shape(ALL, (_RESOURCES,), (_ALTERED,), add_names=_resource),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Shape(ALL, (_RESOURCES,), (_ALTERED,), add_names=_resource),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (Shape(ALL),),
    ApiKey.ALTER_CLIENT_QUOTAS: (Shape(ALL, (array("entries"),), (array("entries", ERROR),)),),
}

_LOG_DIR_TOPICS = array("topics", topic="topic"), array("partitions", partition="")
_LOG_DIRS = _response_only(array("results", ERROR, log_dir="log_dir"))

_CLUSTER: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.API_VERSIONS: (Shape(ALL),),
    ApiKey.DESCRIBE_CLUSTER: (Shape(ALL),),
    # From version 2 on a change is made whole or not at all, and one error is all there is.
    ApiKey.UPDATE_FEATURES: (
        Shape((0, 1), (array("feature_updates", feature="feature"),), (array("results", ERROR, feature="feature"),)),
        Shape((2, FOREVER), (array("feature_updates", feature="feature"),)),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Shape(
            ALL,
            (array("dirs"), *_ADDED),
            (array("results", topic="topic_name"), _FAILING_PARTITIONS),
        ),
    ),
    # A log directory's error is all that the first versions have.
    ApiKey.DESCRIBE_LOG_DIRS: (
        Shape((0, 2), _LOG_DIR_TOPICS, (_LOG_DIRS,), natural=0, is_always_handled=True, has_top=False),
        Shape((3, FOREVER), _LOG_DIR_TOPICS, natural=TOP),
    ),
    ApiKey.ELECT_LEADERS: (
        Shape(
            ALL,
            (array("topic_partitions", topic="topic"), array("partitions", partition="")),
            (
                array("replica_election_results", topic="topic"),
                array("partition_result", ERROR, partition="partition_id"),
            ),
        ),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        Shape(ALL, (_TOPICS, _PARTITIONS), (array("responses", topic="name"), _FAILING_PARTITIONS)),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (Shape(ALL, (_TOPICS, _INDEXES)),),
}

_STOPPED = (_FLAT_PARTITIONS,)

_BETWEEN_BROKERS: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.LEADER_AND_ISR: (
        Shape((0, 1), (_UNGROUPED_STATES,), (_FLAT_PARTITIONS,)),
        Shape((2, 4), (_TOPIC_STATES, _STATES), (_FLAT_PARTITIONS,)),
        Shape(
            (5, FOREVER),
            (_TOPIC_STATES, _STATES),
            (array("topics", topic_id="topic_id"), array("partition_errors", ERROR, partition="partition_index")),
        ),
    ),
    ApiKey.STOP_REPLICA: (
        Shape((0, 0), (array("ungrouped_partitions", topic="topic_name", partition="partition_index"),), _STOPPED),
        Shape((1, 2), (_TOPICS, _INDEXES), _STOPPED),
        Shape((3, FOREVER), (array("topic_states", topic="topic_name"), _STATES), _STOPPED),
    ),
    ApiKey.UPDATE_METADATA: (
        Shape((0, 4), (_UNGROUPED_STATES,)),
        Shape((5, FOREVER), (_TOPIC_STATES, _STATES)),
    ),
    ApiKey.CONTROLLED_SHUTDOWN: (Shape(ALL),),
    ApiKey.ALTER_PARTITION: (
        Shape(
            ALL,
            (array("topics", topic="topic_name", topic_id="topic_id"), _PARTITIONS),
            (array("topics", topic="topic_name", topic_id="topic_id"), _FAILING_PARTITIONS),
        ),
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: (Shape(ALL),),
}

_SECURITY: dict[ApiKey, tuple[Shape, ...]] = {
    ApiKey.SASL_HANDSHAKE: (Shape(ALL),),
    ApiKey.SASL_AUTHENTICATE: (Shape(ALL),),
    ApiKey.DESCRIBE_ACLS: (Shape(ALL),),
    ApiKey.CREATE_ACLS: (Shape(ALL, (array("creations"),), (array("results", ERROR),)),),
    ApiKey.DELETE_ACLS: (Shape(ALL, (array("filters"),), (array("filter_results", ERROR),)),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Shape(ALL),),
    ApiKey.CREATE_DELEGATION_TOKEN: (Shape(ALL),),
    ApiKey.RENEW_DELEGATION_TOKEN: (Shape(ALL),),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (Shape(ALL),),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (Shape(ALL),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        Shape(ALL, (array("upsertions", user="name"),), (array("results", ERROR, user="user"),)),
    ),
}

SHAPES: dict[ApiKey, tuple[Shape, ...]] = {
    **_RECORDS,
    **_GROUPS,
    **_SHARE_GROUPS,
    **_STREAMS_GROUPS,
    **_TRANSACTIONS,
    **_TOPIC_APIS,
    **_CONFIGURATION,
    **_CLUSTER,
    **_BETWEEN_BROKERS,
    **_SECURITY,
}

NO_ENTITIES = Shape(ALL)


def shape_of(key: ApiKey, version: int) -> Shape:
    """The shape of a request; one without entities for an API that is not in the table."""
    for shape in SHAPES.get(key, ()):
        if shape.versions[0] <= version <= shape.versions[1]:
            return shape
    return NO_ENTITIES


def kinds_of(key: ApiKey) -> frozenset[str]:
    """What a rule may name about requests of this API, in some version."""
    kinds = frozenset[str]().union(*(shape.kinds for shape in SHAPES.get(key, ())))
    if "coordinator_key" in kinds:
        kinds |= {"group", "transactional_id"}
    if "resource_name" in kinds:
        kinds |= {"topic", "group"}
    return kinds
