"""Topic administration: what is refused with which text, what is waited for, what is in the tree afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.cluster import topic_admin as topics
from kpybroker.broker.cluster.topic_admin import NewPartitions, NewTopic
from kpybroker.broker.cluster.topic_refusals import check_replicas_of_kafka_4
from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import tree as t
from kpybroker.core.controller.events import ApiError
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.control_broker import ControlBroker, running_broker


async def create(broker: ControlBroker, topic: NewTopic, **options: Any) -> ApiError:
    timeout_ms = options.pop("timeout_ms", 1000)
    return (await broker.topics.create_topics([topic], timeout_ms, **options))[topic.name].error


async def test_a_created_topic_has_leaders_in_the_metadata_when_create_topics_returns() -> None:
    async with running_broker() as broker:
        results = await broker.topics.create_topics([NewTopic("t", 3, 1, configs={"retention.ms": "1000"})], 60_000)
        result = results["t"]
        assert result.error == ApiError(ErrorCode.NONE)
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert result.topic_id == broker.metadata.topic_id("t") != bytes(16)
        assert broker.replicas.leading == {("t", 0): 0, ("t", 1): 0, ("t", 2): 0}
        config = await broker.tree.get("/config/topics/t")
        assert znodes.decode_config(config.data) == {"retention.ms": "1000"}


async def test_defaults_come_from_the_configuration() -> None:
    async with running_broker(num_partitions="4") as broker:
        assert (await broker.topics.create_topics([NewTopic("t")], 60_000))["t"].num_partitions == 4


async def test_validate_only_changes_nothing() -> None:
    async with running_broker() as broker:
        results = await broker.topics.create_topics([NewTopic("t", 2, 1)], 1000, validate_only=True)
        assert results["t"].error.code is ErrorCode.NONE
        assert results["t"].num_partitions == 2
        assert await broker.tree.exists("/brokers/topics/t") is None
        assert await broker.tree.exists("/config/topics/t") is None


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (NewTopic("there", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (
            NewTopic("with_dot", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'with_dot' collides with existing topics: with.dot",
        ),
        (
            NewTopic("a b", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'",
        ),
        (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (
            NewTopic("t", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 3 larger than available brokers: 1.",
        ),
        (
            NewTopic("t", 1, -1, {0: [0]}),
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same "
            "time.",
        ),
        (
            NewTopic("t", assignments={0: [0], 1: [0, 1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All partitions should have the same number of replicas",
        ),
        (
            NewTopic("t", assignments={0: [0], 2: [0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments={0: [0, 0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(0, 0))",
        ),
        (
            NewTopic("t", 1, 1, configs={"a": None, "b": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: a,b",
        ),
        (NewTopic("t", 1, 1, configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            NewTopic("t", 1, 1, configs={"retention.ms": "soon"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, NewTopic | ErrorCode) else "",
)
async def test_refusals_in_kafkas_words(topic: NewTopic, code: ErrorCode, message: str) -> None:
    async with running_broker() as broker:
        assert await create(broker, NewTopic("there", 1, 1)) == ApiError(ErrorCode.NONE)
        assert await create(broker, NewTopic("with.dot", 1, 1)) == ApiError(ErrorCode.NONE)
        assert await create(broker, topic) == ApiError(code, message)
        assert await create(broker, topic, validate_only=True) == ApiError(code, message)


async def test_a_topic_created_by_a_concurrent_request_exists_and_does_not_collide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_broker() as broker:
        submit = retry_until_connected

        async def submit_after_another(tree: Any, ops: Any) -> Any:
            if isinstance(ops[0], t.Children):
                monkeypatch.undo()
                assert await create(broker, NewTopic("with_dot", 1, 1)) == ApiError(ErrorCode.NONE)
            return await submit(tree, ops)

        monkeypatch.setattr(topics, "retry_until_connected", submit_after_another)
        error = await create(broker, NewTopic("with_dot", 1, 1))
    assert error == ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'with_dot' already exists.")


async def test_with_a_timeout_of_zero_the_topic_is_created_and_the_request_times_out() -> None:
    async with running_broker() as broker:
        assert await create(broker, NewTopic("t", 1, 1), timeout_ms=0) == ApiError(ErrorCode.REQUEST_TIMED_OUT)
        await trio.testing.wait_all_tasks_blocked()
        assert broker.metadata.contains("t", 0)


async def test_a_topic_whose_replicas_are_all_offline_times_out(autojump_clock: trio.testing.MockClock) -> None:
    async with running_broker() as broker:
        # A manual assignment may name brokers that do not exist.
        started = trio.current_time()
        error = await create(broker, NewTopic("t", assignments={0: [7]}), timeout_ms=5000)
        assert error == ApiError(ErrorCode.REQUEST_TIMED_OUT)
        assert trio.current_time() - started == 5


async def test_a_configuration_of_a_deleted_topic_is_replaced() -> None:
    async with running_broker() as broker:
        await broker.tree.create("/config/topics/t", znodes.encode_config({"retention.ms": "1"}))
        assert await create(broker, NewTopic("t", 1, 1)) == ApiError(ErrorCode.NONE)
        assert znodes.decode_config((await broker.tree.get("/config/topics/t")).data) == {}


@pytest.mark.parametrize("said", [t.ConnectionLoss, t.SessionExpired], ids=["while-it-waits", "before-it-asks"])
async def test_a_session_that_ends_is_an_error_of_each_topic(
    said: type[t.TreeError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for which clients ask again, then the next controller."""
    async with running_broker() as broker:
        await create(broker, NewTopic("there", 1, 1))

        async def lost(ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
            return [said()] * len(ops)

        async def expired() -> None:
            raise t.SessionExpired

        with monkeypatch.context() as away:
            away.setattr(broker.tree, "submit_many", lost)
            away.setattr(broker.tree, "wait_until_connected", expired)
            failed = ErrorCode.NOT_CONTROLLER
            created = await broker.topics.create_topics([NewTopic("a", 1, 1), NewTopic("b", 1, 1)], 0)
            assert {name: one.error.code for name, one in created.items()} == {"a": failed, "b": failed}
            assert set((await broker.topics.auto_create(["a", "b"])).values()) == {ErrorCode.LEADER_NOT_AVAILABLE}
            assert await broker.topics.delete_topics(["there", "other"], 0) == {"there": failed, "other": failed}
            grown = await broker.topics.create_partitions([NewPartitions("there", 2)], 0)
            assert grown["there"].code is failed
        assert broker.metadata.contains("there")


async def test_two_requests_to_create_one_topic_create_one() -> None:
    async with running_broker() as broker:
        errors = []

        async def one() -> None:
            errors.append((await create(broker, NewTopic("t", 1, 1))).code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(one)
        assert sorted(errors) == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


class TestAutoCreation:
    async def test_the_topic_is_led_when_the_response_comes(self) -> None:
        async with running_broker() as broker:
            assert await broker.topics.auto_create(["t"]) == {"t": ErrorCode.NONE}
            assert broker.metadata.snapshot.has_leader("t", 0)

    async def test_clients_that_come_at_once_all_get_the_topic(self) -> None:
        async with running_broker() as broker:
            codes: list[ErrorCode] = []

            async def one() -> None:
                codes.append((await broker.topics.auto_create(["t"]))["t"])

            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(one)
            assert codes == [ErrorCode.NONE] * 5

    async def test_what_was_deleted_is_made_again_but_not_found_at_once(self) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("old", 1, 1))
            await broker.topics.delete_topics(["old"], 1000)
            assert await broker.topics.auto_create(["old", "new"]) == {
                "old": ErrorCode.LEADER_NOT_AVAILABLE,
                "new": ErrorCode.NONE,
            }
            assert await broker.metadata.wait_until(lambda snapshot: snapshot.has_leader("old", 0), 1)

    async def test_internal_topics_have_settings_of_their_own(self) -> None:
        names = ["__consumer_offsets", "__transaction_state"]
        props: dict[str, Any] = {
            "offsets_topic_num_partitions": "3",
            "offsets_topic_replication_factor": "1",
            "transaction_state_log_num_partitions": "2",
            "transaction_state_log_replication_factor": "1",
        }
        async with running_broker(**props) as broker:
            assert set((await broker.topics.auto_create(names)).values()) == {ErrorCode.NONE}
            assert [broker.metadata.partition_count(name) for name in names] == [3, 2]
            configs = [znodes.decode_config((await broker.tree.get(f"/config/topics/{name}")).data) for name in names]
        assert configs == [
            {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        ]

    async def test_too_few_brokers_for_the_default_factor(self) -> None:
        async with running_broker() as broker:
            codes = await broker.topics.auto_create(["__consumer_offsets"])
        assert codes == {"__consumer_offsets": ErrorCode.INVALID_REPLICATION_FACTOR}


class TestDeletion:
    async def test_the_topic_is_gone_from_metadata_disk_and_tree(self) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("t", 2, 1))
            assert await broker.topics.delete_topics(["t"], 1000) == {"t": ErrorCode.NONE}
            assert not broker.metadata.contains("t")
            await trio.testing.wait_all_tasks_blocked()
            assert sorted(broker.replicas.deleted) == [("t", 0), ("t", 1)]
            assert broker.coordinators.deleted_topics == ["t"]
            for path in ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"):
                assert await broker.tree.exists(path) is None
            assert await create(broker, NewTopic("t", 1, 1)) == ApiError(ErrorCode.NONE)

    async def test_an_unknown_topic(self) -> None:
        async with running_broker() as broker:
            codes = await broker.topics.delete_topics(["t"], 1000)
        assert codes == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    async def test_while_it_is_being_deleted_it_cannot_be_created(self, autojump_clock: trio.testing.MockClock) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("t", 1, 1))
            broker.replicas.fail_deletion = True
            assert await broker.topics.delete_topics(["t"], 1000) == {"t": ErrorCode.NONE}
            error = await create(broker, NewTopic("t", 1, 1))
            assert error == ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' is marked for deletion.")

    async def test_without_time(self) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("t", 1, 1))
            codes = await broker.topics.delete_topics(["t"], 0)
            assert codes == {"t": ErrorCode.REQUEST_TIMED_OUT}
            await trio.testing.wait_all_tasks_blocked()
            assert not broker.metadata.contains("t")


