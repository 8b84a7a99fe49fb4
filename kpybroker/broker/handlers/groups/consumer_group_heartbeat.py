"""ConsumerGroupHeartbeat 0-1: join, stay in and leave a group of the new protocol (KIP-848).

Refused with UNSUPPORTED_VERSION until `group.version` 1 is finalized, as in Kafka. Without this API some clients would
wait without a word: docs/decisions/group-protocols.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from kpybroker.broker.cluster.registration import random_uuid
from kpybroker.broker.handlers.groups.checks import (
    own_text,
    require_visible,
    serves_consumer_groups,
    unserved_protocol,
)
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.assignors.values import Partitions
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.consumer_group.validation import validate
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult
from kpybroker.core.features import CONSUMER_GROUPS_FROM, GROUP_VERSION
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    0,
    1,
    {
        0: "a member of a consumer group (KIP-848); UNSUPPORTED_VERSION where `group.version` 1 is not finalized",
        1: "regular expressions; member ids made by clients (KIP-1082)",
    },
)

CAUSE = "the consumer group protocol (KIP-848) is not served"
FIX = "set group.protocol=classic in the client"


def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Steps[ConsumerGroupHeartbeatResponse]:
    """The member's epoch and, where that changed, its assignment."""
    if not serves_consumer_groups(broker, context):
        raise unserved_protocol(broker, context, request.group_id, CAUSE, f"{FIX}{_other_fix(broker)}")
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if request.subscribed_topic_names:
        yield from require_visible(context, frozenset(request.subscribed_topic_names))
    heartbeat = _heartbeat(broker, request, context)
    validate(heartbeat, context.api_version, broker.groups.assignors)
    if not broker.metadata.received_update:
        # Before the first metadata no topic is known, and members would have to give up what they own.
        yield partial(broker.metadata.wait_first_update, broker.tree)
    result: ConsumerHeartbeatResult = yield from broker.groups.reply(heartbeat, context)
    return _response(result)


def _other_fix(broker: Broker) -> str:
    """What an operator can do where this broker could serve the protocol."""
    if not broker.groups.allows_consumer_groups:
        return ", or add consumer to group.coordinator.rebalance.protocols of the brokers"
    finalized = broker.metadata.snapshot.features.level(GROUP_VERSION)
    if GROUP_VERSION in broker.features.supported and finalized < CONSUMER_GROUPS_FROM:
        return f", or raise the level: kpybroker feature upgrade {GROUP_VERSION}={CONSUMER_GROUPS_FROM}"
    return ""


def _heartbeat(broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> ConsumerHeartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=None if names is None else frozenset(names),
        pattern=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if owned is None else _partitions(owned),
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        new_member_id="" if request.member_id else znodes.encode_uuid(random_uuid(broker.random)),
        rights=context,
        owner=context.owner,
    )


def _partitions(owned: Iterable[ConsumerGroupHeartbeatRequest.TopicPartitions]) -> Partitions:
    """A topic that is named twice has the partitions of both."""
    partitions: dict[bytes, frozenset[int]] = {}
    for topic in owned:
        partitions[topic.topic_id] = partitions.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return partitions


def _response(result: ConsumerHeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    response = ConsumerGroupHeartbeatResponse(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
    )
    if result.assignment is not None:
        response.assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in result.assignment.items()
            ]
        )
    return response


def error_response(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, error: KafkaError
) -> ConsumerGroupHeartbeatResponse:
    """The error at the top of the response."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=own_text(error))
