"""Which partitions have a state of the group at the share coordinator.

A partition that the group subscribes to is first *initializing*: that is written together with the heartbeat that finds
it, and then asked for. When the share coordinator has made the state, the partition is *initialized*, and may be
assigned. What fails is forgotten, so that the next heartbeat begins again; what gets no result (its coordinator moved)
begins again after a while. *Deleting* topics are those whose states an administrator has forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.machine import Step
from kpybroker.core.share_group.records import NamedPartitions, StatePartitions, StatePartitionsRecord, TopicStates
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.values import InitializeStates, StateErrors
from kpybroker.wire.errors import ErrorCode

UNKNOWN_START_OFFSET: Final = -1
UNKNOWN_NAME: Final = "<UNKNOWN>"
NO_STATES: Final = StatePartitions()

Done = Callable[[Step[Any], ErrorCode], None]


def uninitialized(group: ShareGroup, topic_names: Iterable[str], now: float) -> TopicStates:
    """The partitions of these topics whose state must be asked for now."""
    states = group.states or NO_STATES
    interval = group.settings.limits.initialize_retry_interval_ms / 1000
    waits = now - group.states_written_at < interval
    found: dict[TopicId, NamedPartitions] = {}
    for topic in filter(None, map(group.shared.topics.by_name, sorted(topic_names))):
        known = partitions_of(states.initialized, topic.topic_id)
        if waits:
            known |= partitions_of(states.initializing, topic.topic_id)
        if len(known) < topic.partition_count:
            missing = frozenset(range(topic.partition_count)) - known
            found[topic.topic_id] = NamedPartitions(topic.name, missing)
    return found


def begin(group: ShareGroup, found: TopicStates) -> StatePartitionsRecord:
    """The record by which these partitions are initializing."""
    states = group.states or NO_STATES
    initializing = combined(states.initializing, found)
    deleting = [topic_id for topic_id in states.deleting if topic_id not in initializing]
    return _record(group, initializing, states.initialized, deleting)


def order(step: Step[Any], group: ShareGroup, epoch: int, found: TopicStates) -> None:
    """Ask for the states of partitions that are initializing, once that is committed."""
    offsets = {
        topic_id: dict.fromkeys(sorted(topic.partitions), UNKNOWN_START_OFFSET) for topic_id, topic in found.items()
    }
    step.outcome.effects.append(InitializeStates(group.group_id, epoch, offsets, partial(_on_heard, group, offsets)))


def _on_heard(
    group: ShareGroup, offsets: Mapping[TopicId, Collection[int]], step: Step[Any], errors: StateErrors
) -> None:
    """The share coordinator's result: all of the partitions are initialized, or none of them is."""
    partitions = {topic_id: frozenset(indexes) for topic_id, indexes in offsets.items()}
    if errors:
        error = next(iter(errors.values()))
        step.warn(f"[GroupId {group.group_id}] Could not initialize the share group's state: {error.name}")
        forget(step, group, partitions)
    else:
        complete(step, group, partitions, partial(_on_completed, group, partitions))


def _on_completed(group: ShareGroup, partitions: Partitions, step: Step[Any], error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        forget(step, group, partitions)


def complete(step: Step[Any], group: ShareGroup, partitions: Partitions, done: Done) -> None:
    """Write that these partitions are initialized; nothing is left to write of a group that has ended."""
    if group.is_released:
        done(step, ErrorCode.NONE)
        return
    states = group.states or NO_STATES
    by_id = group.shared.topics.by_id
    names = {topic_id: topic.name for topic_id in partitions if (topic := by_id(topic_id)) is not None}
    made = {
        topic_id: NamedPartitions(names.get(topic_id, UNKNOWN_NAME), indexes)
        for topic_id, indexes in partitions.items()
    }
    record = _record(
        group, without(states.initializing, partitions), combined(states.initialized, made), states.deleting
    )
    write(step, group, record, done)


def forget(step: Step[Any], group: ShareGroup, partitions: Partitions) -> None:
    """Write that these partitions are not initializing any more."""
    if group.is_released or group.states is None or not group.states.initializing:
        return
    left = without(group.states.initializing, partitions)
    write(step, group, _record(group, left, group.states.initialized, group.states.deleting), _ignore)


def forget_topics(step: Step[Any], group: ShareGroup, is_gone: Collection[TopicId]) -> None:
    """Topics were deleted, and so were their states."""
    states = group.states
    if states is None:
        return
    kept = StatePartitions(
        {topic_id: topic for topic_id, topic in states.initializing.items() if topic_id not in is_gone},
        {topic_id: topic for topic_id, topic in states.initialized.items() if topic_id not in is_gone},
        {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in is_gone},
    )
    if kept != states:
        write(step, group, _record(group, kept.initializing, kept.initialized, kept.deleting), _ignore)


def write(step: Step[Any], group: ShareGroup, record: StatePartitionsRecord, done: Done) -> None:
    """Write the record, as of now."""
    group.now = step.now.monotonic
    step.write([record], done)


def _ignore(step: Step[Any], error: ErrorCode) -> None:
    """What did not get into the log is tried again, by a heartbeat after a while."""


def _record(
    group: ShareGroup, initializing: TopicStates, initialized: TopicStates, deleting: Iterable[TopicId]
) -> StatePartitionsRecord:
    by_id = group.shared.topics.by_id
    names = {topic_id: topic.name if (topic := by_id(topic_id)) else UNKNOWN_NAME for topic_id in deleting}
    return StatePartitionsRecord(group.group_id, StatePartitions(dict(initializing), dict(initialized), names))


# --- partitions by topic


def partitions_of(topics: TopicStates, topic_id: TopicId) -> frozenset[int]:
    """The partitions of one of the topics."""
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def combined(first: TopicStates, second: TopicStates) -> dict[TopicId, NamedPartitions]:
    """The partitions of both; the second one has the names."""
    return {
        **first,
        **{
            topic_id: NamedPartitions(topic.name, topic.partitions | partitions_of(first, topic_id))
            for topic_id, topic in second.items()
        },
    }


def without(topics: TopicStates, partitions: Partitions) -> dict[TopicId, NamedPartitions]:
    """What is left without these partitions."""
    left = {
        topic_id: NamedPartitions(topic.name, topic.partitions - partitions.get(topic_id, frozenset()))
        for topic_id, topic in topics.items()
    }
    return {topic_id: topic for topic_id, topic in left.items() if topic.partitions}
