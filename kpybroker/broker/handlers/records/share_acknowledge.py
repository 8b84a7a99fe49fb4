"""ShareAcknowledge 1-2: acknowledge records of a share group without fetching, as a member does that leaves (KIP-932).

The response waits until what changes is persisted. Epoch -1 ends the session, and releases what the member still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.records.share_acknowledgements import (
    RENEWALS_FROM,
    TopicAccess,
    acknowledge,
    current_leader,
    leader_endpoints,
    require_member,
)
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.share.sessions import FINAL_EPOCH
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SHARE_ACKNOWLEDGE,
    1,
    2,
    {1: "acknowledgements (KIP-932)", 2: "renewed locks (KIP-1222)"},
)

Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
Partition = ShareAcknowledgeResponse.PartitionData


def handle(
    broker: Broker, request: ShareAcknowledgeRequest, context: RequestContext
) -> Steps[ShareAcknowledgeResponse]:
    """The result of each partition."""
    key = require_member(broker, context, request.group_id, request.member_id)
    service = broker.coordinators.share_partitions
    session = service.sessions.acknowledging(key, request.share_session_epoch)
    renews = context.api_version >= RENEWALS_FROM and request.is_renew_ack
    access = TopicAccess(broker, context)
    acknowledged = yield from acknowledge(broker, access, key, request.topics, renews)
    results = yield from acknowledged.results()
    if request.share_session_epoch == FINAL_EPOCH and service.sessions.remove(key) is not None:
        service.release(session)
    settings = service.settings_of(key.group_id)
    response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=settings.partition.record_lock_duration_ms)
    topics: dict[bytes, Topic] = {}
    for partition_id, code in results.items():
        message = acknowledged.message(partition_id)
        data = Partition(partition_index=partition_id.partition, error_code=code, error_message=message)
        name = access.name(partition_id.topic_id)
        leader = current_leader(broker, name, partition_id.partition, code, ShareAcknowledgeResponse.LeaderIdAndEpoch)
        if leader is not None:
            data.current_leader = leader
        topics.setdefault(partition_id.topic_id, Topic(topic_id=partition_id.topic_id)).partitions.append(data)
    response.responses = list(topics.values())
    sent = [data for topic in response.responses for data in topic.partitions]
    response.node_endpoints = leader_endpoints(broker, context, sent, ShareAcknowledgeResponse.NodeEndpoint)
    return response


def error_response(
    request: ShareAcknowledgeRequest, context: RequestContext, error: KafkaError
) -> ShareAcknowledgeResponse:
    """The error at the top of the response."""
    return ShareAcknowledgeResponse(error_code=error.code)
