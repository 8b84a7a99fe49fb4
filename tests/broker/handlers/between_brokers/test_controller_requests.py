"""What brokers and tools ask of the controller: AlterPartition, ControlledShutdown, and the moves of replicas."""

from __future__ import annotations

import pytest

from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.handlers.between_brokers import alter_partition, controlled_shutdown
from kpybroker.broker.handlers.cluster import alter_partition_reassignments, list_partition_reassignments
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest
from kpybroker.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kpybroker.wire.messages.controlled_shutdown import ControlledShutdownRequest
from kpybroker.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.support.brokers.control_broker import ControlBroker, Denying, call, running_broker

ReassignTopic = AlterPartitionReassignmentsRequest.ReassignableTopic
ReassignPartition = AlterPartitionReassignmentsRequest.ReassignablePartition
ListTopic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


def not_the_controller(broker: ControlBroker) -> None:
    broker.controller.machine.parts.active_controller_id = 7


def alter(broker: ControlBroker, version: int, isr: list[int], partition_epoch: int = 0) -> AlterPartitionRequest:
    data = AlterPartitionRequest.PartitionData(leader_epoch=0, partition_epoch=partition_epoch)
    if version >= 3:
        data.new_isr_with_epochs = [AlterPartitionRequest.BrokerState(broker_id=i) for i in isr]
    else:
        data.new_isr = isr
    topic = AlterPartitionRequest.TopicData(partitions=[data])
    if version >= 2:
        topic.topic_id = broker.metadata.topic_id("t")
    else:
        topic.topic_name = "t"
    return AlterPartitionRequest(broker_id=0, broker_epoch=broker.broker_epoch, topics=[topic])


@pytest.mark.parametrize("version", range(4))
async def test_a_leader_has_its_isr_confirmed_in_every_version(version: int) -> None:
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        response = await call(broker, alter_partition, alter(broker, version, [0]), version)
        assert response.error_code == ErrorCode.NONE
        (topic,) = response.topics
        assert (topic.topic_name, topic.topic_id) == (
            ("t", bytes(16)) if version < 2 else ("", broker.metadata.topic_id("t"))
        )
        assert [(p.isr, p.leader_id, p.error_code) for p in topic.partitions] == [([0], 0, ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("version", "code"), [(0, ErrorCode.OPERATION_NOT_ATTEMPTED), (3, ErrorCode.INELIGIBLE_REPLICA)]
)
async def test_a_dead_broker_does_not_enter_the_isr(version: int, code: ErrorCode) -> None:
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        response = await call(broker, alter_partition, alter(broker, version, [0, 5]), version)
        assert response.topics[0].partitions[0].error_code == code


async def test_without_cluster_action_nothing_is_altered_or_shut_down() -> None:
    denying = Denying([(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, None)])
    async with running_broker() as broker:
        for handler, request in (
            (alter_partition, AlterPartitionRequest(broker_id=0)),
            (controlled_shutdown, ControlledShutdownRequest(broker_id=0)),
        ):
            response = await call(broker, handler, request, 3, authorizer=denying)
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", range(4))
async def test_a_sole_replica_does_not_keep_a_broker_from_stopping(version: int) -> None:
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        request = ControlledShutdownRequest(broker_id=0)
        if version >= 2:
            request.broker_epoch = broker.broker_epoch
        response = await call(broker, controlled_shutdown, request, version)
        assert (response.error_code, response.remaining_partitions) == (ErrorCode.NONE, [])


async def test_a_shutdown_is_refused_to_strangers_and_former_selves() -> None:
    async with running_broker() as broker:
        for request, code in (
            (ControlledShutdownRequest(broker_id=5), ErrorCode.BROKER_NOT_AVAILABLE),
            (ControlledShutdownRequest(broker_id=0, broker_epoch=1), ErrorCode.STALE_BROKER_EPOCH),
        ):
            assert (await call(broker, controlled_shutdown, request, 3)).error_code == code


async def test_who_is_not_the_controller_says_so() -> None:
    async with running_broker() as broker:
        not_the_controller(broker)
        wish = ReassignTopic(name="t", partitions=[ReassignPartition(replicas=[0])])
        for handler, request, version, code in (
            (alter_partition, AlterPartitionRequest(broker_id=0), 3, ErrorCode.NOT_CONTROLLER),
            # ControllerMovedException, as Kafka has it there
            (controlled_shutdown, ControlledShutdownRequest(broker_id=0), 3, ErrorCode.STALE_CONTROLLER_EPOCH),
            (
                alter_partition_reassignments,
                AlterPartitionReassignmentsRequest(topics=[wish]),
                0,
                ErrorCode.NOT_CONTROLLER,
            ),
            (list_partition_reassignments, ListPartitionReassignmentsRequest(), 0, ErrorCode.NOT_CONTROLLER),
        ):
            assert (await call(broker, handler, request, version)).error_code == code


async def test_the_number_of_replicas_stays_where_the_client_wants_it() -> None:
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        context = broker.controller.machine.parts.context
        context.live_brokers[1], context.live_broker_epochs[1] = context.live_brokers[0], 1
        partitions = [ReassignPartition(replicas=[0, 1]), ReassignPartition(partition_index=1, replicas=[0])]
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=False, topics=[ReassignTopic(name="t", partitions=partitions)]
        )
        response = await call(broker, alter_partition_reassignments, request, 1)
        assert not response.allow_replication_factor_change
        assert [(one.error_code, one.error_message) for one in response.responses[0].partitions] == [
            (ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 1 to 2"),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."),
        ]


