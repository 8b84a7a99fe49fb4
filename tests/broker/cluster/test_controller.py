"""The controller's shell: one broker registers, elects itself, receives its own requests, and survives the end of its
session.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from kpybroker.broker.cluster import registration
from kpybroker.broker.cluster.config_repository import ConfigRepository
from kpybroker.broker.cluster.controller import ClusterController
from kpybroker.broker.cluster.metadata_cache import MetadataCache
from kpybroker.broker.cluster.registration import Registration
from kpybroker.broker.cluster.topic_admin import NewTopic, TopicAdmin
from kpybroker.broker.loop.host import Host
from kpybroker.broker.peers.peers import Directory, Peers
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.core.controller.events import AllocateProducerIds
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.brokers.control_broker import NOW_MS, running_broker
from tests.support.brokers.host import fake_host
from tests.support.network.memory_transport import MemoryTransport


def new_store() -> EmbeddedStore:
    return EmbeddedStore.in_memory(lambda: NOW_MS)


async def test_a_single_broker_is_registered_active_and_known_to_itself_when_elect_returns() -> None:
    async with running_broker() as broker:
        assert broker.controller.is_active
        assert broker.controller.controller_id == 0
        assert broker.metadata.controller_id == 0
        assert broker.metadata.is_alive(0)
        stat = await broker.tree.exists("/brokers/ids/0")
        assert stat is not None
        assert stat.czxid == broker.broker_epoch
        assert stat.ephemeral_owner == broker.tree.session_id


async def test_the_persistent_paths_exist_and_a_restart_finds_them() -> None:
    store = new_store()
    for _ in range(2):
        async with running_broker(store) as broker:
            for path in znodes.PERSISTENT_PATHS:
                assert await broker.tree.exists(path) is not None


async def test_the_controller_epoch_rises_and_the_topics_are_led_again_after_a_restart() -> None:
    store = new_store()
    async with running_broker(store) as broker:
        await broker.topics.create_topics([NewTopic("t", 2, 1)], 60_000)
        topic_id = broker.metadata.topic_id("t")
    async with running_broker(store) as broker:
        assert (await broker.tree.get("/controller_epoch")).data == b"2"
        assert broker.replicas.leading.keys() == {("t", 0), ("t", 1)}
        assert broker.metadata.topic_id("t") == topic_id
        assert broker.metadata.topic_name(topic_id) == "t"


async def test_an_expired_session_means_a_new_registration_a_new_epoch_and_a_new_election() -> None:
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        old_epoch = broker.broker_epoch
        await broker.tree.expire()
        await trio.testing.wait_all_tasks_blocked()
        assert broker.controller.is_active
        assert broker.broker_epoch > old_epoch
        assert (await broker.tree.get("/controller_epoch")).data == b"2"
        assert (await broker.topics.create_topics([NewTopic("u", 1, 1)], 60_000))["u"].error.code == 0
        assert ("u", 0) in broker.replicas.leading


async def test_the_cluster_id_is_made_once() -> None:
    store = new_store()
    ids = set()
    for _ in range(2):
        async with running_broker(store) as broker:
            ids.add(await registration.cluster_id(broker.tree, broker.random))
    assert len(ids) == 1
    assert len(znodes.decode_uuid(ids.pop())) == 16


async def test_the_id_of_a_new_cluster_may_be_given(caplog: pytest.LogCaptureFixture) -> None:
    tree = new_store().session()
    await tree.start(1)
    ids = [await registration.cluster_id(tree, random.Random(1), wanted) for wanted in ("first", "second", "first", "")]
    await tree.close()
    assert ids == ["first"] * 4
    assert [line for line in caplog.messages if "second" in line] == [
        "The cluster is first already: kpybroker.new.cluster.id=second has no effect"
    ]


async def test_generated_broker_ids_are_above_the_reserved_ones_and_differ() -> None:
    async with running_broker() as broker:
        assert [await registration.generate_broker_id(cast(Host, broker)) for _ in range(2)] == [1001, 1002]


async def test_a_taken_broker_id_is_refused_after_the_session_timeout(autojump_clock: trio.testing.MockClock) -> None:
    store = new_store()
    async with running_broker(store):
        with pytest.RaisesGroup(registration.BrokerIdTaken, flatten_subgroups=True, allow_unwrapped=True):
            async with running_broker(store):
                raise AssertionError("it was registered")


async def test_requests_to_a_closed_controller_are_refused_at_once() -> None:
    async with running_broker() as broker:
        await broker.controller.close()
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.NOT_CONTROLLER):
            await broker.controller.ask(AllocateProducerIds(0, broker.broker_epoch))


async def test_the_version_of_feature_is_the_finalized_features_epoch() -> None:
    async with running_broker() as broker:
        await trio.testing.wait_all_tasks_blocked()
        assert broker.metadata.snapshot.features.epoch == 0
        data = (await broker.tree.get(znodes.FEATURE)).data
        await broker.tree.set(znodes.FEATURE, data)
        await trio.testing.wait_all_tasks_blocked()
        assert broker.metadata.snapshot.features.epoch == 1


async def test_a_failing_procedure_does_not_end_the_controller() -> None:
    async with running_broker() as broker:
        await broker.tree.create("/log_dir_event_notification/log_dir_event_x", b"{")
        await trio.testing.wait_all_tasks_blocked()
        created = await broker.topics.create_topics([NewTopic("t", 1, 1)], 60_000)
        assert created["t"].error.code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("props", "endpoints"),
    [
        ({}, {"PLAINTEXT": ("127.0.0.1", 9092)}),
        (
            {"advertised_listeners": "PLAINTEXT://broker.example:1234"},
            {"PLAINTEXT": ("broker.example", 1234)},
        ),
        (
            {
                "listeners": "IN://127.0.0.1:9092,OUT://127.0.0.1:9093",
                "listener_security_protocol_map": "IN:PLAINTEXT,OUT:PLAINTEXT",
                "inter_broker_listener_name": "IN",
            },
            {"IN": ("127.0.0.1", 9092), "OUT": ("127.0.0.1", 9093)},
        ),
    ],
)
async def test_registered_endpoints(props: dict[str, Any], endpoints: dict[str, tuple[str, int]]) -> None:
    async with running_broker(**props) as broker:
        assert broker.metadata.snapshot.brokers[0].endpoints == endpoints


async def test_without_a_broker_a_controller_is_elected_creates_a_topic_and_responds_to_requests(
    tmp_path: Path,
) -> None:
    async with fake_host(tmp_path) as host:
        metadata = MetadataCache(host.config)

        async def respond_locally(api_key: ApiKey, message: Any, version: int) -> Any:
            if isinstance(message, UpdateMetadataRequest):
                await metadata.update(message)
                return UpdateMetadataResponse()
            return LeaderAndIsrResponse()

        directory = Directory(metadata.inter_broker_address, lambda: controller.controller_id)
        peers = Peers(host, MemoryTransport(), directory, respond_locally)
        registration = Registration(host, list)
        controller = ClusterController(host, registration, ConfigRepository(host), peers)
        topics = TopicAdmin(host, metadata, controller.wait_until_deleted)

        await registration.register()
        await controller.elect()
        assert controller.is_active
        assert metadata.is_alive(host.node_id)
        created = await topics.create_topics([NewTopic("t", 3, 1)], 10_000)
        assert created["t"].error.code is ErrorCode.NONE
        assert metadata.leader_and_epoch("t", 2) == (host.node_id, 0)
        block = await controller.ask(AllocateProducerIds(host.node_id, registration.broker_epoch))
        assert block.first == 0
        await controller.close()
