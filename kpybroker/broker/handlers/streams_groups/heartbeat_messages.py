"""StreamsGroupHeartbeat: the message as what a group's machine takes, and the machine's result as a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.core.streams_group.members import Endpoint, TaskIds, Tasks
from kpybroker.core.streams_group.topics.topology import CopartitionGroup, Subtopology, TopicInfo, Topology
from kpybroker.core.streams_group.values import EndpointPartitions, StreamsHeartbeat, StreamsHeartbeatResult
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse


def heartbeat_of(request: Request, context: RequestContext) -> Steps[StreamsHeartbeat]:
    """The request as a value. Raises UNKNOWN_SERVER_ERROR, as Kafka, where something is named twice: no client does."""
    endpoint = request.user_endpoint
    active_tasks = yield from _tasks(request.active_tasks)
    standby_tasks = yield from _tasks(request.standby_tasks)
    warmup_tasks = yield from _tasks(request.warmup_tasks)
    return StreamsHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=None if request.topology is None else topology_of(request.topology),
        active_tasks=active_tasks,
        standby_tasks=standby_tasks,
        warmup_tasks=warmup_tasks,
        process_id=request.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if request.client_tags is None else _tags(request.client_tags),
        has_task_offsets=request.task_offsets is not None,
        has_task_end_offsets=request.task_end_offsets is not None,
        shutdown_application=request.shutdown_application,
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        owner=context.owner,
    )


def topology_of(topology: Request.Topology) -> Topology:
    """The topology as a value."""
    subtopologies = {one.subtopology_id: _subtopology(one) for one in topology.subtopologies}
    _require_distinct(subtopologies, topology.subtopologies)
    return Topology(topology.epoch, subtopologies)


def _subtopology(one: Request.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=tuple(one.source_topics),
        source_topic_regex=tuple(one.source_topic_regex),
        state_changelog_topics=tuple(map(_topic, one.state_changelog_topics)),
        repartition_sink_topics=tuple(one.repartition_sink_topics),
        repartition_source_topics=tuple(map(_topic, one.repartition_source_topics)),
        copartition_groups=tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in one.copartition_groups
        ),
    )


def _topic(topic: Request.TopicInfo) -> TopicInfo:
    configs = tuple((config.key, config.value) for config in topic.topic_configs)
    return TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def _tasks(sent: Sequence[Request.TaskIds] | None) -> Steps[TaskIds | None]:
    if sent is None:
        return None
    budget = YieldBudget()
    tasks: dict[str, frozenset[int]] = {}
    for one in sent:
        tasks[one.subtopology_id] = frozenset(one.partitions)
        yield from budget.steps()
    _require_distinct(tasks, sent)
    return tasks


def _tags(sent: Sequence[Request.KeyValue]) -> tuple[tuple[str, str], ...]:
    tags = {tag.key: tag.value for tag in sent}
    _require_distinct(tags, sent)
    return tuple(sorted(tags.items()))


def _require_distinct(found: Mapping[str, object], sent: Sequence[object]) -> None:
    if len(found) < len(sent):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


# --- the response


def response_of(result: StreamsHeartbeatResult) -> Response:
    """The result of the group's machine, as the client receives it. An error has no text that its code says already."""
    response = Response(
        error_code=result.error,
        error_message=None if result.message == result.error.message else result.message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        status=[
            Response.Status(status_code=status.code, status_detail=status.detail) for status in result.statuses or ()
        ],
        endpoint_information_epoch=result.endpoint_epoch,
    )
    if result.tasks is not None:
        _fill_tasks(response, result.tasks)
    if result.endpoints is not None:
        response.partitions_by_user_endpoint = [_endpoint(one) for one in result.endpoints]
    return response


def _fill_tasks(response: Response, tasks: Tasks) -> None:
    response.active_tasks = _task_ids(tasks.active)
    response.standby_tasks = _task_ids(tasks.standby)
    response.warmup_tasks = _task_ids(tasks.warmup)


def _task_ids(tasks: TaskIds) -> list[Response.TaskIds]:
    return [
        Response.TaskIds(subtopology_id=subtopology_id, partitions=sorted(indexes))
        for subtopology_id, indexes in tasks.items()
    ]


def _endpoint(one: EndpointPartitions) -> Response.EndpointToPartitions:
    return Response.EndpointToPartitions(
        user_endpoint=Response.Endpoint(host=one.endpoint.host, port=one.endpoint.port),
        active_partitions=_partitions(one.active.items()),
        standby_partitions=_partitions(one.standby.items()),
    )


def _partitions(topics: Iterable[tuple[str, tuple[int, ...]]]) -> list[Response.TopicPartition]:
    return [Response.TopicPartition(topic=name, partitions=list(indexes)) for name, indexes in topics]
