"""After an orderly stop every partition that another broker can lead has a leader."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from tests.support.brokers.running_broker import ask
from tests.support.brokers.running_cluster import RunningCluster, running_cluster

Topic = CreateTopicsRequest.CreatableTopic
Assignment = CreateTopicsRequest.CreatableReplicaAssignment


async def create(cluster: RunningCluster, name: str, *replicas: list[int]) -> None:
    topic = Topic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[Assignment(partition_index=i, broker_ids=ids) for i, ids in enumerate(replicas)],
    )
    response = await ask(cluster.controller, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    assert response.topics[0].error_code == ErrorCode.NONE, response.topics[0].error_message


async def state(broker: Broker, topic: str, partition: int = 0) -> znodes.PartitionState:
    return znodes.decode_partition_state((await broker.tree.get(znodes.partition_state_path(topic, partition))).data)


async def led_until_the_end(cluster: RunningCluster, stopping: int, topic: str) -> list[int]:
    """The leaders in the metadata of broker 3, at each change, while `stopping` stops."""
    seen: list[int] = []

    async def watch(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            leader_and_epoch = cluster.brokers[3].metadata.leader_and_epoch(topic, 0)
            assert leader_and_epoch is not None
            if not seen or seen[-1] != leader_and_epoch[0]:
                seen.append(leader_and_epoch[0])
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        await nursery.start(watch)
        await cluster.stop(stopping)
        nursery.cancel_scope.cancel()
    return seen


async def test_a_brokers_leaderships_move_before_it_is_gone(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, 3) as cluster:
        await create(cluster, "t", [2, 1])
        assert await led_until_the_end(cluster, 2, "t") == [2, 1]
        found = await state(cluster.brokers[1], "t")
        assert (found.leader, found.isr) == (1, (1,))


async def test_the_controller_itself_stops_in_the_same_way(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, 3) as cluster:
        await create(cluster, "t", [1, 2])
        assert cluster.controller.node_id == 1
        assert await led_until_the_end(cluster, 1, "t") == [1, 2]
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert cluster.controller.node_id in (2, 3)


async def test_without_controlled_shutdown_a_leader_is_elected_after_the_broker_is_gone(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, controlled_shutdown_enable="false") as cluster:
        await create(cluster, "t", [2, 1])
        epoch = (await state(cluster.brokers[1], "t")).leader_epoch
        await cluster.stop(2)
        metadata = cluster.brokers[1].metadata
        assert await metadata.wait_until(lambda snapshot: metadata.leader_and_epoch("t", 0) == (1, epoch + 1), 5)


async def test_a_partition_that_no_other_broker_can_lead_is_retried_and_then_given_up(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    keys = {"controlled_shutdown_max_retries": "2", "controlled_shutdown_retry_backoff_ms": "7000"}
    async with running_cluster(tmp_path, 1, 2, **keys) as cluster:
        await create(cluster, "t", [2, 1])
        # Broker 1 is out of the ISR, so that broker 2 alone can lead.
        path = znodes.partition_state_path("t", 0)
        found = await state(cluster.brokers[1], "t")
        only_two = znodes.PartitionState(2, found.leader_epoch, (2,), found.controller_epoch)
        await cluster.brokers[1].tree.set(path, znodes.encode_partition_state(only_two))
        started_at = trio.current_time()
        await cluster.stop(2)
        assert 14 <= trio.current_time() - started_at < 15


async def test_a_controller_that_refuses_is_asked_again(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with running_cluster(tmp_path, 1, 2, controlled_shutdown_retry_backoff_ms="3000") as cluster:
        await create(cluster, "t", [2, 1])
        control = cluster.brokers[1].controller
        served, refusals = control.ask, [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR]

        async def refuse(event: object) -> object:
            if type(event).__name__ == "ControlledShutdown" and refusals:
                raise KafkaError(refusals.pop())
            return await served(event)  # type: ignore[arg-type]

        control.ask = refuse  # type: ignore[method-assign]
        await cluster.stop(2)
        assert not refusals
        assert (await state(cluster.brokers[1], "t")).leader == 1
