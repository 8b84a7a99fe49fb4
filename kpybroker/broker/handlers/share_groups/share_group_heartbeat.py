"""ShareGroupHeartbeat 1: join, stay in and leave a share group (KIP-932).

Refused with UNSUPPORTED_VERSION until `share.version` 1 is finalized, as in Kafka. Without this API some
clients would wait without a word: docs/decisions/group-protocols.md.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import (
    own_text,
    require_visible,
    serves_share_groups,
    unserved_protocol,
)
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import SHARE_VERSION
from kpybroker.core.share_group.validation import require_member_id, validate
from kpybroker.core.share_group.values import ShareHeartbeat, ShareHeartbeatResult
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SHARE_GROUP_HEARTBEAT,
    1,
    1,
    {1: "share groups (KIP-932); UNSUPPORTED_VERSION where `share.version` 1 is not finalized"},
)

CAUSE = "share groups (KIP-932) are not served"
RAISE = "raise the level: kpybroker feature upgrade share.version=1"
CLASSIC = "use a consumer group, with group.protocol=classic in the client"

Response = ShareGroupHeartbeatResponse


def handle(broker: Broker, request: ShareGroupHeartbeatRequest, context: RequestContext) -> Steps[Response]:
    """The member's epoch and, where that changed, its assignment."""
    if not serves_share_groups(broker):
        fix = RAISE if SHARE_VERSION in broker.features.supported else CLASSIC
        raise unserved_protocol(broker, context, request.group_id, CAUSE, fix)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    require_member_id(request.member_id)
    names = request.subscribed_topic_names
    if names:
        yield from require_visible(context, frozenset(names))
    heartbeat = ShareHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        topic_names=None if names is None else frozenset(names),
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        owner=context.owner,
    )
    validate(heartbeat)
    if not broker.metadata.received_update:
        # Before the first metadata no topic is known, and members would have to give up what they have.
        yield partial(broker.metadata.wait_first_update, broker.tree)
    result: ShareHeartbeatResult = yield from broker.groups.reply(heartbeat, context)
    return _response(result)


def _response(result: ShareHeartbeatResult) -> Response:
    response = Response(
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
    )
    if result.assignment is not None:
        response.assignment = Response.Assignment(
            topic_partitions=[
                Response.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in result.assignment.items()
            ]
        )
    return response


def error_response(request: ShareGroupHeartbeatRequest, context: RequestContext, error: KafkaError) -> Response:
    """The error at the top of the response."""
    return Response(error_code=error.code, error_message=own_text(error))
