"""StreamsGroupDescribe 0: state, epochs, topology, members and tasks of streams groups (KIP-1071).

Refused with UNSUPPORTED_VERSION until `streams.version` 1 is finalized, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import group_operations, serves_streams_groups
from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.streams_group.members import NO_TASKS, StreamsMember, Tasks
from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology
from kpybroker.core.streams_group.topics.topology import Subtopology, TopicInfo, Topology
from kpybroker.core.streams_group.values import DescribedStreamsGroup, DescribeStreamsGroup
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    0,
    0,
    {
        0: "state, epochs, topology, members and tasks (KIP-1071); UNSUPPORTED_VERSION where `streams.version` 1 is "
        "not finalized",
    },
)

HIDDEN = "The described group uses topics that the client is not authorized to describe."

Response = StreamsGroupDescribeResponse
Group = StreamsGroupDescribeResponse.DescribedGroup


async def handle(broker: Broker, request: StreamsGroupDescribeRequest, context: RequestContext) -> Response:
    """Each group that this broker coordinates; the refused ones are first, as in Kafka."""
    budget = YieldBudget()
    if not serves_streams_groups(broker):
        unserved = (_failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids)
        return Response(groups=await listed(unserved, budget))
    refused: list[Group] = []
    described: list[Group] = []
    for group_id in request.group_ids:
        await budget.spend()
        if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(_failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        group = await _describe(broker, context, group_id)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = group_operations(broker, context, group_id)
        described.append(group)
    return Response(groups=refused + described)


async def _describe(broker: Broker, context: RequestContext, group_id: str) -> Group:
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        found: DescribedStreamsGroup = await broker.groups.ask(DescribeStreamsGroup(group_id))
    except KafkaError as error:
        return _failed(group_id, error.code)
    if found.error is not ErrorCode.NONE:
        return _failed(group_id, found.error, found.message)
    budget = YieldBudget()
    subtopologies = list(_subtopologies(found.topology))
    for name in dict.fromkeys(_topics(subtopologies)):
        if not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            return _failed(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN)
        await budget.spend()
    shown = []
    for one in subtopologies:
        shown.append(_shown(one))
        await budget.spend()
    members = []
    for member in found.members:
        members.append(_member(member, found.targets.get(member.member_id, NO_TASKS)))
        await budget.spend()
    return Group(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.group_epoch,
        assignment_epoch=found.assignment_epoch,
        topology=None if found.topology is None else Response.Topology(epoch=found.topology.epoch, subtopologies=shown),
        members=members,
    )


def _subtopologies(topology: Topology | ConfiguredTopology | None) -> Iterator[Subtopology]:
    """In the order of their ids; with numbers of partitions where the topology has been configured."""
    if isinstance(topology, ConfiguredTopology):
        yield from (one.subtopology for _, one in sorted((topology.subtopologies or {}).items()))
    elif topology is not None:
        yield from (one for _, one in sorted(topology.subtopologies.items()))


def _topics(subtopologies: Iterable[Subtopology]) -> Iterator[str]:
    for one in subtopologies:
        yield from one.source_topics
        yield from one.repartition_sink_topics
        yield from (topic.name for topic in one.repartition_source_topics)
        yield from (topic.name for topic in one.state_changelog_topics)


def _shown(one: Subtopology) -> Response.Subtopology:
    return Response.Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=sorted(one.source_topics),
        repartition_sink_topics=sorted(one.repartition_sink_topics),
        state_changelog_topics=_infos(one.state_changelog_topics),
        repartition_source_topics=_infos(one.repartition_source_topics),
    )


def _infos(topics: Iterable[TopicInfo]) -> list[Response.TopicInfo]:
    return [
        Response.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[Response.KeyValue(key=key, value=value) for key, value in topic.configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(member: StreamsMember, target: Tasks) -> Response.Member:
    metadata, current, endpoint = member.metadata, member.current, member.metadata.endpoint
    return Response.Member(
        member_id=member.member_id,
        member_epoch=current.member_epoch,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=None if endpoint is None else Response.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[Response.KeyValue(key=key, value=value) for key, value in metadata.client_tags],
        assignment=Response.Assignment(
            active_tasks=_task_ids(current.assigned.active.items()),
            standby_tasks=_task_ids(current.assigned.standby.items()),
            warmup_tasks=_task_ids(current.assigned.warmup.items()),
        ),
        target_assignment=Response.Assignment(
            active_tasks=_task_ids(target.active.items()),
            standby_tasks=_task_ids(target.standby.items()),
            warmup_tasks=_task_ids(target.warmup.items()),
        ),
    )


def _task_ids(tasks: Iterable[tuple[str, Iterable[int]]]) -> list[Response.TaskIds]:
    return [
        Response.TaskIds(subtopology_id=subtopology_id, partitions=sorted(indexes))
        for subtopology_id, indexes in sorted(tasks, key=lambda one: one[0])
    ]


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> Group:
    return Group(group_id=group_id, error_code=error, error_message=message)


def error_response(request: StreamsGroupDescribeRequest, context: RequestContext, error: KafkaError) -> Response:
    """The error at each group."""
    return Response(groups=[_failed(group_id, error.code) for group_id in request.group_ids])