@pytest.mark.parametrize(("version", "text"), [(0, ""), (1, None)])
async def test_the_text_of_no_error_is_that_of_the_versions_kafka(version: int, text: str | None) -> None:
    """Where nothing is asked for, nothing is said, not even whether the number of replicas may change."""
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        wish = ReassignTopic(name="t", partitions=[ReassignPartition(replicas=[0])])
        some = AlterPartitionReassignmentsRequest(topics=[wish], allow_replication_factor_change=version == 0)
        none = AlterPartitionReassignmentsRequest(topics=[], allow_replication_factor_change=version == 0)
        response = await call(broker, alter_partition_reassignments, some, version)
        assert (response.error_message, response.responses[0].partitions[0].error_code) == (text, ErrorCode.NONE)
        response = await call(broker, alter_partition_reassignments, none, version)
        assert (response.error_message, response.allow_replication_factor_change) == ("", True)


async def test_a_move_begins_is_listed_and_cancelled() -> None:
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1), NewTopic("u", 1, 1)], 60_000)
        # As of a broker that is alive and does not catch up.
        broker.controller.machine.parts.context.live_brokers[1] = broker.controller.machine.parts.context.live_brokers[
            0
        ]
        broker.controller.machine.parts.context.live_broker_epochs[1] = 1
        wish = ReassignTopic(name="t", partitions=[ReassignPartition(replicas=[1])])
        other = ReassignTopic(
            name="u", partitions=[ReassignPartition(replicas=[0, 0]), ReassignPartition(partition_index=3)]
        )
        request = AlterPartitionReassignmentsRequest(topics=[wish, other])
        response = await call(broker, alter_partition_reassignments, request, 0)
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
        codes = {
            (t.name, p.partition_index): (p.error_code, p.error_message)
            for t in response.responses
            for p in t.partitions
        }
        assert codes == {
            ("t", 0): (ErrorCode.NONE, None),
            ("u", 0): (
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(0, 0)",
            ),
            ("u", 3): (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.message),
        }
        for topics in (None, [ListTopic(name="t", partition_indexes=[0, 1])]):
            listed = await call(
                broker, list_partition_reassignments, ListPartitionReassignmentsRequest(topics=topics), 0
            )
            assert [
                (t.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
                for t in listed.topics
                for p in t.partitions
            ] == [("t", 0, [1, 0], [1], [0])]
        cancel = ReassignTopic(name="t", partitions=[ReassignPartition(replicas=None)])
        await call(broker, alter_partition_reassignments, AlterPartitionReassignmentsRequest(topics=[cancel]), 0)
        listed = await call(broker, list_partition_reassignments, ListPartitionReassignmentsRequest(), 0)
        assert listed.topics == []


async def test_moves_need_the_right_to_alter_and_lists_that_to_describe_the_cluster() -> None:
    wish = ReassignTopic(name="t", partitions=[ReassignPartition(replicas=[0])])
    async with running_broker() as broker:
        for handler, request, operation in (
            (alter_partition_reassignments, AlterPartitionReassignmentsRequest(topics=[wish]), Operation.ALTER),
            (list_partition_reassignments, ListPartitionReassignmentsRequest(), Operation.DESCRIBE),
        ):
            denying = Denying([(operation, ResourceType.CLUSTER, None)])
            response = await call(broker, handler, request, 0, authorizer=denying)
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
