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
    """The handler of a served API; KeyError for one that is not in `served.SERVED`."""
    for shelf in (_records, _groups, _transactions, _topics, _configuration, _cluster, _between_brokers):
        handler = shelf(key)
        if handler is not None:
            return handler
    raise KeyError(key)


async def answer_locally(broker: Broker, key: ApiKey, message: Any, version: int) -> Any:
    """The response of this broker to one of its own requests, without a socket or encoding.

    A KafkaError of the handler is a response with its code; any other exception is raised.
    """
    handler = load(key)
    context = RequestContext(PlainConnectionInfo(connection_id="controller"), AllowAll(), key, version)
    try:
        return await handler.handle(broker, message, context)
    except KafkaError as error:
        return handler.error_response(message, context, error)


def _records(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.PRODUCE:
            from kpybroker.broker.handlers.records import produce

            return produce
        case ApiKey.FETCH:
            from kpybroker.broker.handlers.records import fetch

            return fetch
        case ApiKey.LIST_OFFSETS:
            from kpybroker.broker.handlers.records import list_offsets

            return list_offsets
        case ApiKey.DELETE_RECORDS:
            from kpybroker.broker.handlers.records import delete_records

            return delete_records
        case ApiKey.OFFSET_FOR_LEADER_EPOCH:
            from kpybroker.broker.handlers.records import offset_for_leader_epoch

            return offset_for_leader_epoch
        case _:
            return None


def _groups(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.OFFSET_COMMIT:
            from kpybroker.broker.handlers.groups import offset_commit

            return offset_commit
        case ApiKey.OFFSET_FETCH:
            from kpybroker.broker.handlers.groups import offset_fetch

            return offset_fetch
        case ApiKey.FIND_COORDINATOR:
            from kpybroker.broker.handlers.groups import find_coordinator

            return find_coordinator
        case ApiKey.JOIN_GROUP:
            from kpybroker.broker.handlers.groups import join_group

            return join_group
        case ApiKey.HEARTBEAT:
            from kpybroker.broker.handlers.groups import heartbeat

            return heartbeat
        case ApiKey.LEAVE_GROUP:
            from kpybroker.broker.handlers.groups import leave_group

            return leave_group
        case ApiKey.SYNC_GROUP:
            from kpybroker.broker.handlers.groups import sync_group

            return sync_group
        case ApiKey.DESCRIBE_GROUPS:
            from kpybroker.broker.handlers.groups import describe_groups

            return describe_groups
        case ApiKey.LIST_GROUPS:
            from kpybroker.broker.handlers.groups import list_groups

            return list_groups
        case ApiKey.DELETE_GROUPS:
            from kpybroker.broker.handlers.groups import delete_groups

            return delete_groups
        case ApiKey.OFFSET_DELETE:
            from kpybroker.broker.handlers.groups import offset_delete

            return offset_delete
        case ApiKey.CONSUMER_GROUP_HEARTBEAT:
            from kpybroker.broker.handlers.groups import consumer_group_heartbeat

            return consumer_group_heartbeat
        case ApiKey.SHARE_GROUP_HEARTBEAT:
            from kpybroker.broker.handlers.groups import share_group_heartbeat

            return share_group_heartbeat
        case _:
            return None


def _transactions(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.INIT_PRODUCER_ID:
            from kpybroker.broker.handlers.transactions import init_producer_id

            return init_producer_id
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            from kpybroker.broker.handlers.transactions import add_partitions_to_txn

            return add_partitions_to_txn
        case ApiKey.ADD_OFFSETS_TO_TXN:
            from kpybroker.broker.handlers.transactions import add_offsets_to_txn

            return add_offsets_to_txn
        case ApiKey.END_TXN:
            from kpybroker.broker.handlers.transactions import end_txn

            return end_txn
        case ApiKey.TXN_OFFSET_COMMIT:
            from kpybroker.broker.handlers.transactions import txn_offset_commit

            return txn_offset_commit
        case ApiKey.DESCRIBE_PRODUCERS:
            from kpybroker.broker.handlers.transactions import describe_producers

            return describe_producers
        case ApiKey.DESCRIBE_TRANSACTIONS:
            from kpybroker.broker.handlers.transactions import describe_transactions

            return describe_transactions
        case ApiKey.LIST_TRANSACTIONS:
            from kpybroker.broker.handlers.transactions import list_transactions

            return list_transactions
        case _:
            return None


def _topics(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.METADATA:
            from kpybroker.broker.handlers.topics import metadata

            return metadata
        case ApiKey.CREATE_TOPICS:
            from kpybroker.broker.handlers.topics import create_topics

            return create_topics
        case ApiKey.DELETE_TOPICS:
            from kpybroker.broker.handlers.topics import delete_topics

            return delete_topics
        case ApiKey.CREATE_PARTITIONS:
            from kpybroker.broker.handlers.topics import create_partitions

            return create_partitions
        case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            from kpybroker.broker.handlers.topics import describe_topic_partitions

            return describe_topic_partitions
        case _:
            return None


def _configuration(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.DESCRIBE_CONFIGS:
            from kpybroker.broker.handlers.configuration import describe_configs

            return describe_configs
        case ApiKey.ALTER_CONFIGS:
            from kpybroker.broker.handlers.configuration import alter_configs

            return alter_configs
        case ApiKey.INCREMENTAL_ALTER_CONFIGS:
            from kpybroker.broker.handlers.configuration import incremental_alter_configs

            return incremental_alter_configs
        case _:
            return None


def _cluster(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.API_VERSIONS:
            from kpybroker.broker.handlers.cluster import api_versions

            return api_versions
        case ApiKey.ALTER_REPLICA_LOG_DIRS:
            from kpybroker.broker.handlers.cluster import alter_replica_log_dirs

            return alter_replica_log_dirs
        case ApiKey.DESCRIBE_LOG_DIRS:
            from kpybroker.broker.handlers.cluster import describe_log_dirs

            return describe_log_dirs
        case ApiKey.ELECT_LEADERS:
            from kpybroker.broker.handlers.cluster import elect_leaders

            return elect_leaders
        case ApiKey.ALTER_PARTITION_REASSIGNMENTS:
            from kpybroker.broker.handlers.cluster import alter_partition_reassignments

            return alter_partition_reassignments
        case ApiKey.LIST_PARTITION_REASSIGNMENTS:
            from kpybroker.broker.handlers.cluster import list_partition_reassignments

            return list_partition_reassignments
        case ApiKey.DESCRIBE_CLUSTER:
            from kpybroker.broker.handlers.cluster import describe_cluster

            return describe_cluster
        case _:
            return None


def _between_brokers(key: ApiKey) -> Handler | None:
    match key:
        case ApiKey.LEADER_AND_ISR:
            from kpybroker.broker.handlers.between_brokers import leader_and_isr

            return leader_and_isr
        case ApiKey.STOP_REPLICA:
            from kpybroker.broker.handlers.between_brokers import stop_replica

            return stop_replica
        case ApiKey.UPDATE_METADATA:
            from kpybroker.broker.handlers.between_brokers import update_metadata

            return update_metadata
        case ApiKey.CONTROLLED_SHUTDOWN:
            from kpybroker.broker.handlers.between_brokers import controlled_shutdown

            return controlled_shutdown
        case ApiKey.WRITE_TXN_MARKERS:
            from kpybroker.broker.handlers.between_brokers import write_txn_markers

            return write_txn_markers
        case ApiKey.ALTER_PARTITION:
            from kpybroker.broker.handlers.between_brokers import alter_partition

            return alter_partition
        case ApiKey.ALLOCATE_PRODUCER_IDS:
            from kpybroker.broker.handlers.between_brokers import allocate_producer_ids

            return allocate_producer_ids
        case _:
            return None
