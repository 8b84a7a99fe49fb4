"""JoinGroup 0-9: enter a group's next generation; the response is sent when that generation begins.

A member without an id receives one: from version 4 on with MEMBER_ID_REQUIRED, and it joins again with that id
(KIP-394). The wait has no limit of its own: the coordinator ends it with the rebalance or the session.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.handlers.groups.checks import check_static_membership, require_group_id
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.sizes import protocols_bytes
from kpybroker.core.group.values import NOT_COUNTED, Join, JoinResult, Protocols
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kpybroker.wire.primitives import MAX_STRING, cut_text

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.JOIN_GROUP,
    0,
    9,
    {
        0: "the session timeout is the rebalance timeout too",
        1: "rebalance timeout",
        2: "throttle time",
        4: "MEMBER_ID_REQUIRED (KIP-394)",
        5: "static members (KIP-345)",
        6: "flexible",
        7: "protocol type in the response, null protocol name",
        8: "the client's reason (KIP-800)",
        9: "skip assignment, for static leaders (KIP-814)",
    },
)

MEMBER_ID_REQUIRED_FROM = 4
NULL_PROTOCOL_NAME_FROM = 7
SKIP_ASSIGNMENT_FROM = 9
MEMBER_OWNER_BYTES_MAX = MAX_STRING - len("-00000000-0000-0000-0000-000000000000")
"""Of the client id in a member id, which is a string too. (Kafka fails with a longer one.)"""
MANY_PROTOCOLS = 1_000


def handle(broker: Broker, request: JoinGroupRequest, context: RequestContext) -> Steps[JoinGroupResponse]:
    """Join the group; returns when its next generation begins."""
    check_static_membership(broker, request.group_instance_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    try:
        require_group_id(request.group_id)
        asked = ((protocol.name, protocol.metadata) for protocol in request.protocols)
        is_small = len(request.protocols) < MANY_PROTOCOLS
        supported = (tuple(asked), NOT_COUNTED) if is_small else (yield partial(_counted, asked))
        join = _join(broker, request, context, supported)
        result: JoinResult = yield from broker.groups.reply(join, context, serves_rest=True)
    except KafkaError as error:
        result = JoinResult(error.code, request.member_id)
    return _response(result, context.api_version)


async def _counted(asked: Iterable[tuple[str, bytes]]) -> tuple[Protocols, int]:
    """What the member supports, and how many bytes of memory that takes; in slices."""
    protocols = tuple(await listed(asked, YieldBudget()))
    await trio.lowlevel.checkpoint()
    size = protocols_bytes(protocols)
    await trio.lowlevel.checkpoint()
    return protocols, size


def _join(broker: Broker, request: JoinGroupRequest, context: RequestContext, supported: tuple[Protocols, int]) -> Join:
    protocols, size = supported
    version, client_id = context.api_version, context.client_id or ""
    return Join(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        new_member_id="" if request.member_id else _new_member_id(broker, client_id, request.group_instance_id),
        client_id=client_id,
        client_host=f"/{context.client_host}",
        rebalance_timeout_ms=request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=protocols,
        require_known_member_id=version >= MEMBER_ID_REQUIRED_FROM and request.group_instance_id is None,
        support_skipping_assignment=version >= SKIP_ASSIGNMENT_FROM,
        reason=request.reason or "not provided",
        rights=context,
        owner=context.owner,
        protocols_size=size,
    )


def _new_member_id(broker: Broker, client_id: str, group_instance_id: str | None) -> str:
    owner = client_id if group_instance_id is None else group_instance_id
    unique = uuid.UUID(int=broker.random.getrandbits(128), version=4)
    return f"{cut_text(owner, MEMBER_OWNER_BYTES_MAX)}-{unique}"


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name or (None if version >= NULL_PROTOCOL_NAME_FROM else ""),
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )


def error_response(request: JoinGroupRequest, context: RequestContext, error: KafkaError) -> JoinGroupResponse:
    """The error at the top of the response, without a member id."""
    return _response(JoinResult(error.code, ""), context.api_version)
