"""UpdateMetadata 0-8 (between brokers): the controller sends live brokers and partition leaders.

It goes into the metadata cache, which wakes requests that wait for a topic to appear or to vanish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.between_brokers.checks import is_stale
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.replication import state_change_log
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import is_valid
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.UPDATE_METADATA,
    0,
    8,
    {
        0: "one PLAINTEXT address a broker",
        1: "endpoints by security protocol",
        2: "rack",
        3: "listener names",
        4: "offline replicas",
        5: "broker epoch; partitions grouped by topic (KIP-380)",
        6: "flexible",
        7: "topic ids (KIP-516)",
        8: "is_kraft_controller, type: read and passed over, for there is no KRaft controller here",
    },
)


async def handle(broker: Broker, request: UpdateMetadataRequest, context: RequestContext) -> UpdateMetadataResponse:
    """Update the metadata cache, unless the request is for an earlier registration."""
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    async with broker.replicas.state_change_lock:
        if is_stale(broker, request.broker_epoch, request.controller_id, request.controller_epoch, "UpdateMetadata"):
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        deleted_count = await _update(broker, request)
        await state_change_log.updated_metadata(broker.node_id, request, context.correlation_id, deleted_count)
    return UpdateMetadataResponse()


async def _update(broker: Broker, request: UpdateMetadataRequest) -> int:
    """How many partitions were deleted."""
    if request.controller_epoch < broker.replicas.controller_epoch:
        raise KafkaError(
            ErrorCode.STALE_CONTROLLER_EPOCH,
            f"Received update metadata request from controller {request.controller_id} with an old controller epoch "
            f"{request.controller_epoch}. Latest known controller epoch is {broker.replicas.controller_epoch}",
        )
    broker.replicas.controller_epoch = request.controller_epoch
    _drop_invalid(request)
    alive_before = set(broker.metadata.snapshot.brokers)
    deleted = await broker.metadata.update(request)
    if not alive_before <= set(broker.metadata.snapshot.brokers):
        budget = YieldBudget()
        for partition in broker.replicas:
            partition.advance_again()
            await budget.spend()
    for topic in {topic for topic, _ in deleted if not broker.metadata.contains(topic)}:
        broker.coordinators.on_topic_deleted(topic)
        broker.configs.forget(topic)
    if deleted:
        await broker.replicas.delete_left_behind(request)
    return len(deleted)


def _drop_invalid(request: UpdateMetadataRequest) -> None:
    """Of names that no topic may have the cache knows nothing: they are paths in the tree, and directories."""
    request.topic_states = [topic for topic in request.topic_states if is_valid(topic.topic_name)]
    states = request.ungrouped_partition_states
    request.ungrouped_partition_states = [state for state in states if is_valid(state.topic_name)]


def error_response(
    request: UpdateMetadataRequest, context: RequestContext, error: KafkaError
) -> UpdateMetadataResponse:
    """The error at the top of the response."""
    return UpdateMetadataResponse(error_code=error.code)
