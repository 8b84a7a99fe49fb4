"""The metadata cache: an update replaces only what it names, and never changes an old snapshot."""

from __future__ import annotations

from typing import cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.broker.cluster.metadata_cache import DELETED_NAMES_MAX, ELECTION_S, MetadataCache
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.tree import Tree
from kpybroker.core.authorizer import AllowAll
from kpybroker.core.controller.model import LEADER_DURING_DELETE
from kpybroker.core.tree import ConnectionLoss, Stat
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

State = UpdateMetadataRequest.UpdateMetadataPartitionState
TopicState = UpdateMetadataRequest.UpdateMetadataTopicState


def state(topic: str, index: int, leader: int = 1, epoch: int = 0) -> State:
    return State(topic_name=topic, partition_index=index, leader=leader, leader_epoch=epoch, isr=[1], replicas=[1])


def request(*states: State, ids: dict[str, bytes] | None = None, controller_id: int = 1) -> UpdateMetadataRequest:
    topics: dict[str, list[State]] = {}
    for one in states:
        topics.setdefault(one.topic_name, []).append(one)
    return UpdateMetadataRequest(
        controller_id=controller_id,
        topic_states=[
            TopicState(topic_name=name, topic_id=(ids or {}).get(name, bytes(16)), partition_states=partitions)
            for name, partitions in topics.items()
        ],
        live_brokers=[
            UpdateMetadataRequest.UpdateMetadataBroker(
                id=1,
                endpoints=[
                    UpdateMetadataRequest.UpdateMetadataEndpoint(
                        host="one", port=9092, listener="PLAINTEXT", security_protocol=0
                    )
                ],
                rack=None,
            )
        ],
    )


@pytest.fixture
def metadata() -> MetadataCache:
    return MetadataCache(BrokerConfig({}))


async def test_a_partial_update_leaves_the_rest(metadata: MetadataCache) -> None:
    await metadata.update(request(state("a", 0), state("a", 1), state("b", 0), ids={"a": b"A" * 16, "b": b"B" * 16}))
    before = metadata.snapshot
    await metadata.update(request(state("a", 1, leader=2, epoch=1), ids={"a": b"A" * 16}))
    assert metadata.leader_and_epoch("a", 0) == (1, 0)
    assert metadata.leader_and_epoch("a", 1) == (2, 1)
    assert metadata.contains("b", 0)
    assert metadata.topic_name(b"B" * 16) == "b"
    assert before.topics["a"][1].leader == 1


async def test_listeners_are_called_with_the_named_topics_once_the_update_is_there(metadata: MetadataCache) -> None:
    heard: list[tuple[set[str], set[str]]] = []
    metadata.on_topics_named(lambda names: heard.append((set(names), set(metadata.snapshot.topics))))
    await metadata.update(request(state("a", 0), state("b", 0)))
    await metadata.update(request(state("a", 0, leader=LEADER_DURING_DELETE)))
    await metadata.update(request())
    assert heard == [({"a", "b"}, {"a", "b"}), ({"a"}, {"b"}), (set(), {"b"})]


async def test_two_updates_at_a_time_are_noticed(metadata: MetadataCache) -> None:
    """The second one would lose what the first has changed. The handler has one lock for both."""
    requests = [request(*(state(topic, index) for index in range(5000))) for topic in "ab"]
    with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match="two updates of the metadata at a time")):
        async with trio.open_nursery() as nursery:
            for one in requests:
                nursery.start_soon(metadata.update, one)


async def test_a_topic_and_its_id_are_removed_with_its_last_partition(metadata: MetadataCache) -> None:
    await metadata.update(request(state("a", 0), state("a", 1), ids={"a": b"A" * 16}))
    assert await metadata.update(request(state("a", 0, LEADER_DURING_DELETE), ids={"a": b"A" * 16})) == [("a", 0)]
    assert metadata.contains("a")
    assert metadata.partition_count("a") == 1
    await metadata.update(request(state("a", 1, LEADER_DURING_DELETE), ids={"a": b"A" * 16}))
    assert not metadata.contains("a")
    assert metadata.topic_name(b"A" * 16) is None
    assert metadata.topic_id("a") == bytes(16)


