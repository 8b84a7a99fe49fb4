"""DescribeLogDirs in every version."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.handlers.cluster import alter_replica_log_dirs, describe_log_dirs
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kpybroker.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.control_broker import Denying
from tests.support.requests.config_requests import BROKER, SET, change

Topic = DescribeLogDirsRequest.DescribableLogDirTopic


def found(result: DescribeLogDirsResponse.DescribeLogDirsResult) -> set[tuple[str, int]]:
    return {(topic.name, partition.partition_index) for topic in result.topics for partition in topic.partitions}


@pytest.mark.parametrize("version", range(6))
async def test_every_log_with_size_and_space(tmp_path: Path, version: int) -> None:
    async with configured_broker(tmp_path, "a", "b") as broker:
        response = await call(broker, describe_log_dirs, DescribeLogDirsRequest(topics=None), version)
        (result,) = response.results
        log = broker.logs.get("a", 0)
        assert log is not None
        size = log.size
    assert result.log_dir == str(tmp_path / "logs")
    assert found(result) == {("a", 0), ("b", 0)}
    partition = next(topic for topic in result.topics if topic.name == "a").partitions[0]
    assert (partition.partition_size, partition.offset_lag, partition.is_future_key) == (size, 0, False)
    if version >= 4:
        assert 0 < result.usable_bytes <= result.total_bytes


async def test_only_what_is_asked_for(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "a", "b") as broker:
        request = DescribeLogDirsRequest(
            topics=[Topic(topic="a", partitions=[0, 7]), Topic(topic="zz", partitions=[0])]
        )
        response = await call(broker, describe_log_dirs, request, 4)
        assert found(response.results[0]) == {("a", 0)}
        response = await call(broker, describe_log_dirs, DescribeLogDirsRequest(topics=[]), 4)
        assert found(response.results[0]) == set()


async def test_an_offline_directory_is_reported_as_such(tmp_path: Path) -> None:
    dirs = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    async with configured_broker(tmp_path, "a", log_dirs=dirs) as broker:
        first, second = broker.logs.dirs.configured
        broker.logs.take_offline(second, "it broke")
        response = await call(broker, describe_log_dirs, DescribeLogDirsRequest(topics=None), 4)
    assert {result.log_dir: result.error_code for result in response.results} == {
        first: ErrorCode.NONE,
        second: ErrorCode.KAFKA_STORAGE_ERROR,
    }


async def test_a_client_that_may_not_describe_the_cluster_sees_nothing(tmp_path: Path) -> None:
    denied = Denying([(Operation.DESCRIBE, ResourceType.CLUSTER, None)])
    async with configured_broker(tmp_path, "a") as broker:
        response = await call(broker, describe_log_dirs, DescribeLogDirsRequest(topics=None), 4, authorizer=denied)
    assert (response.error_code, response.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


async def test_a_directory_is_cordoned_and_opened_again_while_the_broker_runs(tmp_path: Path) -> None:
    one, two = (str(tmp_path / name) for name in ("one", "two"))

    async def cordoned(broker: Broker) -> dict[str, bool]:
        response = await call(broker, describe_log_dirs, DescribeLogDirsRequest(topics=[]), 5)
        return {result.log_dir: result.is_cordoned for result in response.results}

    async with configured_broker(tmp_path, log_dirs=f"{one},{two}", cordoned_log_dirs=one) as broker:
        assert await cordoned(broker) == {one: True, two: False}
        await broker.topics.create_topics([NewTopic("t", 3, 1)], 60_000)
        assert {log.log_dir for log in broker.logs} == {two}
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path=one, topics=[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="t", partitions=[0])]
                )
            ]
        )
        refused = await call(broker, alter_replica_log_dirs, request, 2)
        assert refused.results[0].partitions[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await change(broker, (BROKER, "0", [("cordoned.log.dirs", SET, "")])) == [(ErrorCode.NONE, None)]
        assert await cordoned(broker) == {one: False, two: False}
        assert await change(broker, (BROKER, "0", [("cordoned.log.dirs", SET, "*")])) == [(ErrorCode.NONE, None)]
        assert await cordoned(broker) == {one: True, two: True}
        assert (await change(broker, (BROKER, "", [("cordoned.log.dirs", SET, one)])))[0][0] is not ErrorCode.NONE
