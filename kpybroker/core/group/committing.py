"""The offsets of a group, and its end: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, DeleteGroups, expiry.

A client that assigns partitions itself commits with generation -1 and no member id, which is allowed while the group
has no members. Offsets expire by KIP-211. In an Empty group, all of them expire `offsets.retention.minutes` after it
became Empty. In a stable consumer group, offsets of topics that no member subscribes to expire that long after their
commit, and so does each offset of a group that never had members. A group without members, offsets and open
transactions is removed, with a tombstone if it ever had a generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kpybroker.core.consumer_group.commits import (
    commit_refusal,
    fetch_refusal,
    transactional_commit_refusal,
    uses_consumer_protocol,
)
from kpybroker.core.consumer_group.leaving import tombstones as consumer_tombstones
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.group.joining import validate_member
from kpybroker.core.group.rebalance import restart_session
from kpybroker.core.group.records import GroupRecord, OffsetRecord, Record
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    CONSUMER_PROTOCOL_TYPE,
    CommitOffsets,
    CommitResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    FetchedOffset,
    FetchOffsets,
    FetchOffsetsResult,
    GroupState,
)
from kpybroker.core.machine import Ticket
from kpybroker.core.offsets.values import OffsetAndMetadata, java_length
from kpybroker.core.streams_group.commits import commit_refusal as streams_commit_refusal
from kpybroker.core.streams_group.commits import fetch_refusal as streams_fetch_refusal
from kpybroker.core.streams_group.leaving import tombstones as streams_tombstones
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode

Done = Callable[[GroupStep, ErrorCode], None]

TOMBSTONES_BYTES_MAX = 500_000
TOMBSTONE_OVERHEAD = 32  # versions, lengths, partition and the record around them, rounded up

# What a failed append or transaction verification means to a committer (maybeConvertOffsetCommitError).
_COMMIT_ERRORS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def commit_error(error: ErrorCode) -> ErrorCode:
    """The error a committing client gets for a failed append; unlisted errors pass unchanged."""
    return _COMMIT_ERRORS.get(error, error)


# --- commit


def commit_offsets(step: GroupStep, group: Group, request: CommitOffsets, ticket: Ticket) -> None:
    """Append the offsets as one batch, and reply when it is committed (OffsetCommit, TxnOffsetCommit)."""
    limit = step.config.offset_metadata_max_bytes
    accepted = {
        partition: value for partition, value in request.offsets.items() if java_length(value.metadata) <= limit
    }
    if group.consumer is not None:
        error = _validate_consumer_commit(group.consumer, request, accepted)
    elif group.streams is not None:
        error = _validate_streams_commit(group.streams, request, accepted)
    else:
        error = _validate_commit(group, request)
    if error is ErrorCode.NONE and not request.is_transactional and group.modern is None:
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The member knows the new generation, but not its partitions in it.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        elif group.state is not GroupState.EMPTY:
            restart_session(step, group, group.members[request.member_id])
    if error is not ErrorCode.NONE:
        step.reply(ticket, CommitResult(dict.fromkeys(request.offsets, error)))
        return
    _warn_of_mixed_commits(step, group, request.is_transactional)
    if not accepted:
        step.reply(ticket, CommitResult(dict.fromkeys(request.offsets, ErrorCode.OFFSET_METADATA_TOO_LARGE)))
        return
    step.counts.offset_commits += len(accepted)
    step.write(
        [OffsetRecord(group.group_id, partition, value) for partition, value in accepted.items()],
        partial(_on_committed, tuple(request.offsets), accepted, ticket),
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        base_sequence=0,  # as Kafka writes it, with and without a producer
        verification_guard=request.verification_guard,
    )


def _on_committed(
    partitions: tuple[PartitionKey, ...],
    accepted: dict[PartitionKey, OffsetAndMetadata],
    ticket: Ticket,
    step: GroupStep,
    error: ErrorCode,
) -> None:
    error = commit_error(error)
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    errors = {partition: error if partition in accepted else too_large for partition in partitions}
    step.reply(ticket, CommitResult(errors))


def _validate_commit(group: Group, request: CommitOffsets) -> ErrorCode:
    if request.generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if request.generation_id >= 0 or request.member_id or request.group_instance_id is not None:
        error = validate_member(group, request.member_id, request.group_instance_id)
        if error is ErrorCode.NONE and request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return error
    if not request.is_transactional and group.state is not GroupState.EMPTY:
        # A group with members takes commits from them only. Old transactional producers do not name their member.
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def _validate_consumer_commit(
    group: ConsumerGroup, request: CommitOffsets, partitions: Iterable[PartitionKey]
) -> ErrorCode:
    if request.is_transactional:
        refusal = transactional_commit_refusal
    elif not request.has_member_epoch and uses_consumer_protocol(group, request.member_id):
        return ErrorCode.UNSUPPORTED_VERSION
    else:
        refusal = commit_refusal
    return refusal(group, request.member_id, request.group_instance_id, request.generation_id, partitions)


def _validate_streams_commit(
    group: StreamsGroup, request: CommitOffsets, partitions: Iterable[PartitionKey]
) -> ErrorCode:
    member_id, epoch = request.member_id, request.generation_id
    if request.is_transactional:
        if epoch == -1 and not member_id and request.group_instance_id is None:
            return ErrorCode.NONE  # of a producer that does not name its member
        error = streams_commit_refusal(group, member_id, epoch, partitions)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error
    if not request.has_member_epoch and member_id in group.members:
        return ErrorCode.UNSUPPORTED_VERSION
    return streams_commit_refusal(group, member_id, epoch, partitions)


def _warn_of_mixed_commits(step: GroupStep, group: Group, is_transactional: bool) -> None:
    if group.has_consumer_commits and group.has_transactional_commits:
        step.warn(
            f"group: {group.group_id} with leader: {group.leader_id} has received offset commits from "
            "consumers as well as transactional producers. Mixing both types of offset commits will "
            "generally result in surprises and should be avoided."
        )
    if is_transactional:
        group.has_transactional_commits = True
    else:
        group.has_consumer_commits = True


# --- fetch


def fetch_offsets(step: GroupStep, group: Group, request: FetchOffsets, ticket: Ticket) -> None:
    """Reply when everything read here is committed; if that takes too long, the client must retry."""
    error = _validate_fetch(group, request)
    if error is not ErrorCode.NONE:
        step.reply(ticket, FetchOffsetsResult(error))
        return
    wanted = tuple(group.offsets.committed) if request.partitions is None else request.partitions
    offsets = {partition: _fetch_one(group, partition, request) for partition in wanted}
    result = FetchOffsetsResult(ErrorCode.NONE, offsets)
    step.read(group.written_up_to, partial(_on_read, result, ticket))


def _validate_fetch(group: Group, request: FetchOffsets) -> ErrorCode:
    if group.consumer is not None:
        return fetch_refusal(group.consumer, request.member_id, request.member_epoch)
    if group.streams is not None:
        return streams_fetch_refusal(group.streams, request.member_id, request.member_epoch)
    return ErrorCode.NONE


def _on_read(result: FetchOffsetsResult, ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
    if error is ErrorCode.NONE:
        step.reply(ticket, result)
    elif error is ErrorCode.REQUEST_TIMED_OUT:
        step.reply(ticket, FetchOffsetsResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    else:
        step.reply(ticket, FetchOffsetsResult(commit_error(error)))


def _fetch_one(group: Group, partition: PartitionKey, request: FetchOffsets) -> FetchedOffset:
    if request.require_stable and group.offsets.is_unstable(partition):
        return FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    value = group.offsets.get(partition)
    if value is None or is_of_another(value.topic_id, request.topic_ids.get(partition[0], ZERO_UUID)):
        return FetchedOffset()
    return FetchedOffset(value.offset, value.leader_epoch, value.metadata)


def is_of_another(kept: bytes, asked: bytes) -> bool:
    """Whether two ids are of different topics of one name; zeros are of any."""
    return ZERO_UUID not in (kept, asked) and kept != asked


# --- delete and expire


def delete_group(step: GroupStep, group: Group, ticket: Ticket) -> None:
    """Delete an Empty group with all offsets, those of open transactions too; NON_EMPTY_GROUP in any other state."""
    if not group.is_empty:
        step.reply(ticket, ErrorCode.NON_EMPTY_GROUP)
        return
    step.info(f"The group {group.group_id} is deleted, with {len(group.offsets.committed)} offsets")
    partitions = list(dict.fromkeys(partition for partition, _ in group.offsets.values()))
    _remove(step, group, partitions, True, partial(_on_group_deleted, ticket))


def _on_group_deleted(ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
    step.reply(ticket, commit_error(error))


def delete_offsets(step: GroupStep, group: Group, request: DeleteOffsets, ticket: Ticket) -> None:
    """Delete offsets, except of topics that members subscribe to; with unknown subscriptions, all are kept."""
    partitions = dict.fromkeys(request.partitions)
    kept: list[PartitionKey] = []
    if (modern := group.modern) is not None:
        kept = [partition for partition in partitions if modern.is_subscribed_to(partition[0])]
    elif group.state is not GroupState.EMPTY:
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            step.reply(ticket, DeleteOffsetsResult(ErrorCode.NON_EMPTY_GROUP))
            return
        kept = [partition for partition in partitions if group.is_subscribed_to(partition[0])]
    errors = dict.fromkeys(kept, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    deleted = [partition for partition in partitions if partition not in errors]
    errors |= dict.fromkeys(deleted, ErrorCode.NONE)
    if not deleted:
        step.reply(ticket, DeleteOffsetsResult(ErrorCode.NONE, errors))
        return
    step.info(f"Offsets of the group {group.group_id} are deleted: {deleted}")
    done, keeps_group = partial(_on_offsets_deleted, errors, ticket), request.keeps_group or modern is not None
    step.counts.offset_deletions += remove_offsets(step, group, deleted, done, keeps_group=keeps_group)


def _on_offsets_deleted(
    errors: dict[PartitionKey, ErrorCode], ticket: Ticket, step: GroupStep, error: ErrorCode
) -> None:
    if error is ErrorCode.NONE:
        step.reply(ticket, DeleteOffsetsResult(ErrorCode.NONE, errors))
    else:
        step.reply(ticket, DeleteOffsetsResult(commit_error(error)))


def remove_offsets(
    step: GroupStep, group: Group, partitions: Iterable[PartitionKey], done: Done, *, keeps_group: bool
) -> int:
    """Write tombstones for existing offsets, and for the group if nothing is left of it. Returns how many offsets.

    `keeps_group`: it is not; a group that has nothing left stays until the next cleanup, as in Kafka 4.
    """
    existing = {partition for partition, _ in group.offsets.values()}
    removed = [partition for partition in dict.fromkeys(partitions) if partition in existing]
    group_too = len(removed) == len(existing) and group.is_empty and not keeps_group
    group.stays_without_offsets |= keeps_group
    if removed or group_too:
        _remove(step, group, removed, group_too, done)
    else:
        done(step, ErrorCode.NONE)
    return len(removed)


def _remove(step: GroupStep, group: Group, partitions: list[PartitionKey], group_too: bool, done: Done) -> None:
    group_id = group.group_id
    group.stays_without_offsets &= not group_too
    records: list[Record] = [OffsetRecord(group_id, partition, None) for partition in partitions]
    # A group without a generation has nothing in the log but its offsets.
    if group_too and group.consumer is not None:
        records += consumer_tombstones(group.consumer)
    elif group_too and group.streams is not None:
        records += streams_tombstones(group.streams)
    elif group_too and group.generation_id > 0:
        records.append(GroupRecord(group_id, None))
    if records:
        batches = list(_batches(records))
        settled = done if len(batches) == 1 else _WhenAllAreSettled(len(batches), done)
        for batch in batches:
            step.write(batch, settled)
        return
    if group_too:
        step.forget(group)
    done(step, ErrorCode.NONE)


def _batches(records: list[Record]) -> Iterator[list[Record]]:
    """Batches well below `max.message.bytes`, so that a group of any size can be deleted."""
    batch: list[Record] = []
    size = 0
    for record in records:
        topic = record.partition[0] if isinstance(record, OffsetRecord) else ""
        size += len(record.group_id.encode()) + len(topic.encode()) + TOMBSTONE_OVERHEAD
        if batch and size > TOMBSTONES_BYTES_MAX:
            yield batch
            batch, size = [], 0
        batch.append(record)
    yield batch


class _WhenAllAreSettled:
    """Several batches, one procedure: `done` is called once, with the first error, if any."""

    __slots__ = ("_done", "_error", "_left")

    def __init__(self, count: int, done: Done) -> None:
        self._left = count
        self._done = done
        self._error = ErrorCode.NONE

    def __call__(self, step: GroupStep, error: ErrorCode) -> None:
        self._left -= 1
        self._error = self._error or error
        if self._left == 0:
            self._done(step, self._error)


def expire_offsets(step: GroupStep, group: Group) -> None:
    """Remove the expired offsets of one group (the periodic cleanup)."""
    expired = list(_expired(step, group))
    done = partial(_on_expired, group.group_id, len(expired))
    step.counts.offset_expirations += remove_offsets(step, group, expired, done, keeps_group=False)


def _expired(step: GroupStep, group: Group) -> Iterable[PartitionKey]:
    now_ms, retention_ms = step.now.wall_ms, step.config.offsets_retention_ms
    if (modern := group.modern) is not None:
        expired = group.offsets.expired(now_ms, retention_ms, _commit_timestamp)
        return [partition for partition in expired if not modern.is_subscribed_to(partition[0])]
    if group.protocol_type is None:
        return group.offsets.expired(now_ms, retention_ms, _commit_timestamp)
    if group.state is GroupState.EMPTY:
        empty_since_ms = group.state_timestamp_ms
        # Groups written before KIP-211 do not record when they became empty.
        base = _commit_timestamp if empty_since_ms is None else lambda _: empty_since_ms
        return group.offsets.expired(now_ms, retention_ms, base)
    if (
        group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and group.state is GroupState.STABLE
        and group.subscribed_topics is not None
    ):
        return group.offsets.expired(now_ms, retention_ms, _commit_timestamp, group.subscribed_topics)
    return ()


def _commit_timestamp(value: OffsetAndMetadata) -> int:
    return value.commit_timestamp_ms


def _on_expired(group_id: str, count: int, step: GroupStep, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        step.warn(f"Failed to remove {count} expired offsets of group {group_id}: {error.name}")
    elif count:
        step.info(f"Removed {count} expired offsets of group {group_id}")
