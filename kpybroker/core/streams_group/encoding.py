"""The records of streams groups: values <-> key and value bytes, in Kafka 4.3's formats.

`core.modern_group.encoding` has the frame. Imported with the first such record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kpybroker.core.modern_group.encoding import OF_MEMBER, RecordType, RecordTypes, target_epoch_value
from kpybroker.core.streams_group.members import (
    CurrentTasks,
    Endpoint,
    HeldTasks,
    MemberState,
    StreamsMemberMetadata,
    TaskEpochs,
    TaskIds,
    Tasks,
)
from kpybroker.core.streams_group.records import (
    StreamsCurrentRecord,
    StreamsGroupEpoch,
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    StreamsRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    TopologyRecord,
)
from kpybroker.core.streams_group.topics.topology import CopartitionGroup, Subtopology, TopicInfo, Topology
from kpybroker.wire.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey
from kpybroker.wire.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kpybroker.wire.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kpybroker.wire.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from kpybroker.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kpybroker.wire.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kpybroker.wire.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from kpybroker.wire.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from kpybroker.wire.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kpybroker.wire.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kpybroker.wire.messages.streams_group_topology_key import StreamsGroupTopologyKey
from kpybroker.wire.messages.streams_group_topology_value import StreamsGroupTopologyValue

CurrentValue = StreamsGroupCurrentMemberAssignmentValue
MemberValue = StreamsGroupMemberMetadataValue
TargetValue = StreamsGroupTargetAssignmentMemberValue
TopologyValue = StreamsGroupTopologyValue


# --- values to messages


def _epoch_message(value: StreamsGroupEpoch) -> StreamsGroupMetadataValue:
    return StreamsGroupMetadataValue(
        epoch=value.epoch,
        metadata_hash=value.metadata_hash,
        validated_topology_epoch=value.validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=text)
            for key, text in value.assignment_configs
        ],
    )


def _member_message(value: StreamsMemberMetadata) -> MemberValue:
    endpoint = value.endpoint
    return MemberValue(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else MemberValue.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[MemberValue.KeyValue(key=key, value=text) for key, text in sorted(value.client_tags)],
    )


def _target_message(value: Tasks) -> TargetValue:
    active, standby, warmup = (
        [
            TargetValue.TaskIds(subtopology_id=subtopology_id, partitions=sorted(indexes))
            for subtopology_id, indexes in sorted(tasks.items())
        ]
        for tasks in (value.active, value.standby, value.warmup)
    )
    return TargetValue(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def _current_message(value: CurrentTasks) -> CurrentValue:
    return CurrentValue(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=value.state,
        active_tasks=_with_epochs(value.assigned.active),
        standby_tasks=_without_epochs(value.assigned.standby),
        warmup_tasks=_without_epochs(value.assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(value.pending_revocation.active),
        standby_tasks_pending_revocation=_without_epochs(value.pending_revocation.standby),
        warmup_tasks_pending_revocation=_without_epochs(value.pending_revocation.warmup),
    )


def _with_epochs(tasks: TaskEpochs) -> list[CurrentValue.TaskIds]:
    return [
        CurrentValue.TaskIds(
            subtopology_id=subtopology_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[task] for task in sorted(epochs)],
        )
        for subtopology_id, epochs in sorted(tasks.items())
    ]


def _without_epochs(tasks: TaskIds) -> list[CurrentValue.TaskIds]:
    return [
        CurrentValue.TaskIds(subtopology_id=subtopology_id, partitions=sorted(indexes))
        for subtopology_id, indexes in sorted(tasks.items())
    ]


def _topology_message(value: Topology) -> TopologyValue:
    return TopologyValue(
        epoch=value.epoch, subtopologies=[_subtopology_message(one) for one in value.subtopologies.values()]
    )


def _subtopology_message(value: Subtopology) -> TopologyValue.Subtopology:
    return TopologyValue.Subtopology(
        subtopology_id=value.subtopology_id,
        source_topics=list(value.source_topics),
        source_topic_regex=list(value.source_topic_regex),
        state_changelog_topics=[_topic_message(topic) for topic in value.state_changelog_topics],
        repartition_sink_topics=list(value.repartition_sink_topics),
        repartition_source_topics=[_topic_message(topic) for topic in value.repartition_source_topics],
        copartition_groups=[
            TopologyValue.CopartitionGroup(
                source_topics=list(group.source_topics),
                source_topic_regex=list(group.source_topic_regex),
                repartition_source_topics=list(group.repartition_source_topics),
            )
            for group in value.copartition_groups
        ],
    )


def _topic_message(value: TopicInfo) -> TopologyValue.TopicInfo:
    return TopologyValue.TopicInfo(
        name=value.name,
        partitions=value.partitions,
        replication_factor=value.replication_factor,
        topic_configs=[TopologyValue.TopicConfig(key=key, value=text) for key, text in value.configs],
    )


# --- messages to values


def _epoch(value: StreamsGroupMetadataValue) -> StreamsGroupEpoch:
    configs = tuple((config.key, config.value) for config in value.last_assignment_configs or ())
    return StreamsGroupEpoch(value.epoch, value.metadata_hash, value.validated_topology_epoch, configs)


def _member(value: MemberValue) -> StreamsMemberMetadata:
    endpoint = value.user_endpoint
    return StreamsMemberMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
    )


def _target(value: TargetValue) -> Tasks:
    return Tasks(_indexes(value.active_tasks), _indexes(value.standby_tasks), _indexes(value.warmup_tasks))


def _current(value: CurrentValue) -> CurrentTasks:
    epoch = value.member_epoch
    return CurrentTasks(
        epoch,
        value.previous_member_epoch,
        MemberState(value.state),
        HeldTasks(_epochs(value.active_tasks, epoch), _indexes(value.standby_tasks), _indexes(value.warmup_tasks)),
        HeldTasks(
            _epochs(value.active_tasks_pending_revocation, epoch),
            _indexes(value.standby_tasks_pending_revocation),
            _indexes(value.warmup_tasks_pending_revocation),
        ),
    )


def _epochs(tasks: Iterable[CurrentValue.TaskIds], member_epoch: int) -> TaskEpochs:
    """Without one epoch for each task, that of the member counts for all."""
    found: dict[str, dict[int, int]] = {}
    for one in tasks:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [member_epoch] * len(one.partitions)
        found[one.subtopology_id] = dict(zip(one.partitions, epochs, strict=True))
    return found


def _indexes(tasks: Iterable[Any]) -> TaskIds:
    return {one.subtopology_id: frozenset(one.partitions) for one in tasks}


def _topology(value: TopologyValue) -> Topology:
    return Topology(value.epoch, {one.subtopology_id: _subtopology(one) for one in value.subtopologies})


def _subtopology(value: TopologyValue.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=value.subtopology_id,
        source_topics=tuple(value.source_topics),
        source_topic_regex=tuple(value.source_topic_regex),
        state_changelog_topics=tuple(map(_topic, value.state_changelog_topics)),
        repartition_sink_topics=tuple(value.repartition_sink_topics),
        repartition_source_topics=tuple(map(_topic, value.repartition_source_topics)),
        copartition_groups=tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in value.copartition_groups
        ),
    )


def _topic(value: TopologyValue.TopicInfo) -> TopicInfo:
    configs = tuple((config.key, config.value) for config in value.topic_configs)
    return TopicInfo(value.name, value.partitions, value.replication_factor, configs)


_TYPES: Final[RecordTypes[StreamsRecord]] = RecordTypes(
    RecordType(17, StreamsGroupMetadataKey, StreamsGroupMetadataValue, StreamsGroupEpochRecord, _epoch_message, _epoch),
    RecordType(
        19, StreamsGroupMemberMetadataKey, MemberValue, StreamsMemberRecord, _member_message, _member, OF_MEMBER
    ),
    RecordType(
        20,
        StreamsGroupTargetAssignmentMetadataKey,
        StreamsGroupTargetAssignmentMetadataValue,
        StreamsTargetEpochRecord,
        lambda value: StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=value.epoch, assignment_timestamp=value.timestamp_ms
        ),
        target_epoch_value,
    ),
    RecordType(
        21,
        StreamsGroupTargetAssignmentMemberKey,
        TargetValue,
        StreamsTargetRecord,
        _target_message,
        _target,
        OF_MEMBER,
    ),
    RecordType(
        22,
        StreamsGroupCurrentMemberAssignmentKey,
        CurrentValue,
        StreamsCurrentRecord,
        _current_message,
        _current,
        OF_MEMBER,
    ),
    RecordType(23, StreamsGroupTopologyKey, TopologyValue, TopologyRecord, _topology_message, _topology),
)
encode_streams_record: Final = _TYPES.encode
decode_streams_record: Final = _TYPES.decode
