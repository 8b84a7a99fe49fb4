"""Brokers that fail, networks that part, leaders that move: what the rest of the cluster makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.control.errors import ControlError
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from tests.support.brokers.hosted_cluster import HostedCluster, eventually, hosted_cluster
from tests.support.brokers.running_broker import ask


async def refused(cluster: HostedCluster, method: str, **arguments: object) -> ControlError:
    with pytest.raises(ControlError) as caught:
        await cluster.call(method, **arguments)
    return caught.value


# --- leaders


async def test_a_leader_moves_in_a_new_epoch_and_every_broker_knows(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        assert cluster.state("orders") == (0, 0, {0, 1, 2})
        moved = await cluster.call("move_leader", topic="orders", partition=0, to=2)
        assert moved == {"leader": 2, "leader_epoch": 1, "isr": [0, 1, 2]}
        for broker in cluster.hosted.brokers.values():
            assert broker.metadata.leader_and_epoch("orders", 0) == (2, 1)
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await cluster.produce("orders", b"1", broker=2) == ErrorCode.NONE
        assert await cluster.call("move_leader", topic="orders", partition=0, to=2) == moved


async def test_without_a_leader_clients_get_an_error_until_there_is_one(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        gone = await cluster.call("move_leader", topic="orders", partition=0, to=None)
        assert (gone["leader"], gone["leader_epoch"]) == (None, 1)
        assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
        response = await ask(cluster[1], request, 12)
        assert response.topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        # An election for another reason does not give it one.
        await cluster.call("broker_down", broker=0)
        await cluster.call("broker_up", broker=0)
        assert cluster.state("orders")[0] == -1
        await cluster.call("move_leader", topic="orders", partition=0, to=1)
        assert await cluster.produce("orders", b"2", broker=1) == ErrorCode.NONE
        assert cluster.log_end("orders", broker=1) == 2


async def test_reset_gives_a_leader_to_what_has_none(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [1, 2])
        await cluster.call("move_leader", topic="orders", partition=0, to=None)
        await cluster.call("reset")
        await eventually(lambda: cluster.state("orders")[0] == 1, "a leader")


async def test_what_cannot_lead_is_refused_with_what_can(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1], [1, 0])
        error = await refused(cluster, "move_leader", topic="order", partition=0, to=1)
        assert (error.cause, error.fix) == ("there is no topic `order`", "did you mean `orders`?")
        error = await refused(cluster, "move_leader", topic="orders", partition=2, to=1)
        assert (error.cause, error.fix) == ("there is no partition 2 of orders", "give 0 to 1")
        error = await refused(cluster, "move_leader", topic="orders", partition=0, to=2)
        assert (error.cause, error.fix) == ("broker 2 has no replica of orders-0", "give one of 0, 1")
        await cluster.call("broker_down", broker=1)
        error = await refused(cluster, "move_leader", topic="orders", partition=0, to=1)
        assert error.fix == "start it first"


async def test_shuffled_leaders_depend_on_the_seed_and_are_in_sync(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", *[[0, 1, 2]] * 8)
        await cluster.create_topic("other", [0, 1])
        found = [await cluster.call("shuffle_leaders", topic="orders", seed=seed) for seed in (1, 2, 1)]
        leaders = [{name: state["leader"] for name, state in moved.items()} for moved in found]
        assert leaders[0] == leaders[2] != leaders[1]
        assert set(leaders[0]) == {f"orders-{index}" for index in range(8)}
        assert set(leaders[0].values()) == {0, 1, 2}
        assert cluster.state("other")[1] == 0
        assert "other-0" in await cluster.call("shuffle_leaders")


async def find_coordinator(cluster: HostedCluster, group: str) -> tuple[int, int]:
    response = await ask(cluster[0], FindCoordinatorRequest(key=group), 2)
    return response.error_code, response.node_id


async def test_a_coordinator_moves_and_its_topic_is_created_if_necessary(tmp_path: Path) -> None:
    async with hosted_cluster(
        tmp_path, offsets_topic_replication_factor="3", transaction_state_log_replication_factor="3"
    ) as cluster:
        for to in (2, 0, 1):
            moved = await cluster.call("move_coordinator", group="billing", to=to)
            assert (moved["topic"], moved["leader"]) == ("__consumer_offsets", to)
            assert await find_coordinator(cluster, "billing") == (ErrorCode.NONE, to)
        await cluster.call("move_coordinator", group="billing", to=None)
        assert (await find_coordinator(cluster, "billing"))[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await cluster.call("move_coordinator", group="billing", to=2)
        assert await find_coordinator(cluster, "billing") == (ErrorCode.NONE, 2)
        moved = await cluster.call("move_coordinator", transactional_id="tx-1", to=1)
        assert (moved["topic"], moved["leader"]) == ("__transaction_state", 1)
        error = await refused(cluster, "move_coordinator", to=1)
        assert "group or a transactional id" in error.cause


# --- brokers


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_broker_goes_down_and_comes_back_with_what_it_had(tmp_path: Path, how: str) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        await cluster.call("broker_down", broker=0, how=how)
        assert await cluster.produce("orders", b"2", broker=await cluster.leader("orders")) == ErrorCode.NONE
        assert (await refused(cluster, "pause", broker=0)).cause == "broker 0 is down"
        status = await cluster.call("broker_up", broker=0)
        assert (status["id"], status["state"]) == (0, "up")
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the broker in the ISR again")
        assert cluster.log_end("orders", broker=0) == 2


async def test_a_broker_is_added_and_removed(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1, on_sockets=True) as cluster:
        added = await cluster.call("add_broker", rack="b")
        assert (added["id"], added["state"], added["rack"]) == (1, "up", "b")
        await cluster.create_topic("orders", [0, 1])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        await cluster.call("pause", broker=1)
        await cluster.call("remove_broker", broker=1)
        assert list(cluster.hosted.ids) == [0]
        assert (await refused(cluster, "broker_up", broker=1)).cause == "there is no broker 1"


async def test_a_paused_leader_is_silent_and_is_replaced_when_its_session_ends(tmp_path: Path) -> None:
    async with hosted_cluster(
        tmp_path, zookeeper_session_timeout_ms="300", replica_lag_time_max_ms="300", on_sockets=True
    ) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        await cluster.call("pause", broker=0)
        assert (await cluster.call("status"))["brokers"][0]["state"] == "paused"
        leader = await cluster.leader("orders", other_than=0)
        assert await cluster.produce("orders", b"2", broker=leader) == ErrorCode.NONE
        assert cluster.leader_known_by(0, "orders") == 0  # the old one knows nothing of it
        await cluster.call("resume", broker=0)
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the broker in the ISR again")
        assert cluster.log_end("orders", broker=0) == 2
        assert cluster.leader_known_by(0, "orders") == cluster.state("orders")[0]


async def test_a_paused_follower_leaves_the_isr_and_returns(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, replica_lag_time_max_ms="200") as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        follower = 2 if cluster.controller.node_id != 2 else 1
        await cluster.call("pause", broker=follower)
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE  # once the ISR has shrunk
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2} - {follower}, "every broker knows")
        await cluster.call("resume", broker=follower)
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the follower in the ISR again")


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_paused_broker_can_be_ended(tmp_path: Path, how: str) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        await cluster.call("pause", broker=0)
        await cluster.call("broker_down", broker=0, how=how)
        await eventually(lambda: cluster.state("orders")[0] in (1, 2), "another leader")
        await cluster.call("broker_up", broker=0)
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the broker in the ISR again")


async def test_the_controller_loses_its_session_and_another_one_is_elected(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        before = cluster.controller
        epoch = before.broker_epoch
        await cluster.call("expire_session", broker=before.node_id)
        assert before.broker_epoch > epoch
        assert cluster.controller is not before
        others = [broker for broker in cluster.hosted.brokers.values() if broker is not before]
        await eventually(lambda: all(b.metadata.is_alive(before.node_id) for b in others), "the broker is back")
        await cluster.create_topic("later", [0, 1, 2])


# --- the network


async def test_a_leader_that_is_cut_off_from_its_followers_goes_on_alone(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, replica_lag_time_max_ms="300", on_sockets=True) as cluster:
        alone = cluster.controller.node_id
        others = [broker for broker in (0, 1, 2) if broker != alone]
        await cluster.create_topic("orders", [alone, *others])
        assert await cluster.produce("orders", b"1", broker=alone) == ErrorCode.NONE
        await cluster.call("partition_network", groups=[[alone], others])
        assert await cluster.produce("orders", b"2", broker=alone) == ErrorCode.NONE  # once the ISR has shrunk
        await eventually(lambda: cluster.state("orders")[2] == {alone}, "the controller's metadata")
        assert cluster.log_end("orders", broker=others[0]) == 1
        await cluster.call("heal_network")
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the followers in the ISR again")
        assert cluster.log_end("orders", broker=others[0]) == 2


async def test_a_leader_that_the_controller_does_not_reach_cannot_acknowledge(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, replica_lag_time_max_ms="300") as cluster:
        controller = cluster.controller.node_id
        leader = (controller + 1) % 3
        await cluster.create_topic("orders", [leader, controller])
        await cluster.call("partition_network", groups=[[leader], [controller]])
        code = await cluster.produce("orders", b"1", broker=leader, timeout_ms=1_000)
        assert code == ErrorCode.REQUEST_TIMED_OUT
        assert cluster.state("orders")[2] == {leader, controller}
        await cluster.call("heal_network")
        await eventually(lambda: cluster.high_watermark("orders", broker=leader) == 1, "the record is committed")


async def test_a_broker_without_the_tree_is_replaced_and_what_it_accepted_is_lost(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, zookeeper_session_timeout_ms="300", on_sockets=True) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        await cluster.call("partition_network", groups=[[0], [1, 2]], coordination=[1, 2])
        assert await cluster.produce("orders", b"only here", broker=0, acks=1) == ErrorCode.NONE
        leader = await cluster.leader("orders", other_than=0)
        assert await cluster.produce("orders", b"2", b"3", broker=leader) == ErrorCode.NONE
        await cluster.call("heal_network")
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the broker in the ISR again")
        assert b"only here" not in await cluster.records("orders", broker=leader)
        assert cluster.log_end("orders", broker=0) == 3


async def test_groups_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        error = await refused(cluster, "partition_network", groups=[[0], [0, 1]])
        assert error.fix == "name each broker once"
        error = await refused(cluster, "partition_network", groups=[[0]])
        assert error.fix == "add a group of others: 1, 2"
        error = await refused(cluster, "partition_network", groups=[[0], [7]])
        assert error.cause == "there is no broker 7"
