"""Metadata in every version: which topics, which errors, which addresses."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kpybroker.broker.handlers.topics import metadata
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.core.authorizer import AllowAll, Authorizer, Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.metadata import MetadataRequest, MetadataResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.control_broker import ControlBroker, Denying, running_broker
from tests.support.brokers.running_broker import forget_metadata
from tests.support.time_slices import counted_time_slices

ALL_VERSIONS = range(14)
Topic = MetadataResponse.MetadataResponseTopic


def names(*topics: str) -> list[MetadataRequest.MetadataRequestTopic]:
    return [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]


async def ask(
    broker: ControlBroker,
    request: MetadataRequest,
    version: int,
    *,
    authorizer: Authorizer | None = None,
    listener: str = "PLAINTEXT",
) -> MetadataResponse:
    """Through the codec both ways, as a client."""
    received = decode(MetadataRequest, encode(request, version), version)
    connection = PlainConnectionInfo(local=("reached.example", 19092), listener_name=listener)
    context = RequestContext(connection, authorizer or AllowAll(), ApiKey.METADATA, version)
    response = await metadata.handle(broker, received, context)  # type: ignore[arg-type]
    return decode(MetadataResponse, encode(response, version), version)


def codes(response: MetadataResponse) -> dict[str | None, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in response.topics}


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_all_topics_with_leaders_and_ids(version: int) -> None:
    async with running_broker(topics={"a": 2, "b": 2}) as broker:
        everything = MetadataRequest(topics=None if version >= 1 else [])
        response = await ask(broker, everything, version)
    assert codes(response) == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
    for topic in response.topics:
        assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
            (0, 0, [0], [0]),
            (1, 0, [0], [0]),
        ]
        assert (topic.topic_id != bytes(16)) is (version >= 10)
        assert {p.leader_epoch for p in topic.partitions} == {0 if version >= 7 else -1}
    assert response.controller_id == (0 if version >= 1 else -1)
    assert response.cluster_id == ("a-cluster" if version >= 2 else None)


@pytest.mark.parametrize("version", ALL_VERSIONS[1:])
async def test_no_topics_are_asked_for(version: int) -> None:
    async with running_broker(topics={"a": 2}) as broker:
        response = await ask(broker, MetadataRequest(topics=[]), version)
    assert response.topics == []
    assert [node.node_id for node in response.brokers] == [0]


class TestAddresses:
    async def test_this_broker_is_where_the_client_reached_it(self) -> None:
        async with running_broker() as broker:
            response = await ask(broker, MetadataRequest(topics=None), 12)
        assert [(b.host, b.port) for b in response.brokers] == [("reached.example", 19092)]

    async def test_unless_advertised_listeners_are_configured(self) -> None:
        async with running_broker(advertised_listeners="PLAINTEXT://advertised.example:7") as broker:
            response = await ask(broker, MetadataRequest(topics=None), 12)
        assert [(b.host, b.port) for b in response.brokers] == [("advertised.example", 7)]

    @pytest.mark.parametrize(
        ("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
    )
    async def test_a_leader_without_the_clients_listener(self, version: int, code: ErrorCode) -> None:
        async with running_broker(topics={"a": 2}) as broker:
            response = await ask(broker, MetadataRequest(topics=names("a")), version, listener="OTHER")
        assert response.brokers == []
        assert {(p.error_code, p.leader_id) for p in response.topics[0].partitions} == {(code, -1)}

    @pytest.mark.parametrize(
        ("version", "code", "replicas"),
        [(0, ErrorCode.REPLICA_NOT_AVAILABLE, [0]), (1, ErrorCode.NONE, [0, 7])],
    )
    async def test_replicas_that_are_away_are_left_out_of_version_0_only(
        self, version: int, code: ErrorCode, replicas: list[int]
    ) -> None:
        async with running_broker(topics={"a": 2}) as broker:
            state = UpdateMetadataRequest.UpdateMetadataPartitionState(
                topic_name="a", partition_index=0, leader=0, replicas=[0, 7], isr=[0], offline_replicas=[7]
            )
            snapshot = broker.metadata.snapshot
            snapshot.topics["a"][0] = state  # type: ignore[index]
            response = await ask(broker, MetadataRequest(topics=names("a")), version)
        partition = response.topics[0].partitions[0]
        assert (partition.error_code, partition.replica_nodes, partition.leader_id) == (code, replicas, 0)

    async def test_no_leader(self) -> None:
        async with running_broker(topics={"a": 2}) as broker:
            broker.metadata.snapshot.topics["a"][0].leader = -1
            response = await ask(broker, MetadataRequest(topics=names("a")), 12)
        partition = response.topics[0].partitions[0]
        assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


class TestAutoCreation:
    @pytest.mark.parametrize("version", ALL_VERSIONS)
    async def test_a_missing_topic_is_there_in_the_first_response(self, version: int) -> None:
        async with running_broker() as broker:
            response = await ask(broker, MetadataRequest(topics=names("new")), version)
        assert codes(response) == {"new": ErrorCode.NONE}
        assert [p.leader_id for p in response.topics[0].partitions] == [0]

    @pytest.mark.parametrize("version", ALL_VERSIONS[4:])
    async def test_not_against_the_clients_will(self, version: int) -> None:
        async with running_broker() as broker:
            request = MetadataRequest(topics=names("new"), allow_auto_topic_creation=False)
            response = await ask(broker, request, version)
        assert codes(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    async def test_not_against_the_configuration(self) -> None:
        async with running_broker(auto_create_topics_enable="false") as broker:
            response = await ask(broker, MetadataRequest(topics=names("new", "b d")), 12)
        assert codes(response) == {
            "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "b d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }

    async def test_a_bad_name_next_to_a_good_one(self) -> None:
        async with running_broker() as broker:
            response = await ask(broker, MetadataRequest(topics=names("b d", "good")), 12)
        assert codes(response) == {"b d": ErrorCode.INVALID_TOPIC_EXCEPTION, "good": ErrorCode.NONE}

    async def test_too_few_brokers(self) -> None:
        async with running_broker(default_replication_factor="3") as broker:
            response = await ask(broker, MetadataRequest(topics=names("new")), 12)
        assert codes(response) == {"new": ErrorCode.INVALID_REPLICATION_FACTOR}

    async def test_it_does_not_wait_long_for_a_leader(self, autojump_clock: trio.testing.MockClock) -> None:
        async with running_broker() as broker:
            # The controller is stuck: the topic is made, its leader does not come.
            await broker.controller.close()
            started = trio.current_time()
            response = await ask(broker, MetadataRequest(topics=names("new")), 12)
            assert trio.current_time() - started < 1
        assert codes(response) == {"new": ErrorCode.LEADER_NOT_AVAILABLE}


class TestTopicIds:
    async def test_by_id(self) -> None:
        async with running_broker(topics={"a": 2, "b": 2}) as broker:
            topic_id = broker.metadata.topic_id("a")
            asked = [
                MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id),
                MetadataRequest.MetadataRequestTopic(name=None, topic_id=b"?" * 16),
            ]
            response = await ask(broker, MetadataRequest(topics=asked), 12)
        assert {(t.name, t.topic_id, t.error_code) for t in response.topics} == {
            ("a", topic_id, ErrorCode.NONE),
            (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        }

    @pytest.mark.parametrize("version", [10, 11])
    async def test_not_before_version_12(self, version: int) -> None:
        by_id = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="a", topic_id=b"?" * 16)])
        nameless = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None)])
        async with running_broker() as broker:
            for request, message in (
                (by_id, f"Topic IDs are not supported in requests for version {version}"),
                (nameless, f"Topic name can not be null for version {version}"),
            ):
                with pytest.raises(KafkaError) as refusal:
                    await ask(broker, request, version)
                assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_REQUEST, message)

    async def test_the_response_for_an_id_one_may_not_describe_has_no_name(self) -> None:
        denying = Denying([(Operation.DESCRIBE, ResourceType.TOPIC, "a")])
        async with running_broker(topics={"a": 2}) as broker:
            topic_id = broker.metadata.topic_id("a")
            asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id)]
            response = await ask(broker, MetadataRequest(topics=asked), 12, authorizer=denying)
        assert [(t.name, t.topic_id, t.error_code) for t in response.topics] == [
            (None, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        ]


class TestAuthorization:
    @pytest.mark.parametrize("version", ALL_VERSIONS)
    async def test_topics_one_may_not_describe(self, version: int) -> None:
        denying = Denying([(Operation.DESCRIBE, ResourceType.TOPIC, "secret")])
        async with running_broker(topics={"open": 2, "secret": 2}) as broker:
            asked = await ask(broker, MetadataRequest(topics=names("open", "secret")), version, authorizer=denying)
            everything = MetadataRequest(topics=None if version >= 1 else [])
            listed = await ask(broker, everything, version, authorizer=denying)
        assert codes(asked) == {"open": ErrorCode.NONE, "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert codes(listed) == {"open": ErrorCode.NONE}

    async def test_creating_needs_the_right_to(self) -> None:
        denying = Denying(
            [(Operation.CREATE, ResourceType.CLUSTER, None), (Operation.CREATE, ResourceType.TOPIC, "mine-not")]
        )
        async with running_broker() as broker:
            response = await ask(broker, MetadataRequest(topics=names("mine", "mine-not")), 12, authorizer=denying)
            assert await broker.tree.exists("/brokers/topics/mine-not") is None
        assert codes(response) == {"mine": ErrorCode.NONE, "mine-not": ErrorCode.TOPIC_AUTHORIZATION_FAILED}

    @pytest.mark.parametrize("version", ALL_VERSIONS[8:])
    async def test_authorized_operations(self, version: int) -> None:
        request = MetadataRequest(topics=names("a"), include_topic_authorized_operations=True)
        if version <= 10:
            request.include_cluster_authorized_operations = True
        async with running_broker(topics={"a": 2}) as broker:
            response = await ask(broker, request, version)
            plain = await ask(broker, MetadataRequest(topics=names("a")), version)
        assert response.topics[0].topic_authorized_operations == sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
        assert plain.topics[0].topic_authorized_operations == -(2**31)
        if version <= 10:
            assert response.cluster_authorized_operations == sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))


async def test_internal_topics_are_marked() -> None:
    async with running_broker(offsets_topic_replication_factor="1", offsets_topic_num_partitions="1") as broker:
        response = await ask(broker, MetadataRequest(topics=names("__consumer_offsets", "t")), 12)
    assert {topic.name: topic.is_internal for topic in response.topics} == {"__consumer_offsets": True, "t": False}


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_an_error_reaches_every_topic(version: int) -> None:
    context = RequestContext(PlainConnectionInfo(), AllowAll(), ApiKey.METADATA, version)
    request = MetadataRequest(topics=names("a", "b"))
    response = metadata.error_response(request, context, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    decoded = decode(MetadataResponse, encode(response, version), version)
    assert codes(decoded) == {"a": ErrorCode.UNKNOWN_SERVER_ERROR, "b": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert decoded.error_code == (ErrorCode.UNKNOWN_SERVER_ERROR if version >= 13 else ErrorCode.NONE)


async def test_a_large_response_gives_the_loop_back() -> None:
    async with running_broker() as broker:
        states = [
            UpdateMetadataRequest.UpdateMetadataPartitionState(partition_index=index, leader=0, replicas=[0], isr=[0])
            for index in range(20_000)
        ]
        topic = UpdateMetadataRequest.UpdateMetadataTopicState(topic_name="big", partition_states=states)
        alive = [UpdateMetadataRequest.UpdateMetadataBroker(id=0)]
        await broker.metadata.update(UpdateMetadataRequest(topic_states=[topic], live_brokers=alive))
        async with counted_time_slices() as of_others:
            context = broker.context(ApiKey.METADATA, 12)
            response = await metadata.handle(broker, MetadataRequest(topics=None), context)  # type: ignore[arg-type]
            assert of_others() > 1
        assert len(response.topics[0].partitions) == 20_000


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_of_all_topics_one_that_is_deleted_during_the_request_is_left_out(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(topics={"a": 2, "b": 2}) as broker:

        class DeletingBudget(YieldBudget):
            async def spend(self, cost: int = ELEMENT) -> None:
                if cost == 2 * ELEMENT:
                    await broker.topics.delete_topics(["b"], 1000)

        monkeypatch.setattr(metadata, "YieldBudget", DeletingBudget)
        response = await ask(broker, MetadataRequest(topics=None if version >= 1 else []), version)
        assert not broker.metadata.contains("b")
    assert codes(response) == {"a": ErrorCode.NONE}


async def test_a_broker_responds_after_its_first_metadata_update(autojump_clock: trio.testing.MockClock) -> None:
    async with running_broker(topics={"a": 2}) as broker:
        update = forget_metadata(broker.metadata)

        async def ask_early() -> None:
            assert codes(await ask(broker, MetadataRequest(topics=names("a")), 4)) == {"a": ErrorCode.NONE}

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_early)
            await trio.testing.wait_all_tasks_blocked()
            await broker.metadata.update(update)
