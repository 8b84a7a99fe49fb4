"""DescribeLogDirs in every version."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers.cluster import describe_log_dirs
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.control_broker import Denying

Topic = DescribeLogDirsRequest.DescribableLogDirTopic


def found(result: DescribeLogDirsResponse.DescribeLogDirsResult) -> set[tuple[str, int]]:
    return {(topic.name, partition.partition_index) for topic in result.topics for partition in topic.partitions}


@pytest.mark.parametrize("version", range(5))
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
