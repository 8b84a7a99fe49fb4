"""StreamsGroupHeartbeat 0: join, stay in and leave a streams group (KIP-1071).

Internal topics of the topology that are missing are created with the rights of the client; the response does not wait
for that. Refused with UNSUPPORTED_VERSION until `streams.version` 1 is finalized, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from kpybroker.broker.handlers.groups.checks import (
    own_text,
    require_visible,
    serves_streams_groups,
    unserved_protocol,
)
from kpybroker.broker.handlers.streams_groups.heartbeat_messages import heartbeat_of, response_of
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core import topic_names
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import STREAMS_VERSION
from kpybroker.core.streams_group.topics.configuring import Status, StatusCode
from kpybroker.core.streams_group.topics.topology import TopicInfo
from kpybroker.core.streams_group.validation import validate
from kpybroker.core.streams_group.values import StreamsHeartbeatResult
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import INT16_MAX
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kpybroker.wire.primitives import cut_text

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    0,
    0,
    {0: "streams groups (KIP-1071); UNSUPPORTED_VERSION where `streams.version` 1 is not finalized"},
)

CAUSE = "streams groups (KIP-1071) are not served"
RAISE = "raise the level: kpybroker feature upgrade streams.version=1"
ALLOW = "add streams to group.coordinator.rebalance.protocols of the brokers"
CLASSIC = "set group.protocol=classic in the application"
TOPOLOGY_SIZE_MAX: Final = 5_000
"""So many subtopologies, topics and copartition groups a topology may have."""
FAILURES_SHOWN: Final = 3
"""So many failed creations are named in a status."""
QUIET_HEARTBEATS: Final = 2
"""A topic whose creation failed is not tried again for so many heartbeats."""

Response = StreamsGroupHeartbeatResponse
Topology = StreamsGroupHeartbeatRequest.Topology


def handle(broker: Broker, request: StreamsGroupHeartbeatRequest, context: RequestContext) -> Steps[Response]:
    """The member's epoch and, where they changed, its tasks; what is wrong with topics."""
    if not serves_streams_groups(broker):
        raise unserved_protocol(broker, context, request.group_id, CAUSE, _fix(broker))
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if request.topology is not None:
        _require_size(request.topology)
        yield from _check_topics(request.topology, context)
    heartbeat = yield from heartbeat_of(request, context)
    validate(heartbeat)
    if not broker.metadata.received_update:
        # Before the first metadata no topic is known, and members would have to give up what they have.
        yield partial(broker.metadata.wait_first_update, broker.tree)
    result: StreamsHeartbeatResult = yield from broker.groups.reply(heartbeat, context)
    if result.to_create:
        result = _create_topics(broker, request.group_id, context, result)
    return response_of(result)


def _fix(broker: Broker) -> str:
    """What an operator can do."""
    if STREAMS_VERSION not in broker.features.supported:
        return CLASSIC
    return RAISE if broker.groups.allows_streams_groups else ALLOW


# --- before the group is asked


def _require_size(topology: Topology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY for a topology of which one step would hold up all other requests."""
    size = len(topology.subtopologies)
    if size <= TOPOLOGY_SIZE_MAX:
        size += sum(map(_size, topology.subtopologies))
    if size > TOPOLOGY_SIZE_MAX:
        raise _invalid(
            f"The topology has {size} subtopologies, topics and copartition groups, more than {TOPOLOGY_SIZE_MAX}."
        )


def _size(one: StreamsGroupHeartbeatRequest.Subtopology) -> int:
    sources = len(one.source_topics) + len(one.repartition_source_topics)
    return sources + len(one.repartition_sink_topics) + len(one.state_changelog_topics) + len(one.copartition_groups)


def _check_topics(topology: Topology, context: RequestContext) -> Steps[None]:
    """Raises STREAMS_INVALID_TOPOLOGY for names that no topology may have, TOPIC_AUTHORIZATION_FAILED for names that
    the client may not describe.
    """
    budget = YieldBudget()
    names = dict.fromkeys(_topics_of(topology))
    internal, invalid = [], []
    for name in names:
        yield from budget.steps()
        if topic_names.is_internal(name):
            internal.append(name)
        if not topic_names.is_valid(name):
            invalid.append(name)
    if internal:
        raise _invalid(f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.")
    if invalid:
        raise _invalid(f"Topic names {','.join(invalid)} are not valid topic names.")
    yield from require_visible(context, names.keys())


def _topics_of(topology: Topology) -> Iterator[str]:
    for one in topology.subtopologies:
        yield from one.source_topics
        yield from one.repartition_sink_topics
        yield from (topic.name for topic in one.repartition_source_topics)
        yield from (topic.name for topic in one.state_changelog_topics)


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)


# --- internal topics that are missing


def _create_topics(
    broker: Broker, group_id: str, context: RequestContext, result: StreamsHeartbeatResult
) -> StreamsHeartbeatResult:
    """Begin to create them, and add to the status what the client may not do, or what has failed."""
    denied = _denied(context, result.to_create)
    if denied:
        return _with_detail(result, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
    creating = broker.coordinators.streams_topics
    heartbeat_ms = broker.coordinators.group_configs.of_streams_group(group_id).heartbeat_interval_ms
    creating.create(result.to_create, context.side_mutations(is_strict=True), QUIET_HEARTBEATS * heartbeat_ms)
    failures = creating.failures(result.to_create)
    if not failures:
        return result
    shown = ", ".join(f"{name} ({text})" for name, text in list(failures.items())[:FAILURES_SHOWN])
    more = len(failures) - FAILURES_SHOWN
    return _with_detail(result, f"Creation failed: {shown}{f' and {more} more' if more > 0 else ''}.")


def _denied(context: RequestContext, topics: Mapping[str, TopicInfo]) -> list[str]:
    if context.authorized(Operation.CREATE, ResourceType.CLUSTER, log_denied=False):
        return []
    return [name for name in topics if not context.authorized(Operation.CREATE, ResourceType.TOPIC, name)]


def _with_detail(result: StreamsHeartbeatResult, text: str) -> StreamsHeartbeatResult:
    """With `text` at the end of the status MISSING_INTERNAL_TOPICS."""
    missing = StatusCode.MISSING_INTERNAL_TOPICS
    return replace(result, statuses=tuple(_statuses(result.statuses or (), missing, text)))


def _statuses(statuses: Iterable[Status], code: StatusCode, text: str) -> Iterator[Status]:
    for status in statuses:
        if status.code is code:
            yield Status(code, cut_text(f"{status.detail}; {text}", INT16_MAX))
        else:
            yield status


def error_response(request: StreamsGroupHeartbeatRequest, context: RequestContext, error: KafkaError) -> Response:
    """The error at the top of the response."""
    return Response(error_code=error.code, error_message=own_text(error))