async def test_the_latest_deleted_names_are_remembered(metadata: MetadataCache) -> None:
    names = [f"t{number}" for number in range(DELETED_NAMES_MAX + 1)]
    await metadata.update(request(*(state(name, 0) for name in names)))
    await metadata.update(request(*(state(name, 0, LEADER_DURING_DELETE) for name in ["never-here", *names[:2]])))
    assert [metadata.was_deleted(name) for name in ("never-here", "t0", "t1", "t2")] == [False, True, True, False]
    await metadata.update(request(*(state(name, 0, LEADER_DURING_DELETE) for name in names[2:])))
    assert [metadata.was_deleted(name) for name in ("t0", "t1", names[-1])] == [False, True, True]


async def test_a_new_topic_of_the_same_name_has_another_id(metadata: MetadataCache) -> None:
    await metadata.update(request(state("a", 0), ids={"a": b"A" * 16}))
    await metadata.update(request(state("a", 0), ids={"a": b"B" * 16}))
    assert metadata.topic_id("a") == b"B" * 16
    assert metadata.topic_name(b"A" * 16) is None


async def test_brokers_and_controller_are_those_of_the_last_request(metadata: MetadataCache) -> None:
    assert metadata.controller_id is None
    await metadata.update(request())
    assert metadata.controller_id == 1
    assert metadata.is_alive(1)
    update = request(controller_id=-1)
    update.live_brokers = []
    await metadata.update(update)
    assert metadata.controller_id is None
    assert not metadata.is_alive(1)


@pytest.mark.parametrize("version", range(9))
async def test_every_version_has_the_same_effect(version: int) -> None:
    sent = request(state("a", 0), ids={"a": b"A" * 16})
    if version < 5:
        sent.ungrouped_partition_states = sent.topic_states[0].partition_states
        sent.topic_states = []
    if version == 0:
        broker = sent.live_brokers[0]
        broker.v0_host, broker.v0_port, broker.endpoints = "one", 9092, []
    if version < 3:
        for endpoint in sent.live_brokers[0].endpoints:
            endpoint.listener = ""
    metadata = MetadataCache(BrokerConfig({}))
    await metadata.update(decode(UpdateMetadataRequest, encode(sent, version), version))
    assert metadata.leader_and_epoch("a", 0) == (1, 0)
    assert metadata.snapshot.brokers[1].endpoints == {"PLAINTEXT": ("one", 9092)}
    assert metadata.topic_id("a") == (b"A" * 16 if version >= 7 else bytes(16))


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from((LEADER_DURING_DELETE, -1, 1, 2))),
            max_size=4,
        ),
        max_size=8,
    )
)
def test_against_a_plain_dictionary(updates: list[list[tuple[str, int, int]]]) -> None:
    metadata = MetadataCache(BrokerConfig({}))
    model: dict[tuple[str, int], int] = {}
    for update in updates:
        trio.run(metadata.update, request(*(state(*change) for change in sorted(update))))
        for topic, index, leader in sorted(update):
            if leader == LEADER_DURING_DELETE:
                model.pop((topic, index), None)
            else:
                model[topic, index] = leader
        topics = metadata.snapshot.topics
        assert {(topic, i): s.leader for topic, states in topics.items() for i, s in states.items()} == model
        assert all(states for states in topics.values())


class TestWaiting:
    async def test_a_waiter_is_woken_by_the_update_that_brings_what_it_waits_for(self) -> None:
        metadata = MetadataCache(BrokerConfig({}))
        async with trio.open_nursery() as nursery:
            woken = trio.Event()

            async def wait() -> None:
                assert await metadata.wait_until(lambda snapshot: snapshot.has_leader("a", 0), 60)
                woken.set()

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await metadata.update(request(state("a", 0, leader=-1)))
            await trio.testing.wait_all_tasks_blocked()
            assert not woken.is_set()
            await metadata.update(request(state("a", 0)))

    async def test_time_runs_out(self, autojump_clock: trio.testing.MockClock) -> None:
        started = trio.current_time()
        assert not await MetadataCache(BrokerConfig({})).wait_until(lambda snapshot: snapshot.has_leader("a", 0), 3)
        assert trio.current_time() - started == 3

    async def test_what_is_there_needs_no_time(self) -> None:
        metadata = MetadataCache(BrokerConfig({}))
        await metadata.update(request(state("a", 0)))
        assert await metadata.wait_until(lambda snapshot: snapshot.has_leader("a", 0), 0)


