"""What is asked of a share coordinator, and its results, as messages: APIs 83 to 87 (KIP-932).

All five have one form: a group, topics, partitions, and the same in the response. `ShareApi` says what the partitions
have, for the handlers, which read requests and write responses, and for `share_persister`, which does the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kpybroker.core.share_coordinator.machine import Asked, Result
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    StateBatch,
    StateResult,
    SummaryResult,
    WriteState,
)
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from kpybroker.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kpybroker.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from kpybroker.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kpybroker.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse


@dataclass(frozen=True, slots=True)
class ShareApi:
    """One API: its classes, and how a partition of a request or a response is read and written."""

    key: ApiKey
    version: int
    """The one that brokers send to each other."""
    request_class: Callable[..., Any]
    topic_class: Callable[..., Any]
    response_class: Callable[..., Any]
    result_class: Callable[..., Any]
    read_partition: Callable[[bytes, Any], Asked]
    write_partition: Callable[[Any], Any]
    read_result: Callable[[bytes, Any], Result]
    write_result: Callable[[Any], Any]
    is_summary: bool = False

    def asked(self, request: Any) -> list[Asked]:
        """What a request asks, in its order."""
        return [self.read_partition(topic.topic_id, one) for topic in request.topics for one in topic.partitions]

    def request(self, group_id: str, asked: Sequence[Asked]) -> Any:
        """A request; topics are in the order of their first partitions."""
        topics = [
            self.topic_class(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in _by_topic(asked, self.write_partition).items()
        ]
        return self.request_class(group_id=group_id, topics=topics)

    def results(self, response: Any) -> list[Result]:
        """The results of a response, in its order."""
        return [self.read_result(topic.topic_id, one) for topic in response.results for one in topic.partitions]

    def response(self, results: Sequence[Result]) -> Any:
        """A response; topics are in the order of their first partitions."""
        topics = [
            self.result_class(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in _by_topic(results, self.write_result).items()
        ]
        return self.response_class(results=topics)


def _by_topic(rows: Iterable[Asked | Result], written: Callable[[Any], Any]) -> dict[bytes, list[Any]]:
    topics: dict[bytes, list[Any]] = {}
    for row in rows:
        topics.setdefault(row.topic_id, []).append(written(row))
    return topics


def _state_result(topic_id: bytes, one: Any) -> StateResult:
    return StateResult(topic_id, one.partition, ErrorCode(one.error_code), one.error_message)


def _result_writer(partition_class: Callable[..., Any]) -> Callable[[StateResult], Any]:
    return lambda one: partition_class(partition=one.partition, error_code=one.error, error_message=one.error_message)


def _batches(batches: Iterable[Any]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in batches
    )


def _write_batches(batch_class: Callable[..., Any], batches: Iterable[StateBatch]) -> list[Any]:
    return [
        batch_class(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


INITIALIZE: Final = ShareApi(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    0,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateRequest.InitializeStateData,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateResponse.InitializeStateResult,
    lambda topic_id, one: InitializeState(topic_id, one.partition, one.state_epoch, one.start_offset),
    lambda one: InitializeShareGroupStateRequest.PartitionData(
        partition=one.partition, state_epoch=one.state_epoch, start_offset=one.start_offset
    ),
    _state_result,
    _result_writer(InitializeShareGroupStateResponse.PartitionResult),
)

READ: Final = ShareApi(
    ApiKey.READ_SHARE_GROUP_STATE,
    0,
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequest.ReadStateData,
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponse.ReadStateResult,
    lambda topic_id, one: ReadState(topic_id, one.partition, one.leader_epoch),
    lambda one: ReadShareGroupStateRequest.PartitionData(partition=one.partition, leader_epoch=one.leader_epoch),
    lambda topic_id, one: ReadResult(
        topic_id,
        one.partition,
        ErrorCode(one.error_code),
        one.error_message,
        one.state_epoch,
        one.start_offset,
        _batches(one.state_batches),
    ),
    lambda one: ReadShareGroupStateResponse.PartitionResult(
        partition=one.partition,
        error_code=one.error,
        error_message=one.error_message,
        state_epoch=one.state_epoch,
        start_offset=one.start_offset,
        state_batches=_write_batches(ReadShareGroupStateResponse.StateBatch, one.state_batches),
    ),
)

WRITE: Final = ShareApi(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    1,
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequest.WriteStateData,
    WriteShareGroupStateResponse,
    WriteShareGroupStateResponse.WriteStateResult,
    lambda topic_id, one: WriteState(
        topic_id,
        one.partition,
        one.state_epoch,
        one.leader_epoch,
        one.start_offset,
        one.delivery_complete_count,
        _batches(one.state_batches),
    ),
    lambda one: WriteShareGroupStateRequest.PartitionData(
        partition=one.partition,
        state_epoch=one.state_epoch,
        leader_epoch=one.leader_epoch,
        start_offset=one.start_offset,
        delivery_complete_count=one.delivery_complete_count,
        state_batches=_write_batches(WriteShareGroupStateRequest.StateBatch, one.state_batches),
    ),
    _state_result,
    _result_writer(WriteShareGroupStateResponse.PartitionResult),
)

DELETE: Final = ShareApi(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    0,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateRequest.DeleteStateData,
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateResponse.DeleteStateResult,
    lambda topic_id, one: DeleteState(topic_id, one.partition),
    lambda one: DeleteShareGroupStateRequest.PartitionData(partition=one.partition),
    _state_result,
    _result_writer(DeleteShareGroupStateResponse.PartitionResult),
)

SUMMARY: Final = ShareApi(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    1,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    lambda topic_id, one: ReadState(topic_id, one.partition, one.leader_epoch),
    lambda one: ReadShareGroupStateSummaryRequest.PartitionData(partition=one.partition, leader_epoch=one.leader_epoch),
    lambda topic_id, one: SummaryResult(
        topic_id,
        one.partition,
        ErrorCode(one.error_code),
        one.error_message,
        one.state_epoch,
        one.leader_epoch,
        one.start_offset,
        one.delivery_complete_count,
    ),
    lambda one: ReadShareGroupStateSummaryResponse.PartitionResult(
        partition=one.partition,
        error_code=one.error,
        error_message=one.error_message,
        state_epoch=one.state_epoch,
        leader_epoch=one.leader_epoch,
        start_offset=one.start_offset,
        delivery_complete_count=one.delivery_complete_count,
    ),
    is_summary=True,
)
