"""FindCoordinator 0-6: which broker coordinates a group, a transactional id or the state of a share partition.

It is the leader of the key's partition of the internal topic, which is created by the first request. That request waits
a moment for the topic, so that a client's first group starts without a retry. Without a leader by then the response is
COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import SHARE_VERSION
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.core.share_coordinator.values import check_coordinator_key
from kpybroker.core.topic_names import (
    GROUP_METADATA_TOPIC_NAME,
    SHARE_GROUP_STATE_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
)
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot, Node
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.KafkaApis")

LEDGER = Ledger(
    ApiKey.FIND_COORDINATOR,
    0,
    6,
    {
        0: "groups",
        1: "key type: transactional ids too; throttle time, error message",
        3: "flexible",
        4: "several keys (KIP-699)",
        5: "TRANSACTION_ABORTABLE",
        6: "key type of share partitions, for brokers (KIP-932)",
    },
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_KEYS_FROM = 4
SHARE_FROM = 6
CREATION_WAIT_S_MAX = 3.0
Coordinator = FindCoordinatorResponse.Coordinator


@dataclass(frozen=True, slots=True)
class CoordinatorType:
    """What the kinds of coordinators differ in. `resource_type` is None for that of share partitions, for brokers."""

    topic: str
    partitions_key: str
    factor_key: str
    resource_type: ResourceType | None


TYPES = {
    GROUP: CoordinatorType(
        GROUP_METADATA_TOPIC_NAME,
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        ResourceType.GROUP,
    ),
    TRANSACTION: CoordinatorType(
        TRANSACTION_STATE_TOPIC_NAME,
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        ResourceType.TRANSACTIONAL_ID,
    ),
    SHARE: CoordinatorType(
        SHARE_GROUP_STATE_TOPIC_NAME,
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        None,
    ),
}


async def handle(broker: Broker, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """The coordinator of each key; its internal topic is created if it does not exist."""
    if context.api_version < SEVERAL_KEYS_FROM:
        node = await _find(broker, context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_message=ErrorCode.NONE.name, node_id=node.id, host=node.host, port=node.port
        )
    response, budget = FindCoordinatorResponse(), YieldBudget()
    for key in request.coordinator_keys:
        response.coordinators.append(await _find_one(broker, context, request.key_type, key))
        await budget.spend()
    return response


async def _find_one(broker: Broker, context: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        node = await _find(broker, context, key_type, key)
    except KafkaError as error:
        if error.code is ErrorCode.INVALID_REQUEST and key_type not in TYPES:
            raise
        return Coordinator(key=key, error_code=error.code, node_id=-1, port=-1)
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)


async def _find(broker: Broker, context: RequestContext, key_type: int, key: str) -> Node:
    """Raises KafkaError when there is no coordinator to name."""
    coordinator_type = TYPES.get(key_type)
    if coordinator_type is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}")
    if coordinator_type.resource_type is None:
        _check_share_key(broker, context, key)
    else:
        context.require(Operation.DESCRIBE, coordinator_type.resource_type, key)
    topic = coordinator_type.topic
    if not broker.metadata.contains(topic):
        code = (await broker.topics.auto_create([topic], mutations=context.side_mutations()))[topic]
        if code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            factor = coordinator_type.factor_key
            setting = f" ({factor}={broker.config.get(factor)})" if code is ErrorCode.INVALID_REPLICATION_FACTOR else ""
            client = client_name(context.connection)
            logger.warning("Cannot create %s for %s: %s%s", topic, client, code.message, setting)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition_count = broker.metadata.partition_count(topic) or broker.config.get_int(coordinator_type.partitions_key)
    index = coordinator_partition(key, partition_count)
    if TopicPartition(topic, index) in broker.controller.leaderless:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # without waiting for a leader that will not come
    if not await broker.metadata.wait_until(_has_leader(topic, index), CREATION_WAIT_S_MAX):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    found = broker.metadata.leader_and_epoch(topic, index)
    node = None if found is None else broker.metadata.endpoint_for(context, found[0])
    if node is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return node


def _has_leader(topic: str, index: int) -> Callable[[MetadataSnapshot], bool]:
    return lambda snapshot: snapshot.has_leader(topic, index)


def _check_share_key(broker: Broker, context: RequestContext, key: str) -> None:
    """Whether a coordinator of share partitions may be asked for. The order is that of Kafka 4.3, or of Kafka 3.9 for a
    broker that knows no share groups.
    """
    if context.api_version < SHARE_FROM:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if SHARE_VERSION in broker.features.supported:
        check_coordinator_key(key)
    if not broker.metadata.snapshot.features.level(SHARE_VERSION):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def error_response(
    request: FindCoordinatorRequest, context: RequestContext, error: KafkaError
) -> FindCoordinatorResponse:
    """The error at each key, before version 4 at the top of the response."""
    if context.api_version < SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(error_code=error.code, error_message=error.message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, error_code=error.code, error_message=error.message, node_id=-1, port=-1)
            for key in request.coordinator_keys
        ]
    )
