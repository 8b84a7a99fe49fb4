"""Which module serves which API.

A handler and its messages are imported on the API's first use: a start would take a third longer with all of them.
The imports are written out, so that import-linter and a reader's editor see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.broker.requests.dispatch import Handler
from kpybroker.core.authorizer import AllowAll
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker


def load(key: ApiKey) -> Handler:
    """The handler of an API that is served; KeyError for any other."""
    for shelf in _SHELVES:
        handler = shelf(key)
        if handler is not None:
            return handler
    raise KeyError(key)


async def respond_locally(broker: Broker, key: ApiKey, message: Any, version: int) -> Any:
    """The response of this broker to one of its own requests, without a socket or encoding.

    A KafkaError of the handler is a response with its code; any other exception is raised.
    """
    handler = load(key)
    context = RequestContext(PlainConnectionInfo(connection_id="controller"), AllowAll(), key, version)
    try:
        return await handler.handle(broker, message, context)
    except KafkaError as error:
        return handler.error_response(message, context, error)


def _client_metrics(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:
            from kpybroker.broker.handlers.client_metrics import get_telemetry_subscriptions as handler
        case ApiKey.PUSH_TELEMETRY:
            from kpybroker.broker.handlers.client_metrics import push_telemetry as handler
        case _:
            return None
    return handler


def _records(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.PRODUCE:
            from kpybroker.broker.handlers.records import produce as handler
        case ApiKey.FETCH:
            from kpybroker.broker.handlers.records import fetch as handler
        case ApiKey.LIST_OFFSETS:
            from kpybroker.broker.handlers.records import list_offsets as handler
        case ApiKey.DELETE_RECORDS:
            from kpybroker.broker.handlers.records import delete_records as handler
        case ApiKey.OFFSET_FOR_LEADER_EPOCH:
            from kpybroker.broker.handlers.records import offset_for_leader_epoch as handler
        case ApiKey.SHARE_FETCH:
            from kpybroker.broker.handlers.records import share_fetch as handler
        case ApiKey.SHARE_ACKNOWLEDGE:
            from kpybroker.broker.handlers.records import share_acknowledge as handler
        case _:
            return None
    return handler


def _groups(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.OFFSET_COMMIT:
            from kpybroker.broker.handlers.groups import offset_commit as handler
        case ApiKey.OFFSET_FETCH:
            from kpybroker.broker.handlers.groups import offset_fetch as handler
        case ApiKey.FIND_COORDINATOR:
            from kpybroker.broker.handlers.groups import find_coordinator as handler
        case ApiKey.JOIN_GROUP:
            from kpybroker.broker.handlers.groups import join_group as handler
        case ApiKey.HEARTBEAT:
            from kpybroker.broker.handlers.groups import heartbeat as handler
        case ApiKey.LEAVE_GROUP:
            from kpybroker.broker.handlers.groups import leave_group as handler
        case ApiKey.SYNC_GROUP:
            from kpybroker.broker.handlers.groups import sync_group as handler
        case ApiKey.DESCRIBE_GROUPS:
            from kpybroker.broker.handlers.groups import describe_groups as handler
        case ApiKey.LIST_GROUPS:
            from kpybroker.broker.handlers.groups import list_groups as handler
        case ApiKey.DELETE_GROUPS:
            from kpybroker.broker.handlers.groups import delete_groups as handler
        case ApiKey.OFFSET_DELETE:
            from kpybroker.broker.handlers.groups import offset_delete as handler
        case ApiKey.CONSUMER_GROUP_HEARTBEAT:
            from kpybroker.broker.handlers.groups import consumer_group_heartbeat as handler
        case ApiKey.CONSUMER_GROUP_DESCRIBE:
            from kpybroker.broker.handlers.groups import consumer_group_describe as handler
        case _:
            return None
    return handler


def _share_groups(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.SHARE_GROUP_HEARTBEAT:
            from kpybroker.broker.handlers.share_groups import share_group_heartbeat as handler
        case ApiKey.SHARE_GROUP_DESCRIBE:
            from kpybroker.broker.handlers.share_groups import share_group_describe as handler
        case ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
            from kpybroker.broker.handlers.share_groups import describe_share_group_offsets as handler
        case ApiKey.ALTER_SHARE_GROUP_OFFSETS:
            from kpybroker.broker.handlers.share_groups import alter_share_group_offsets as handler
        case ApiKey.DELETE_SHARE_GROUP_OFFSETS:
            from kpybroker.broker.handlers.share_groups import delete_share_group_offsets as handler
        case _:
            return None
    return handler


def _streams_groups(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.STREAMS_GROUP_HEARTBEAT:
            from kpybroker.broker.handlers.streams_groups import streams_group_heartbeat as handler
        case ApiKey.STREAMS_GROUP_DESCRIBE:
            from kpybroker.broker.handlers.streams_groups import streams_group_describe as handler
        case _:
            return None
    return handler


def _transactions(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.INIT_PRODUCER_ID:
            from kpybroker.broker.handlers.transactions import init_producer_id as handler
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            from kpybroker.broker.handlers.transactions import add_partitions_to_txn as handler
        case ApiKey.ADD_OFFSETS_TO_TXN:
            from kpybroker.broker.handlers.transactions import add_offsets_to_txn as handler
        case ApiKey.END_TXN:
            from kpybroker.broker.handlers.transactions import end_txn as handler
        case ApiKey.TXN_OFFSET_COMMIT:
            from kpybroker.broker.handlers.transactions import txn_offset_commit as handler
        case ApiKey.DESCRIBE_PRODUCERS:
            from kpybroker.broker.handlers.transactions import describe_producers as handler
        case ApiKey.DESCRIBE_TRANSACTIONS:
            from kpybroker.broker.handlers.transactions import describe_transactions as handler
        case ApiKey.LIST_TRANSACTIONS:
            from kpybroker.broker.handlers.transactions import list_transactions as handler
        case _:
            return None
    return handler


def _share_state(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.INITIALIZE_SHARE_GROUP_STATE:
            from kpybroker.broker.handlers.share_state import initialize_share_group_state as handler
        case ApiKey.READ_SHARE_GROUP_STATE:
            from kpybroker.broker.handlers.share_state import read_share_group_state as handler
        case ApiKey.WRITE_SHARE_GROUP_STATE:
            from kpybroker.broker.handlers.share_state import write_share_group_state as handler
        case ApiKey.DELETE_SHARE_GROUP_STATE:
            from kpybroker.broker.handlers.share_state import delete_share_group_state as handler
        case ApiKey.READ_SHARE_GROUP_STATE_SUMMARY:
            from kpybroker.broker.handlers.share_state import read_share_group_state_summary as handler
        case _:
            return None
    return handler


def _topics(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.METADATA:
            from kpybroker.broker.handlers.topics import metadata as handler
        case ApiKey.CREATE_TOPICS:
            from kpybroker.broker.handlers.topics import create_topics as handler
        case ApiKey.DELETE_TOPICS:
            from kpybroker.broker.handlers.topics import delete_topics as handler
        case ApiKey.CREATE_PARTITIONS:
            from kpybroker.broker.handlers.topics import create_partitions as handler
        case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            from kpybroker.broker.handlers.topics import describe_topic_partitions as handler
        case _:
            return None
    return handler


def _configuration(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.DESCRIBE_CONFIGS:
            from kpybroker.broker.handlers.configuration import describe_configs as handler
        case ApiKey.ALTER_CONFIGS:
            from kpybroker.broker.handlers.configuration import alter_configs as handler
        case ApiKey.INCREMENTAL_ALTER_CONFIGS:
            from kpybroker.broker.handlers.configuration import incremental_alter_configs as handler
        case ApiKey.LIST_CONFIG_RESOURCES:
            from kpybroker.broker.handlers.configuration import list_config_resources as handler
        case _:
            return None
    return handler


def _cluster(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.API_VERSIONS:
            from kpybroker.broker.handlers.cluster import api_versions as handler
        case ApiKey.ALTER_REPLICA_LOG_DIRS:
            from kpybroker.broker.handlers.cluster import alter_replica_log_dirs as handler
        case ApiKey.DESCRIBE_LOG_DIRS:
            from kpybroker.broker.handlers.cluster import describe_log_dirs as handler
        case ApiKey.UPDATE_FEATURES:
            from kpybroker.broker.handlers.cluster import update_features as handler
        case ApiKey.ELECT_LEADERS:
            from kpybroker.broker.handlers.cluster import elect_leaders as handler
        case ApiKey.ALTER_PARTITION_REASSIGNMENTS:
            from kpybroker.broker.handlers.cluster import alter_partition_reassignments as handler
        case ApiKey.LIST_PARTITION_REASSIGNMENTS:
            from kpybroker.broker.handlers.cluster import list_partition_reassignments as handler
        case ApiKey.DESCRIBE_CLUSTER:
            from kpybroker.broker.handlers.cluster import describe_cluster as handler
        case _:
            return None
    return handler


def _between_brokers(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.LEADER_AND_ISR:
            from kpybroker.broker.handlers.between_brokers import leader_and_isr as handler
        case ApiKey.STOP_REPLICA:
            from kpybroker.broker.handlers.between_brokers import stop_replica as handler
        case ApiKey.UPDATE_METADATA:
            from kpybroker.broker.handlers.between_brokers import update_metadata as handler
        case ApiKey.CONTROLLED_SHUTDOWN:
            from kpybroker.broker.handlers.between_brokers import controlled_shutdown as handler
        case ApiKey.WRITE_TXN_MARKERS:
            from kpybroker.broker.handlers.between_brokers import write_txn_markers as handler
        case ApiKey.ALTER_PARTITION:
            from kpybroker.broker.handlers.between_brokers import alter_partition as handler
        case ApiKey.ALLOCATE_PRODUCER_IDS:
            from kpybroker.broker.handlers.between_brokers import allocate_producer_ids as handler
        case _:
            return None
    return handler


def _security(key: ApiKey) -> Handler | None:
    handler: Handler
    match key:
        case ApiKey.DESCRIBE_ACLS:
            from kpybroker.broker.handlers.security import describe_acls as handler
        case ApiKey.CREATE_ACLS:
            from kpybroker.broker.handlers.security import create_acls as handler
        case ApiKey.DELETE_ACLS:
            from kpybroker.broker.handlers.security import delete_acls as handler
        case ApiKey.SASL_HANDSHAKE:
            from kpybroker.broker.handlers.security import sasl_handshake as handler
        case ApiKey.SASL_AUTHENTICATE:
            from kpybroker.broker.handlers.security import sasl_authenticate as handler
        case ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
            from kpybroker.broker.handlers.security import describe_user_scram_credentials as handler
        case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            from kpybroker.broker.handlers.security import alter_user_scram_credentials as handler
        case ApiKey.DESCRIBE_CLIENT_QUOTAS:
            from kpybroker.broker.handlers.security import describe_client_quotas as handler
        case ApiKey.ALTER_CLIENT_QUOTAS:
            from kpybroker.broker.handlers.security import alter_client_quotas as handler
        case ApiKey.CREATE_DELEGATION_TOKEN:
            from kpybroker.broker.handlers.security import create_delegation_token as handler
        case ApiKey.RENEW_DELEGATION_TOKEN:
            from kpybroker.broker.handlers.security import renew_delegation_token as handler
        case ApiKey.EXPIRE_DELEGATION_TOKEN:
            from kpybroker.broker.handlers.security import expire_delegation_token as handler
        case ApiKey.DESCRIBE_DELEGATION_TOKEN:
            from kpybroker.broker.handlers.security import describe_delegation_token as handler
        case _:
            return None
    return handler


_SHELVES = (
    *(_records, _groups, _transactions, _topics, _configuration, _cluster, _between_brokers, _security),
    *(_client_metrics, _share_groups, _share_state, _streams_groups),
)
