"""LeaderAndIsr 0-7 (between brokers): the controller assigns partitions to lead or to follow.

A request for an earlier registration of this broker (an older broker epoch) changes nothing. Not here: what becoming a
leader or a follower means (`broker.replication.replicas`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.between_brokers.checks import is_stale
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.broker.replication import state_change_log
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import is_valid
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.LEADER_AND_ISR,
    0,
    7,
    {
        0: "leader, ISR and epochs of each partition",
        1: "is_new",
        2: "broker epoch; partitions grouped by topic (KIP-380)",
        3: "adding and removing replicas (KIP-455)",
        4: "flexible",
        5: "topic ids, and responses by topic id (KIP-516)",
        6: "leader recovery state (KIP-704)",
        7: "is_kraft_controller, type: read and passed over, for there is no KRaft controller here",
    },
)


async def handle(broker: Broker, request: LeaderAndIsrRequest, context: RequestContext) -> LeaderAndIsrResponse:
    """Become leader or follower of each partition, unless the request is for an earlier registration."""
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    async with broker.replicas.state_change_lock:
        # A log is made with its topic's settings: have them before the controller's word is taken.
        await broker.configs.prefetch(await _topics(request))
        if is_stale(broker, request.broker_epoch, request.controller_id, request.controller_epoch, "LeaderAndIsr"):
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        began_s, correlation_id = broker.clock.monotonic(), context.correlation_id
        count = await state_change_log.received_leader_and_isr(broker.node_id, request, correlation_id)
        response = await broker.replicas.become_leader_or_follower(request, context.api_version, correlation_id)
        took_ms = round((broker.clock.monotonic() - began_s) * 1000)
        state_change_log.finished_leader_and_isr(broker.node_id, request, correlation_id, count, took_ms)
        return response


async def _topics(request: LeaderAndIsrRequest) -> dict[str, bool]:
    """Name -> whether the request makes a partition of it for the first time."""
    topics: dict[str, bool] = {}
    budget = YieldBudget()
    for state in request.ungrouped_partition_states:
        if not is_valid(state.topic_name):  # refused partition by partition
            continue
        topics[state.topic_name] = topics.get(state.topic_name, False) or state.is_new
        await budget.spend()
    for topic in request.topic_states:
        if is_valid(topic.topic_name):
            topics[topic.topic_name] = any(state.is_new for state in topic.partition_states)
        await budget.spend()
    await budget.spend(ELEMENT * len(topics))
    return topics


def error_response(request: LeaderAndIsrRequest, context: RequestContext, error: KafkaError) -> LeaderAndIsrResponse:
    """The error at the top of the response, before version 5 also at each partition."""
    if context.api_version < 5:
        states = list(request.ungrouped_partition_states)
        states += [state for topic in request.topic_states for state in topic.partition_states]
        partition_errors = [
            LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                topic_name=state.topic_name, partition_index=state.partition_index, error_code=error.code
            )
            for state in states
        ]
        return LeaderAndIsrResponse(error_code=error.code, partition_errors=partition_errors)
    topics = [
        LeaderAndIsrResponse.LeaderAndIsrTopicError(
            topic_id=topic.topic_id,
            partition_errors=[
                LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                    partition_index=state.partition_index, error_code=error.code
                )
                for state in topic.partition_states
            ],
        )
        for topic in request.topic_states
    ]
    return LeaderAndIsrResponse(error_code=error.code, topics=topics)
