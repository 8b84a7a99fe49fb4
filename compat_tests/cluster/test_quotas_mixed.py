"""kpybroker and Kafka 3.9.1 in one cluster: a quota that is set anywhere is kept in one place and applies on both.

Nothing here depends on `--broker`: the cluster is mixed by its nature.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import Cluster
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.storage.batches import batch

OURS, KAFKA = 1, 2
BOTH = pytest.mark.parametrize("broker_id", [OURS, KAFKA], ids=["ours", "kafka"])
CLIENT_ID, USER = "raw", "ANONYMOUS"  # of `Raw`, on a PLAINTEXT listener
LITTLE, MUCH = 1.0, 1e12
RATES = ("producer_byte_rate", "consumer_byte_rate")

Entity = dict[str, str | None]

LEVELS: list[Entity] = [
    {"client-id": None},
    {"client-id": CLIENT_ID},
    {"user": None},
    {"user": None, "client-id": None},
    {"user": None, "client-id": CLIENT_ID},
    {"user": USER},
    {"user": USER, "client-id": None},
    {"user": USER, "client-id": CLIENT_ID},
]
"""Each comes before those above it."""


@pytest.fixture(scope="module")
def cluster(launcher: Launcher) -> Iterator[Cluster]:
    keys = {"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1"}
    made = Cluster(launcher.directory / "quotas", launcher.zookeeper("quotas"), ["kpybroker", "kafka"], keys)
    made.start()
    for broker_id in (OURS, KAFKA):
        made.create(f"on-{broker_id}", str(broker_id))
    yield made
    made.close()


def raw(cluster: Cluster, broker_id: int) -> Raw:
    return Raw(("127.0.0.1", cluster.brokers[broker_id].port))


def alter(cluster: Cluster, broker_id: int, *entities: Entity, **values: float | None) -> None:
    """Set the values for each of the entities; None removes."""
    request = AlterClientQuotasRequest
    ops = [request.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()]
    entries = [
        request.EntryData(
            entity=[request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()], ops=ops
        )
        for entity in entities
    ]
    with raw(cluster, broker_id) as client:
        response = client.ask(request(entries=entries), 1)
    assert [one.error_code for one in response.entries] == [0] * len(entities), response


def produced(cluster: Cluster, broker_id: int) -> int:
    """The throttle time of a Produce to that broker, on a connection of its own."""
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(bytes(1000)))
    topic = ProduceRequest.TopicProduceData(name=f"on-{broker_id}", partition_data=[data])
    with raw(cluster, broker_id) as client:
        response = client.ask(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic]), 9)
    (one,) = response.responses[0].partition_responses
    assert one.error_code == 0, "the leader is elsewhere"
    return int(response.throttle_time_ms)


def fetched(cluster: Cluster, broker_id: int) -> tuple[int, int]:
    """The throttle time of a Fetch from that broker, and how many partitions were in the response."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topics = [FetchRequest.FetchTopic(topic=f"on-{broker_id}", partitions=[partition])]
    request = FetchRequest(max_wait_ms=0, max_bytes=1_000_000, topics=topics, session_epoch=-1)
    with raw(cluster, broker_id) as client:
        response = client.ask(request, 12)
    return int(response.throttle_time_ms), len(response.responses)


@pytest.fixture(autouse=True)
def without_quotas(cluster: Cluster) -> Iterator[None]:
    yield
    alter(cluster, OURS, *LEVELS, **dict.fromkeys((*RATES, "controller_mutation_rate")))
    eventually(lambda: produced(cluster, OURS) == produced(cluster, KAFKA) == 0, "nothing is limited any more")
    assert cluster.tree.get_children("/config/users") == cluster.tree.get_children("/config/clients") == []


