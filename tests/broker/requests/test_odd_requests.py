"""Whatever a client sends becomes a response or the end of its connection: never a traceback, never a broken broker.

The names are as long as the protocol carries, or not what a name should be; numbers are at their limits. A response
that quotes them fits, in every version of every API.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from kpybroker.wire.primitives import MAX_STRING
from kpybroker.wire.schema import Message, struct_fields
from tests.support.brokers.running_broker import SHARE_STATES, ask, create_topic, running_broker
from tests.support.requests.odd_requests import LONG, odd_request

STATE_OF_THE_CLUSTER = {ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA, ApiKey.CONTROLLED_SHUTDOWN}
"""They change what the broker believes, as a controller may: they have tests of their own."""


def with_long_names(request_class: type[Message], version: int, struct: type[Message] | None = None) -> Any:
    """Every string has its greatest length, in arrays of two."""
    made = (struct or request_class)()
    for field in struct_fields(request_class, struct):
        if not field.present(version) or not (field.type_name == "string" or field.struct is not None):
            continue
        values = [
            LONG if field.struct is None else with_long_names(request_class, version, field.struct) for _ in range(2)
        ]
        setattr(made, field.name, values if field.array else values[0])
    return made


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage()[:300] for each in caplog.records if each.exc_info or "Unexpected" in each.message]


async def is_well(broker: Broker) -> bool:
    response = await ask(broker, MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 8)
    return bool(response.topics[0].error_code == 0 and broker.logs.dirs.live and broker.fatal is None)


@pytest.mark.parametrize("key", SERVED.keys() - {ApiKey.CONTROLLED_SHUTDOWN}, ids=lambda key: key.name)
async def test_names_of_the_greatest_length_have_a_response_in_every_version(
    tmp_path: Path, key: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    oldest, newest = SERVED[key]
    async with running_broker(tmp_path, topics=["t"]) as broker:
        for version in range(oldest, newest + 1):
            request = with_long_names(API_INFO[key].request_class(), version)
            try:
                await ask(broker, request, version, client_id=LONG)
            except ProtocolError:
                assert key in {ApiKey.PRODUCE, ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS}
        assert await is_well(broker)
    assert not failures(caplog)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("of_a_controller", [False, True])
async def test_odd_values_have_a_response(
    tmp_path: Path, of_a_controller: bool, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(seed)
    caplog.set_level(logging.WARNING)
    keys = STATE_OF_THE_CLUSTER if of_a_controller else SERVED.keys() - STATE_OF_THE_CLUSTER
    keys -= {ApiKey.CONTROLLED_SHUTDOWN}
    async with running_broker(tmp_path, topics=["u"], **SHARE_STATES) as broker:
        topic_id = await create_topic(broker, "t", 3)
        for key in sorted(keys) * (60 if of_a_controller else 8):
            version = random.randint(*SERVED[key])
            request = odd_request(API_INFO[key].request_class(), version, random, topic_id)
            with trio.move_on_after(60) as limit:  # none waits longer than its timeout, and that is short
                try:
                    await ask(broker, request, version, client_id=random.choice(("", "c", LONG, "a\nb")))
                except ProtocolError:
                    pass
            assert not limit.cancelled_caught, request
            assert not failures(caplog), request
        assert (await ask(broker, ApiVersionsRequest(), 0)).error_code == 0
        assert broker.logs.dirs.live
        assert broker.fatal is None


BAD_NAMES = ["x" * 300, LONG, "..", ".", "", "a/b", "a\0b", "a b", "ä", "t/partitions", "\ud7ff"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:20]))
@pytest.mark.parametrize("version", [1, 3, 7])
async def test_no_other_broker_makes_a_partition_of_a_name_that_is_no_topic(
    tmp_path: Path, name: str, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        order = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
            topic_name=name, partition_index=0, leader=0, leader_epoch=1, isr=[0], replicas=[0], is_new=True
        )
        index = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
            topic_name="u", partition_index=-1, leader=0, leader_epoch=1, isr=[0], replicas=[0], is_new=True
        )
        request = LeaderAndIsrRequest(controller_epoch=1, broker_epoch=broker.broker_epoch)
        if version < 2:
            request.ungrouped_partition_states = [order, index]
        else:
            by_topic = LeaderAndIsrRequest.LeaderAndIsrTopicState
            request.topic_states = [
                by_topic(topic_name=name, topic_id=b"n" * 16, partition_states=[order]),
                by_topic(topic_name="u", topic_id=b"u" * 16, partition_states=[index]),
            ]
        response = await ask(broker, request, version)
        errors = response.partition_errors or [e for topic in response.topics for e in topic.partition_errors]
        assert [error.error_code for error in errors] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2
        update = UpdateMetadataRequest(
            controller_epoch=1,
            broker_epoch=broker.broker_epoch,
            topic_states=[
                UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=name,
                    partition_states=[UpdateMetadataRequest.UpdateMetadataPartitionState(partition_index=0, leader=0)],
                )
            ],
            live_brokers=[
                UpdateMetadataRequest.UpdateMetadataBroker(
                    id=0,
                    endpoints=[UpdateMetadataRequest.UpdateMetadataEndpoint(host="h", port=1, listener="PLAINTEXT")],
                )
            ],
        )
        assert (await ask(broker, update, 6)).error_code == 0
        assert not broker.metadata.contains(name)
        stop = StopReplicaRequest(
            controller_epoch=1,
            broker_epoch=broker.broker_epoch,
            topic_states=[
                StopReplicaRequest.StopReplicaTopicState(
                    topic_name=name,
                    partition_states=[StopReplicaRequest.StopReplicaPartitionState(delete_partition=True)],
                )
            ],
        )
        assert (await ask(broker, stop, 3)).error_code == 0
        assert await is_well(broker)
    assert not failures(caplog)


async def test_a_broker_that_says_it_is_this_one_is_no_follower(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
        request = FetchRequest(replica_id=0, topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])])
        response = await ask(broker, request, 4)
        assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("instance_id", [None, LONG, "ä" * (MAX_STRING // 2)])
@pytest.mark.parametrize("client_id", [LONG, "ä" * (MAX_STRING // 2)], ids=["plain", "two bytes"])
async def test_a_member_id_fits_whatever_client_it_is_of(
    tmp_path: Path, client_id: str, instance_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        await ask(broker, FindCoordinatorRequest(key="g"), 2)
        await broker.metadata.wait_until(lambda snapshot: snapshot.has_leader(GROUP_METADATA_TOPIC_NAME, 0), 60)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=1000,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        response = await ask(broker, request, 5, client_id=client_id)
        if instance_id is None:
            assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
            request.member_id = response.member_id
            response = await ask(broker, request, 5, client_id=client_id)
        assert response.error_code == 0
        assert MAX_STRING - 2 <= len(response.member_id.encode()) <= MAX_STRING
    assert not failures(caplog)