class TestGrowth:
    async def grow(self, broker: ControlBroker, new: NewPartitions, **options: Any) -> ApiError:
        return (await broker.topics.create_partitions([new], 1000, **options))[new.topic]

    async def test_added_partitions_are_led_and_old_ones_untouched(self) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("t", 1, 1))
            topic_id = broker.metadata.topic_id("t")
            assert await self.grow(broker, NewPartitions("t", 3)) == ApiError(ErrorCode.NONE)
            assert broker.replicas.leading == {("t", 0): 0, ("t", 1): 0, ("t", 2): 0}
            assert broker.metadata.topic_id("t") == topic_id

    async def test_validate_only_changes_nothing(self) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("t", 1, 1))
            assert await self.grow(broker, NewPartitions("t", 3), validate_only=True) == ApiError(ErrorCode.NONE)
            assert broker.metadata.partition_count("t") == 1

    @pytest.mark.parametrize(
        ("new", "code", "message"),
        [
            (NewPartitions("u", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'u' does not exist."),
            (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partitions."),
            (
                NewPartitions("t", 1),
                ErrorCode.INVALID_PARTITIONS,
                "Topic currently has 2 partitions, which is higher than the requested 1.",
            ),
            (
                NewPartitions("t", 3, [[9]]),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Unknown broker(s) in replica assignment: 9.",
            ),
            (
                NewPartitions("t", 3, [[0], [0]]),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Increasing the number of partitions by 1 but 2 assignments provided.",
            ),
            (
                NewPartitions("t", 3, [[]]),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Cannot have replication factor of 0 for partition id 2.",
            ),
            (
                NewPartitions("t", 3, [[0, 0]]),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Duplicate brokers not allowed in replica assignment: 0, 0 for partition id 2.",
            ),
        ],
    )
    async def test_refusals_in_kafkas_words(self, new: NewPartitions, code: ErrorCode, message: str) -> None:
        async with running_broker() as broker:
            await create(broker, NewTopic("t", 2, 1))
            assert await self.grow(broker, new) == ApiError(code, message)

    async def test_not_while_it_is_being_reassigned(self) -> None:
        async with running_broker() as broker:
            partition = znodes.PartitionAssignment((0, 1), adding_replicas=(1,))
            data = znodes.encode_topic(znodes.TopicAssignment(b"i" * 16, {0: partition}))
            await broker.tree.create("/brokers/topics/t", data)
            assert await self.grow(broker, NewPartitions("t", 2)) == ApiError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS, "A partition reassignment is in progress for the topic 't'."
            )


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (
            NewTopic("with_dot", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'with_dot' collides with existing topic: with.dot",
        ),
        (
            NewTopic("t", 1, 2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
            "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            NewTopic("t", assignments={0: [0], 1: [5]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 5, but no such broker is registered.",
        ),
        (
            NewTopic("t", assignments={0: []}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            NewTopic("t", assignments={0: [0], 1: [0, 0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 0 more than once.",
        ),
        (
            NewTopic("t", 1, 1, configs={"segment.bytes": "100"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
        ),
    ],
)
async def test_a_broker_in_the_place_of_kafka_4_has_its_texts(topic: NewTopic, code: ErrorCode, message: str) -> None:
    async with running_broker(kpybroker_kafka_version="4.3") as broker:
        assert (await create(broker, NewTopic("with.dot", 2, 1), timeout_ms=60_000)).code is ErrorCode.NONE
        assert await create(broker, topic) == ApiError(code, message)
        for count, refusal in (
            (1, "The topic with.dot currently has 2 partition(s); 1 would not be an increase."),
            (2, "Topic already has 2 partition(s)."),
        ):
            grown = await broker.topics.create_partitions([NewPartitions("with.dot", count)], 1000)
            assert grown["with.dot"] == ApiError(ErrorCode.INVALID_PARTITIONS, refusal)


@pytest.mark.parametrize(
    ("new", "code", "message"),
    [
        (NewPartitions("other", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (
            NewPartitions("t", 3, [[0], [0]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            NewPartitions("t", 3, [[0, 1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 1, but no such broker is registered.",
        ),
        (
            NewPartitions("t", 3, [[0, 0]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 0 more than once.",
        ),
        (
            NewPartitions("t", 4, [[0], []]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
    ],
)
async def test_partitions_are_added_with_the_texts_of_kafka_4(
    new: NewPartitions, code: ErrorCode, message: str | None
) -> None:
    async with running_broker(kpybroker_kafka_version="4.3") as broker:
        assert (await create(broker, NewTopic("t", 2, 1), timeout_ms=60_000)).code is ErrorCode.NONE
        grown = await broker.topics.create_partitions([new], 1000)
        assert grown == {new.topic: ApiError(code, message)}


def test_partitions_have_as_many_replicas_as_those_before_them() -> None:
    """In the words of Kafka 4."""
    with pytest.raises(KafkaError) as refusal:
        check_replicas_of_kafka_4([[1, 2], [1]], {1, 2})
    assert str(refusal.value.message) == (
        "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
        "previous partitions, which have 2 replica(s)."
    )