@BOTH
def test_the_more_specific_of_two_levels_applies(cluster: Cluster, broker_id: int) -> None:
    """From the last of the eight to the first: little, which each next one turns into much."""
    for entity in LEVELS:
        alter(cluster, OURS, entity, producer_byte_rate=LITTLE)
        eventually(lambda: produced(cluster, broker_id) > 0, f"{entity} is limited")
        alter(cluster, OURS, entity, producer_byte_rate=MUCH)
        eventually(lambda: produced(cluster, broker_id) == 0, f"{entity} is not limited any more")


@BOTH
@pytest.mark.parametrize("asked", [OURS, KAFKA], ids=["asking-ours", "asking-kafka"])
def test_a_quota_set_by_one_broker_applies_on_the_other(cluster: Cluster, broker_id: int, asked: int) -> None:
    assert produced(cluster, broker_id) == 0
    alter(cluster, asked, {"client-id": CLIENT_ID}, consumer_byte_rate=100)
    throttle_ms, partitions = eventually(
        lambda: response if (response := fetched(cluster, broker_id))[0] else None, "the quota is known"
    )
    assert throttle_ms > 0
    assert partitions == 0
    alter(cluster, asked, {"client-id": CLIENT_ID}, consumer_byte_rate=None)
    eventually(lambda: fetched(cluster, broker_id) == (0, 1), "the quota is gone")


@pytest.mark.parametrize("broker_id", [OURS, pytest.param(KAFKA, marks=pytest.mark.wide)], ids=["ours", "kafka"])
@pytest.mark.parametrize(
    "entity",
    [
        pytest.param(["--entity-type", "clients", "--entity-default"], id="clients", marks=pytest.mark.wide),
        pytest.param(
            ["--entity-type", "users", "--entity-name", USER, "--entity-type", "clients", "--entity-name", CLIENT_ID],
            id="user-and-client",
        ),
    ],
)
def test_kafka_configs_sets_quotas_in_zookeeper(cluster: Cluster, broker_id: int, entity: list[str]) -> None:
    """The tool of 2.8.2: that of 3.9 sets credentials and passwords there only."""
    tool = Tools("2.8.2", cluster.zookeeper)
    tool.run("configs", "--alter", *entity, "--add-config", "producer_byte_rate=1")
    eventually(lambda: produced(cluster, broker_id) > 0, "the quota is known")
    described = Tools("3.9.1", cluster.brokers[broker_id].bootstrap).run("configs", "--describe", *entity)
    assert "producer_byte_rate=1.0" in described.out
    tool.run("configs", "--alter", *entity, "--delete-config", "producer_byte_rate")
    eventually(lambda: produced(cluster, broker_id) == 0, "the quota is gone")


def make_controller(cluster: Cluster, broker_id: int) -> None:
    def is_controller() -> bool:
        if cluster.controller() not in (broker_id, None):
            cluster.tree.delete("/controller")  # the next election is a race
            return False
        return cluster.controller_seen_by(broker_id) == broker_id

    cluster.wait(is_controller, f"{broker_id} is the controller")


@BOTH
def test_the_controller_refuses_mutations_above_the_quota(cluster: Cluster, broker_id: int, name: str) -> None:
    """The same numbers from either controller: 11 at once, one a second."""
    make_controller(cluster, broker_id)
    alter(cluster, broker_id, {"client-id": CLIENT_ID}, controller_mutation_rate=1, producer_byte_rate=1)
    eventually(lambda: produced(cluster, broker_id) > 0, "the quotas are known")
    refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED

    def create(topic: str, partitions: int, version: int) -> tuple[int, int]:
        wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        with raw(cluster, broker_id) as client:
            response = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), version)
        return response.topics[0].error_code, response.throttle_time_ms

    code, throttle_ms = create(f"{name}-many", 60, 6)
    assert (code, throttle_ms) == (0, 0)
    code, throttle_ms = create(f"{name}-more", 1, 6)
    assert code == refused
    assert 30_000 < throttle_ms <= 49_000
    code, throttle_ms = create(f"{name}-old", 1, 5)
    assert code == 0
    assert 30_000 < throttle_ms <= 50_000
