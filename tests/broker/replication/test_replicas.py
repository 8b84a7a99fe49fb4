"""Replicas without a broker: what the controller's orders do to partitions, and which callbacks they trigger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpybroker.broker.cluster.config_repository import ConfigRepository
from kpybroker.broker.cluster.metadata_cache import MetadataCache
from kpybroker.broker.replication.partition import Partition
from kpybroker.broker.replication.replicas import ReplicaEvents, Replicas
from kpybroker.config.topic import LogConfig
from kpybroker.core.controller.model import LEADER_DURING_DELETE
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.host import FakeHost, fake_host
from tests.support.storage.batches import NOW_MS, batch

TOPIC_ID = b"t" * 16
State = LeaderAndIsrRequest.LeaderAndIsrPartitionState


class Configs:
    """Every topic has the default configuration, and no key of the broker changes."""

    def topic_config(self, topic: str) -> LogConfig:
        return LogConfig()

    def on_broker_change(self, listener: Any) -> None:
        pass


class Scene:
    """Broker 0 and its replicas; `events` are the callbacks so far."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.events: list[str] = []
        events = ReplicaEvents(
            elected=self._note("elected"),
            resigned=self._note("resigned"),
            log_deleted=lambda: self.events.append("log deleted"),
            segment_rolled=self._note("rolled"),
            lacked_space=lambda: self.events.append("no space"),
        )
        self.replicas = Replicas(
            host, MetadataCache(host.config), cast(ConfigRepository, Configs()), no_other_brokers(), events
        )

    def _note(self, event: str) -> Any:
        def note(partition: Partition) -> None:
            self.events.append(f"{event} {partition.topic}-{partition.index}")

        return note

    async def order(self, state: State, *, version: int = 7, controller_epoch: int = 1) -> LeaderAndIsrResponse:
        """One LeaderAndIsr about `t`, as it looks in this version."""
        request = LeaderAndIsrRequest(controller_epoch=controller_epoch)
        if version < 2:
            state.topic_name = "t"
            request.ungrouped_partition_states = [state]
        else:
            topic_id = TOPIC_ID if version >= 5 else bytes(16)
            request.topic_states = [
                LeaderAndIsrRequest.LeaderAndIsrTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
            ]
        return await self.replicas.become_leader_or_follower(request, version)

    async def lead(self, epoch: int = 0) -> Partition:
        response = await self.order(led_by(0, epoch))
        assert codes(response) == [ErrorCode.NONE]
        return self.replicas.hosted("t", 0)

    async def stop(self, epoch: int, *, delete: bool) -> StopReplicaResponse:
        state = StopReplicaRequest.StopReplicaPartitionState(
            partition_index=0, leader_epoch=epoch, delete_partition=delete
        )
        topic = StopReplicaRequest.StopReplicaTopicState(topic_name="t", partition_states=[state])
        return await self.replicas.stop_replicas(StopReplicaRequest(controller_epoch=1, topic_states=[topic]))


def no_other_brokers() -> Any:
    def unexpected(*_: object) -> Any:
        raise AssertionError("a single broker needs no other")

    return SimpleNamespace(connection_to=unexpected, controller_channel=unexpected)


def led_by(leader: int, epoch: int) -> State:
    return State(partition_index=0, leader=leader, leader_epoch=epoch, isr=[0], replicas=[0], is_new=epoch == 0)


def codes(response: LeaderAndIsrResponse) -> list[int]:
    by_id = [error for topic in response.topics for error in topic.partition_errors]
    return [error.error_code for error in (*response.partition_errors, *by_id)]


@asynccontextmanager
async def scene(directory: Path) -> AsyncIterator[Scene]:
    async with fake_host(directory) as host:
        yield Scene(host)


async def test_leading_makes_the_log_and_elects_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        partition = await made.lead(0)
        assert partition.append(ProducedBatches(batch(b"a", b"b"), NOW_MS, 9)).last_offset == 1
        assert partition.high_watermark == 2
        await made.lead(1)
        assert made.events == ["elected t-0"], "it has led all the time"
        assert (len(made.replicas), made.replicas.leader_count, len(made.host.logs)) == (1, 1, 1)
        assert made.replicas.topic_names == {TOPIC_ID: "t"}


async def test_without_a_leader_it_follows_no_one_and_resigns(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        partition = await made.lead(0)
        await made.order(led_by(-1, 1))
        assert made.events == ["elected t-0", "resigned t-0"]
        assert (partition.leader, partition.leader_epoch) == (None, 1)
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER):
            partition.append(ProducedBatches(batch(b"a"), NOW_MS, 9))


