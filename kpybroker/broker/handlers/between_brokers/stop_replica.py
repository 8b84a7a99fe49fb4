"""StopReplica 0-4 (between brokers): the controller names replicas to stop, and replicas to delete.

Not here: stopping and deleting (`broker.replication.replicas`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.between_brokers.checks import is_stale
from kpybroker.broker.replication import state_change_log
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.STOP_REPLICA,
    0,
    4,
    {
        0: "one delete flag for all",
        1: "broker epoch; partitions grouped by topic (KIP-380)",
        2: "flexible",
        3: "leader epoch and delete flag of each partition (KIP-570)",
        4: "is_kraft_controller: read and passed over, for there is no KRaft controller here",
    },
)


async def handle(broker: Broker, request: StopReplicaRequest, context: RequestContext) -> StopReplicaResponse:
    """Stop each replica, unless the request is for an earlier registration."""
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    async with broker.replicas.state_change_lock:
        if is_stale(broker, request.broker_epoch, request.controller_id, request.controller_epoch, "StopReplica"):
            return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        await state_change_log.received_stop_replica(broker.node_id, request, context.correlation_id)
        return await broker.replicas.stop_replicas(request)


def error_response(request: StopReplicaRequest, context: RequestContext, error: KafkaError) -> StopReplicaResponse:
    """The error at the top of the response and at each partition."""
    partitions = [(p.topic_name, p.partition_index) for p in request.ungrouped_partitions]
    partitions += [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    partitions += [
        (topic.topic_name, state.partition_index) for topic in request.topic_states for state in topic.partition_states
    ]
    partition_errors = [
        StopReplicaResponse.StopReplicaPartitionError(topic_name=name, partition_index=index, error_code=error.code)
        for name, index in partitions
    ]
    return StopReplicaResponse(error_code=error.code, partition_errors=partition_errors)