class _Topics:
    """A tree that reports only the number of topics; None: it does not respond."""

    def __init__(self, count: int | None) -> None:
        self.count = count

    async def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        assert path == znodes.TOPICS
        if self.count is None:
            raise ConnectionLoss(path)
        return Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, self.count, 0)


def tree_of(topics: int | None) -> Tree:
    return cast(Tree, _Topics(topics))


@pytest.mark.parametrize("topics", [0, 1, None])
async def test_a_request_before_the_first_update_waits_for_it(
    metadata: MetadataCache, topics: int | None, autojump_clock: trio.testing.MockClock
) -> None:
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(metadata.wait_first_update, tree_of(topics))
        await trio.testing.wait_all_tasks_blocked()
        assert not metadata.snapshot.brokers
        assert nursery.child_tasks
        await metadata.update(request(state("a", 0)))
    await metadata.wait_first_update(tree_of(topics))
    assert trio.current_time() == start


@pytest.mark.parametrize("topics", [1, None])
async def test_an_update_without_partitions_is_incomplete_if_there_are_topics(
    metadata: MetadataCache, topics: int | None, autojump_clock: trio.testing.MockClock
) -> None:
    """A new controller first sends the live brokers. librdkafka drops records if its topic is reported as missing."""
    await metadata.update(request())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(metadata.wait_first_update, tree_of(topics))
        await trio.testing.wait_all_tasks_blocked()
        assert nursery.child_tasks
        await metadata.update(request(state("a", 0)))


async def test_an_update_without_partitions_is_complete_if_there_are_no_topics(
    metadata: MetadataCache,
    autojump_clock: trio.testing.MockClock,
) -> None:
    await metadata.update(request())
    start = trio.current_time()
    await metadata.wait_first_update(tree_of(0))
    await metadata.wait_first_update(tree_of(1))  # created in the meantime: nothing waits for its creation
    assert trio.current_time() == start


async def test_the_wait_for_the_first_update_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    start = trio.current_time()
    await MetadataCache(BrokerConfig({})).wait_first_update(tree_of(0))
    assert trio.current_time() - start == 18 + ELECTION_S  # zookeeper.session.timeout.ms is 18 s


@pytest.mark.parametrize(
    ("props", "brokers", "expected"),
    [
        ({}, [1], ["reached:7"]),
        ({}, [1, 2], ["reached:7", "reached:9092"]),
        ({"zookeeper.connect": "zk:2181"}, [1], ["reached:7"]),
        ({"zookeeper.connect": "zk:2181"}, [2], ["bound-2:9092"]),
        ({"zookeeper.connect": "zk:2181"}, [1, 2], ["bound-1:9092", "bound-2:9092"]),
        ({"advertised.listeners": "PLAINTEXT://told:1"}, [1, 2], ["bound-1:9092", "bound-2:9092"]),
    ],
)
async def test_the_addresses_of_brokers_as_a_client_sees_them(
    props: dict[str, str], brokers: list[int], expected: list[str]
) -> None:
    """As registered, unless they are all in one process, or there is only one broker."""
    metadata = MetadataCache(BrokerConfig(props))
    metadata.local_broker_id = 1
    await metadata.update(UpdateMetadataRequest(live_brokers=[live_broker(broker_id) for broker_id in brokers]))
    connection = PlainConnectionInfo(local=("reached", 7))
    nodes = metadata.alive_nodes(RequestContext(connection, AllowAll(), ApiKey.METADATA, 12))
    assert [f"{node.host}:{node.port}" for node in nodes] == expected


def live_broker(broker_id: int) -> UpdateMetadataRequest.UpdateMetadataBroker:
    endpoint = UpdateMetadataRequest.UpdateMetadataEndpoint(host=f"bound-{broker_id}", port=9092, listener="PLAINTEXT")
    return UpdateMetadataRequest.UpdateMetadataBroker(id=broker_id, endpoints=[endpoint])