@pytest.mark.parametrize("version", [0, 1, 2, 4, 5, 7])
async def test_each_version_gets_its_shape_of_response(tmp_path: Path, version: int) -> None:
    async with scene(tmp_path) as made:
        response = await made.order(led_by(0, 0), version=version)
        assert codes(response) == [ErrorCode.NONE]
        assert [topic.topic_id for topic in response.topics] == ([TOPIC_ID] if version >= 5 else [])
        assert [error.topic_name for error in response.partition_errors] == ([] if version >= 5 else ["t"])


async def test_orders_that_are_not_newer_change_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        partition = await made.lead(3)
        for epoch in (3, 2):
            assert codes(await made.order(led_by(-1, epoch))) == [ErrorCode.STALE_CONTROLLER_EPOCH]
        assert (await made.order(led_by(-1, 4), controller_epoch=0)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        other = State(partition_index=0, leader=1, leader_epoch=4, isr=[1], replicas=[1])
        assert codes(await made.order(other)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert (partition.leader is not None, partition.leader_epoch) == (True, 3)
        assert made.events == ["elected t-0"]


async def test_a_topic_from_before_topic_ids_gets_its_id_without_a_new_epoch(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        assert codes(await made.order(led_by(0, 0), version=4)) == [ErrorCode.NONE]
        partition = made.replicas.hosted("t", 0)
        assert partition.topic_id == bytes(16)
        assert codes(await made.order(led_by(0, 0), version=7)) == [ErrorCode.NONE]
        assert (partition.topic_id, partition.leader_epoch) == (TOPIC_ID, 0)


async def test_stopping_deletes_the_log_only_where_asked(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        await made.lead(2)
        assert (await made.stop(1, delete=True)).partition_errors[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await made.stop(2, delete=False)).partition_errors[0].error_code == ErrorCode.NONE
        assert len(made.host.logs) == 1
        assert (await made.stop(2, delete=True)).partition_errors[0].error_code == ErrorCode.NONE
        assert (len(made.replicas), len(made.host.logs), made.replicas.topic_names) == (0, 0, {})
        assert made.events == ["elected t-0", "resigned t-0", "log deleted"]
        assert made.replicas.not_hosted("t", 0).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("replicas", "topic_id", "is_deleted"),
    [([5], TOPIC_ID, True), ([5, 0], TOPIC_ID, False), ([5], b"u" * 16, False), ([5], bytes(16), False)],
)
async def test_a_replica_that_was_left_behind_goes_with_its_topic(
    tmp_path: Path, replicas: list[int], topic_id: bytes, is_deleted: bool
) -> None:
    """Where the controller counts on this broker it sends a StopReplica; under another id it is another topic."""
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(leader=LEADER_DURING_DELETE, replicas=replicas)
    topic = UpdateMetadataRequest.UpdateMetadataTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
    async with scene(tmp_path) as made:
        await made.lead(0)
        await made.replicas.delete_left_behind(UpdateMetadataRequest(controller_epoch=1, topic_states=[topic]))
        assert (made.replicas.partition("t", 0) is None) == is_deleted
        assert (made.host.logs.get("t", 0) is None) == is_deleted
        assert ("log deleted" in made.events) == is_deleted


async def test_a_failed_directory_takes_its_partitions_offline(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        partition = await made.lead(0)
        made.replicas.log_dir_failed(partition.online_log().log_dir)
        assert (partition.log, partition.is_offline) == (None, True)
        assert made.events == ["elected t-0", "resigned t-0"]
        assert codes(await made.order(led_by(0, 1))) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert (await made.stop(1, delete=True)).partition_errors[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_replica_that_cannot_begin_for_lack_of_space_says_so_and_begins_with_the_next_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, is_new: bool) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    async with scene(tmp_path) as made:
        with monkeypatch.context() as full:
            full.setattr(made.host.logs, "get_or_create", refuse)
            assert codes(await made.order(led_by(0, 0))) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert made.events == ["no space"]
        assert codes(await made.order(led_by(0, 0))) == [ErrorCode.NONE]
        assert made.events == ["no space", "elected t-0"]


async def test_a_log_is_truncated_under_the_lock_and_never_by_its_leader(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        partition = await made.lead(0)
        partition.append(ProducedBatches(batch(b"a", b"b"), NOW_MS, 9))
        async with made.replicas.state_change_lock:
            with pytest.raises(AssertionError, match="truncated while this broker leads"):
                await made.replicas.truncate(partition, 0)
            with pytest.raises(AssertionError, match="truncated while this broker leads"):
                made.replicas.restart_log(partition, 7)
        await made.order(led_by(-1, 1))
        with pytest.raises(AssertionError, match="truncated without the lock"):
            await made.replicas.truncate(partition, 0)
        with pytest.raises(AssertionError, match="truncated without the lock"):
            made.replicas.restart_log(partition, 7)
        assert partition.online_log().log_end_offset == 2
        async with made.replicas.state_change_lock:
            made.replicas.restart_log(partition, 7)
        assert partition.online_log().log_end_offset == 7
