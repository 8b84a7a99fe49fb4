"""What a heartbeat must look like before a group sees it: Kafka's checks, in its order and with its texts.

What Kafka 4.3 has in the protocol but does not serve is refused first: static members, warm-up tasks, offsets of tasks,
and regular expressions for source topics.
"""

from __future__ import annotations

from kpybroker.core.modern_group.members import LEAVE_GROUP_STATIC_EPOCH
from kpybroker.core.modern_group.requests import require_text
from kpybroker.core.streams_group.topics.topology import Topology
from kpybroker.core.streams_group.values import StreamsHeartbeat
from kpybroker.wire.errors import ErrorCode, KafkaError


def validate(request: StreamsHeartbeat) -> None:
    """Raises INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY (GroupCoordinatorService, 4.3.1)."""
    _refuse_unsupported(request)
    require_text(request.member_id, "MemberId")
    require_text(request.group_id, "GroupId")
    require_text(request.instance_id, "InstanceId")
    require_text(request.rack_id, "RackId")
    if request.member_epoch == 0:
        _validate_join(request)
    elif request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    elif request.member_epoch < LEAVE_GROUP_STATIC_EPOCH:
        text = f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    is_none = [tasks is None for tasks in kinds]
    _require(all(is_none) or not any(is_none), "If one task-type is non-null, all must be non-null.")
    if request.member_epoch != 0:
        _require(request.topology is None, "Topology can only be provided when (re-)joining.")


def _refuse_unsupported(request: StreamsHeartbeat) -> None:
    _require(request.instance_id is None, "Static membership is not yet supported.")
    _require(not request.has_task_offsets, "TaskOffsets are not supported yet.")
    _require(not request.has_task_end_offsets, "TaskEndOffsets are not supported yet.")
    _require(not request.warmup_tasks, "WarmupTasks are not supported yet.")
    for subtopology in request.topology.subtopologies.values() if request.topology is not None else ():
        _require(not subtopology.source_topic_regex, "Regular expressions for source topics are not supported yet.")


def _validate_join(request: StreamsHeartbeat) -> None:
    _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
    _require(request.active_tasks == {}, "ActiveTasks must be empty when (re-)joining.")
    _require(request.standby_tasks == {}, "StandbyTasks must be empty when (re-)joining.")
    _require(request.warmup_tasks == {}, "WarmupTasks must be empty when (re-)joining.")
    if request.topology is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
    _validate_topology(request.topology)


def _validate_topology(topology: Topology) -> None:
    for subtopology in topology.subtopologies.values():
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}.",
                )


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
