"""What an administrator does with a share group that has no members: move its start offsets, forget states, delete it.

Each is written first (what is to be made is initializing, what is to be forgotten is deleting), then asked of the share
coordinator, and then written as done. So what fails in between is known, and can be tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.machine import Step, Ticket
from kpybroker.core.modern_group.requests import write_error
from kpybroker.core.share_group.initializing import NO_STATES, begin, combined, complete, write
from kpybroker.core.share_group.leaving import tombstones
from kpybroker.core.share_group.records import NamedPartitions, StatePartitions, StatePartitionsRecord
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.values import (
    AlteredShareOffsets,
    AlterShareOffsets,
    DeletedShareOffsets,
    DeletedTopicOffsets,
    DeleteShareOffsets,
    DeleteStates,
    InitializeStates,
    StateErrors,
)
from kpybroker.core.share_group.waiting import Waiting
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode

NOTHING_TO_DELETE = "There is no offset information to delete."


@dataclass(frozen=True, slots=True)
class _Call:
    """A request that may wait for the share coordinator, and its response if this coordinator moves."""

    group: ShareGroup
    waiting: Waiting
    ticket: Ticket
    refusal: Callable[[ErrorCode], object]

    def wait(self) -> None:
        self.waiting.begin(self.ticket, self.refusal(ErrorCode.NOT_COORDINATOR))

    def end(self, step: Step[Any], result: object) -> None:
        self.waiting.end(step, self.ticket, result)

    def refuse(self, step: Step[Any], error: ErrorCode) -> None:
        self.end(step, self.refusal(error))


# --- start offsets


def alter(step: Step[Any], group: ShareGroup, request: AlterShareOffsets, ticket: Ticket, waiting: Waiting) -> None:
    """AlterShareGroupOffsets; partitions that there are not have errors, and the others are altered."""
    if not group.is_empty:
        step.reply(ticket, AlteredShareOffsets(ErrorCode.NON_EMPTY_GROUP))
        return
    errors: dict[PartitionKey, ErrorCode] = {}
    offsets: dict[TopicId, dict[int, int]] = {}
    found: dict[TopicId, NamedPartitions] = {}
    for (name, index), offset in request.offsets.items():
        topic = group.shared.topics.by_name(name)
        if topic is None or index >= topic.partition_count:
            errors[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif index < 0:
            errors[name, index] = ErrorCode.INVALID_REQUEST
        else:
            offsets.setdefault(topic.topic_id, {})[index] = offset
            found[topic.topic_id] = NamedPartitions(name, frozenset(offsets[topic.topic_id]))
    result = AlteredShareOffsets(ErrorCode.NONE, errors=errors)
    if not offsets:
        step.reply(ticket, result)
        return
    call = _Call(group, waiting, ticket, AlteredShareOffsets)
    call.wait()
    write(step, group, begin(group, found), partial(_on_initializing, call, offsets, result))


def _on_initializing(
    call: _Call,
    offsets: Mapping[TopicId, Mapping[int, int]],
    result: AlteredShareOffsets,
    step: Step[Any],
    error: ErrorCode,
) -> None:
    group = call.group
    if error is not ErrorCode.NONE:
        if group.written_up_to == 0:
            group.release()  # nothing of it got into the log
        call.refuse(step, write_error(error))
        return
    done = partial(_on_initialized, call, offsets, result)
    step.outcome.effects.append(InitializeStates(group.group_id, group.epoch, offsets, done))


def _on_initialized(
    call: _Call,
    offsets: Mapping[TopicId, Mapping[int, int]],
    result: AlteredShareOffsets,
    step: Step[Any],
    errors: StateErrors,
) -> None:
    if errors:
        by_id = call.group.shared.topics.by_id
        named = {
            (topic.name, index): error for (topic_id, index), error in errors.items() if (topic := by_id(topic_id))
        }
        call.end(step, replace(result, errors={**result.errors, **named}))
        return
    partitions = {topic_id: frozenset(of_topic) for topic_id, of_topic in offsets.items()}
    complete(step, call.group, partitions, partial(_on_altered, call, result))


def _on_altered(call: _Call, result: AlteredShareOffsets, step: Step[Any], error: ErrorCode) -> None:
    """The offsets are altered, whether this is written or not; if not, a heartbeat begins the states again."""
    call.end(step, result)


# --- states of topics


def delete_offsets(
    step: Step[Any], group: ShareGroup, request: DeleteShareOffsets, ticket: Ticket, waiting: Waiting
) -> None:
    """DeleteShareGroupOffsets."""
    if not group.is_empty:
        step.reply(ticket, DeletedShareOffsets(ErrorCode.NON_EMPTY_GROUP))
        return
    if group.states is None:
        step.reply(ticket, DeletedShareOffsets(ErrorCode.NONE))
        return
    initialized, deleting = dict(group.states.initialized), dict(group.states.deleting)
    refused: list[DeletedTopicOffsets] = []
    wanted: dict[TopicId, frozenset[int]] = {}
    for name in dict.fromkeys(request.topic_names):
        topic = group.shared.topics.by_name(name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            refused.append(DeletedTopicOffsets(name, ZERO_UUID, unknown, unknown.message))
        elif topic.topic_id in initialized:
            wanted[topic.topic_id] = initialized.pop(topic.topic_id).partitions
            deleting[topic.topic_id] = name
        elif topic.topic_id in deleting:
            wanted[topic.topic_id] = frozenset(range(topic.partition_count))
        else:
            refused.append(DeletedTopicOffsets(name, ZERO_UUID, unknown, NOTHING_TO_DELETE))
    states = StatePartitions(group.states.initializing, initialized, deleting)
    call = _Call(group, waiting, ticket, DeletedShareOffsets)
    call.wait()
    record = StatePartitionsRecord(group.group_id, states)
    write(step, group, record, partial(_on_deleting, call, wanted, tuple(refused)))


def _on_deleting(
    call: _Call, wanted: Partitions, refused: tuple[DeletedTopicOffsets, ...], step: Step[Any], error: ErrorCode
) -> None:
    if error is not ErrorCode.NONE:
        call.refuse(step, write_error(error))
    elif not wanted:
        call.end(step, DeletedShareOffsets(ErrorCode.NONE, topics=refused))
    else:
        done = partial(_on_states_deleted, call, wanted, refused)
        step.outcome.effects.append(DeleteStates(call.group.group_id, wanted, done))


def _on_states_deleted(
    call: _Call, wanted: Partitions, refused: tuple[DeletedTopicOffsets, ...], step: Step[Any], errors: StateErrors
) -> None:
    group = call.group
    by_id = group.shared.topics.by_id
    deleted: list[DeletedTopicOffsets] = []
    failed: list[DeletedTopicOffsets] = []
    for topic_id in wanted:
        name = topic.name if (topic := by_id(topic_id)) else ""
        error = next((error for (of_topic, _), error in errors.items() if of_topic == topic_id), None)
        if error is None:
            deleted.append(DeletedTopicOffsets(name, topic_id))
        else:
            failed.append(DeletedTopicOffsets(name, topic_id, error, error.message))
    result = DeletedShareOffsets(ErrorCode.NONE, topics=(*deleted, *refused, *failed))
    if not deleted or group.is_released or group.states is None:
        call.end(step, result)
        return
    gone = {topic.topic_id for topic in deleted}
    left = {topic_id: name for topic_id, name in group.states.deleting.items() if topic_id not in gone}
    record = StatePartitionsRecord(group.group_id, replace(group.states, deleting=left))
    write(step, group, record, partial(_on_offsets_deleted, call, result))


def _on_offsets_deleted(call: _Call, result: DeletedShareOffsets, step: Step[Any], error: ErrorCode) -> None:
    if error is ErrorCode.NONE:
        call.end(step, result)
    else:
        call.refuse(step, write_error(error))


# --- the group


def delete(step: Step[Any], group: ShareGroup, ticket: Ticket, waiting: Waiting) -> None:
    """DeleteGroups: first the states, then the group; the reply is an error code."""
    if not group.is_empty:
        step.reply(ticket, ErrorCode.NON_EMPTY_GROUP)
        return
    call = _Call(group, waiting, ticket, lambda error: error)
    call.wait()
    if group.states is None:
        _delete_group(call, step)
        return
    states = group.states
    wanted = combined(states.initialized, states.initializing)
    for topic in filter(None, map(group.shared.topics.by_id, states.deleting)):
        again = NamedPartitions(topic.name, frozenset(range(topic.partition_count)))
        wanted = combined(wanted, {topic.topic_id: again})
    deleting = {topic_id: topic.name for topic_id, topic in wanted.items()}
    record = StatePartitionsRecord(group.group_id, replace(NO_STATES, deleting=deleting))
    partitions = {topic_id: topic.partitions for topic_id, topic in wanted.items()}
    write(step, group, record, partial(_on_all_deleting, call, partitions))


def _on_all_deleting(call: _Call, partitions: Partitions, step: Step[Any], error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        call.refuse(step, write_error(error))
    elif not partitions:
        _delete_group(call, step)
    else:
        done = partial(_on_all_deleted, call)
        step.outcome.effects.append(DeleteStates(call.group.group_id, partitions, done))


def _on_all_deleted(call: _Call, step: Step[Any], errors: StateErrors) -> None:
    if errors:
        call.refuse(step, next(iter(errors.values())))
    else:
        _delete_group(call, step)


def _delete_group(call: _Call, step: Step[Any]) -> None:
    """The group may have changed while its states were deleted."""
    if call.group.is_released:
        call.refuse(step, ErrorCode.GROUP_ID_NOT_FOUND)
    elif not call.group.is_empty:
        call.refuse(step, ErrorCode.NON_EMPTY_GROUP)
    else:
        step.write(tombstones(call.group), partial(_on_group_deleted, call))


def _on_group_deleted(call: _Call, step: Step[Any], error: ErrorCode) -> None:
    call.refuse(step, write_error(error))
