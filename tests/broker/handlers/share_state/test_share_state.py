"""The five APIs of the share coordinator: requests as frames, who may ask, and what is empty."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kpybroker.broker.handlers import routes
from kpybroker.broker.handlers.share_state import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kpybroker.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kpybroker.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kpybroker.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.handling import response_of
from tests.support.share.members import finalize_share_version

HANDLERS: list[Any] = [
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
    delete_share_group_state,
    read_share_group_state_summary,
]
REQUESTS: dict[Any, tuple[Any, Any]] = {
    initialize_share_group_state: (
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateRequest.InitializeStateData,
    ),
    read_share_group_state: (ReadShareGroupStateRequest, ReadShareGroupStateRequest.ReadStateData),
    write_share_group_state: (WriteShareGroupStateRequest, WriteShareGroupStateRequest.WriteStateData),
    delete_share_group_state: (DeleteShareGroupStateRequest, DeleteShareGroupStateRequest.DeleteStateData),
    read_share_group_state_summary: (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
    ),
}
KEYS: dict[str, Any] = {
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
}


def request(handler: Any, topic_id: bytes, group_id: str = "g", *, partitions: int = 1, **fields: Any) -> Any:
    request_class, topic_class = REQUESTS[handler]
    partition_class = request_class.PartitionData
    rows = [partition_class(partition=index, **fields) for index in range(partitions)]
    return request_class(group_id=group_id, topics=[topic_class(topic_id=topic_id, partitions=rows)])


async def test_a_state_by_requests(tmp_path: Path) -> None:
    async with running_broker(tmp_path, **KEYS) as broker:
        topic_id = await create_topic(broker, "orders", 2)
        find = FindCoordinatorRequest(key_type=2, coordinator_keys=["not a key", f"g:{'A' * 22}:0"])
        found = (await ask(broker, find, 6)).coordinators
        assert [one.error_code for one in found] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]

        async def asked(handler: Any, version: int, **fields: Any) -> list[Any]:
            (topic,) = (await ask(broker, request(handler, topic_id, **fields), version)).results
            assert topic.topic_id == topic_id
            return list(topic.partitions)

        begun = await asked(initialize_share_group_state, 0, partitions=3, state_epoch=4, start_offset=5)
        codes = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert [(one.partition, one.error_code) for one in begun] == list(enumerate(codes))
        batch = WriteShareGroupStateRequest.StateBatch(
            first_offset=5, last_offset=6, delivery_state=2, delivery_count=1
        )
        written = {"state_epoch": 4, "leader_epoch": 0, "start_offset": -1, "state_batches": [batch]}
        for version in (0, 1):
            counted = {"delivery_complete_count": 2} if version else {}
            (one,) = await asked(write_share_group_state, version, **written, **counted)
            assert (one.error_code, one.error_message) == (ErrorCode.NONE, None)
        (one,) = await asked(read_share_group_state, 0, leader_epoch=3)
        (row,) = one.state_batches
        assert (one.state_epoch, one.start_offset) == (4, 5)
        assert (row.first_offset, row.last_offset, row.delivery_state, row.delivery_count) == (5, 6, 2, 1)
        for version, count in ((0, -1), (1, 2)):
            (one,) = await asked(read_share_group_state_summary, version, leader_epoch=0)
            numbers = (one.state_epoch, one.leader_epoch, one.start_offset, one.delivery_complete_count)
            assert numbers == (4, 3, 5, count)
        (one,) = await asked(delete_share_group_state, 0)
        assert one.error_code == ErrorCode.NONE
        (one,) = await asked(read_share_group_state, 0, leader_epoch=3)
        assert (one.error_code, one.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Read operation on uninitialized share partition not allowed.",
        )


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.__name__.rpartition(".")[2])
async def test_only_brokers_may_ask_and_empty_requests_have_empty_responses(handler: Any) -> None:
    assert routes.load(handler.LEDGER.api_key) is handler
    authorizer: Any = Denying()
    context = RequestContext(PlainConnectionInfo(), authorizer, handler.LEDGER.api_key, handler.LEDGER.max_version)
    request_class, topic_class = REQUESTS[handler]
    no_broker = SimpleNamespace()
    for empty in (
        request_class(group_id="g"),
        request_class(group_id="g", topics=[topic_class(topic_id=bytes(16))]),
        request(handler, bytes(16), group_id=""),
    ):
        assert (await response_of(handler, no_broker, empty, context)).results == []
    authorizer.denied.add((Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME))
    refused = await response_of(handler, no_broker, request(handler, bytes(16), partitions=2), context)
    (topic,) = refused.results
    codes = [(one.partition, one.error_code) for one in topic.partitions]
    assert codes == [(index, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) for index in range(2)]


async def test_without_the_level_there_is_no_coordinator(tmp_path: Path) -> None:
    async with running_broker(tmp_path, **KEYS) as broker:
        finalize_share_version(broker, 0)
        find = FindCoordinatorRequest(key_type=2, coordinator_keys=["not a key", f"g:{'A' * 22}:0"])
        codes = [one.error_code for one in (await ask(broker, find, 6)).coordinators]
        assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.COORDINATOR_NOT_AVAILABLE]
        asked = request(read_share_group_state, bytes(15) + b"\x01", leader_epoch=3)
        ((row,),) = [topic.partitions for topic in (await ask(broker, asked, 0)).results]
        assert row.error_code == ErrorCode.NOT_COORDINATOR
