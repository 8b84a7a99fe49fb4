"""The fixtures. A broker lives for the session; topics, groups and clients are of one test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kpybroker.pytest_plugin.options import broker_scope, external, extra_config, security

if TYPE_CHECKING:
    from kpybroker.pytest_plugin.external import ExternalKafka
    from kpybroker.testing import Broker, BrokerClock, Cluster, Faults, Request, SchemaRegistry

    AnyBroker = Broker | ExternalKafka

FLUSH_S_MAX = 10.0
NAME_MAX = 200


# --- brokers


@pytest.fixture(scope=broker_scope)
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[AnyBroker]:
    """A broker: `.bootstrap_servers`, `.config(library)`, `.producer()`, `.records(topic)` ...

    It is a `kpybroker.testing.Broker`, one for the whole run; `--kafka-broker-scope=function` makes it one a test.
    With pytest-xdist the workers share one, unless a test of the run takes `kafka_faults`, `kafka_clock` or
    `kafka_requests`: then each worker has its own. With `--kafka-bootstrap` it is that cluster, as far as stock
    clients can serve.
    """
    address = external(request.config)
    if address is not None:
        from kpybroker.pytest_plugin.external import ExternalKafka

        yield ExternalKafka(address)
        return
    from kpybroker.pytest_plugin.shared import shared_broker

    shared = shared_broker(request)
    if shared is not None:
        with shared:
            yield shared
        return
    from kpybroker.testing import Broker

    with Broker(config=extra_config(request.config), **security(request.config)) as broker:
        yield broker


@pytest.fixture(scope=broker_scope)
def kpybroker(kafka_broker: AnyBroker) -> AnyBroker:
    """The same as `kafka_broker`, under a name that no other plugin has."""
    return kafka_broker


@pytest.fixture(scope=broker_scope)
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers, which can be stopped, killed, paused and parted: a `kpybroker.testing.Cluster`."""
    _skip_if_external(request, "kafka_cluster stops and parts brokers")
    from kpybroker.testing import Cluster

    with Cluster(brokers=3, config=extra_config(request.config), **security(request.config)) as cluster:
        yield cluster


@pytest.fixture
def kafka_broker_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Broker | Cluster]]:
    """Starts brokers for this test: `kafka_broker_factory(partitions=3)`, `kafka_broker_factory(num_brokers=3)`,
    `kafka_broker_factory(tls=True, sasl="scram")`.

    The arguments are those of `kpybroker.testing.Broker` and `Cluster`; all end with the test.
    """
    _skip_if_external(request, "kafka_broker_factory starts brokers")
    from kpybroker.testing import Broker, Cluster

    started: list[Broker | Cluster] = []

    def start(num_brokers: int = 1, *, config: dict[str, Any] | None = None, **options: Any) -> Broker | Cluster:
        keys = {**extra_config(request.config), **(config or {})}
        options = {**security(request.config), **options}
        made = Broker(config=keys, **options) if num_brokers == 1 else Cluster(num_brokers, config=keys, **options)
        started.append(made.start())
        return made

    yield start
    for one in reversed(started):
        one.stop()


@pytest.fixture(scope=broker_scope)
def kafka_schema_registry(request: pytest.FixtureRequest, kafka_broker: AnyBroker) -> Iterator[SchemaRegistry]:
    """A schema registry of `kafka_broker`: `.url`. It lives as long; subjects are those of all tests."""
    _skip_if_external(request, "kafka_schema_registry writes schemas into the broker")
    from kpybroker.testing import Broker, SchemaRegistry

    assert isinstance(kafka_broker, Broker)
    with SchemaRegistry(kafka_broker) as registry:
        yield registry


# --- one test's own


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: AnyBroker) -> str:
    """The name of a topic that no other test has. `@pytest.mark.kafka(partitions=3)` says how it is created."""
    marker = request.node.get_closest_marker("kafka")
    name = _unique(request)
    wanted = marker.kwargs if marker is not None else {}
    unknown = wanted.keys() - {"partitions", "config", "group_protocol"}
    if unknown:
        raise pytest.UsageError(
            f"pytest.mark.kafka has no argument {sorted(unknown)[0]!r}: partitions, config, group_protocol"
        )
    kafka_broker.create_topic(name, wanted.get("partitions", 1), config=wanted.get("config"))
    return name


@pytest.fixture
def group_id(request: pytest.FixtureRequest) -> str:
    """A group id that no other test has."""
    return _unique(request)


def _unique(request: pytest.FixtureRequest) -> str:
    """A name that says which test made it."""
    import secrets

    words = re.sub(r"[^A-Za-z0-9.]+", "-", request.node.name).strip("-")
    return f"{words[:NAME_MAX]}-{secrets.token_hex(4)}"


@pytest.fixture
def kafka_producer(kafka_broker: AnyBroker) -> Iterator[Any]:
    """A producer of confluent-kafka, or else of kafka-python. It is flushed at the end of the test."""
    producer = kafka_broker.producer()
    yield producer
    producer.flush(FLUSH_S_MAX)
    if hasattr(producer, "close"):
        producer.close()


@pytest.fixture
def kafka_consumer(kafka_broker: AnyBroker, kafka_topic: str, group_id: str) -> Iterator[Any]:
    """A consumer of `kafka_topic` in the group `group_id`, from the earliest offset; closed at the end of the test."""
    consumer = kafka_broker.consumer(group_id, kafka_topic)
    yield consumer
    consumer.close()


@pytest.fixture
def kafka_admin(kafka_broker: AnyBroker) -> Iterator[Any]:
    """An admin client of confluent-kafka, or else of kafka-python."""
    admin = kafka_broker.admin()
    yield admin
    if hasattr(admin, "close"):
        admin.close()


# --- what only a broker for tests has


@pytest.fixture
def kafka_faults(request: pytest.FixtureRequest, kafka_broker: Broker) -> Iterator[Faults]:
    """Makes requests and the disk fail; all faults are removed at the end of the test."""
    _skip_if_external(request, "a real cluster does not fail on request")
    yield kafka_broker.faults
    kafka_broker.reset()


@pytest.fixture
def kafka_clock(request: pytest.FixtureRequest, kafka_broker: Broker) -> BrokerClock:
    """The broker's clock: `kafka_clock.advance(hours=25)`. It stays ahead after the test."""
    _skip_if_external(request, "the clock of a real cluster cannot be moved")
    return kafka_broker.clock


@pytest.fixture
def kafka_requests(request: pytest.FixtureRequest, kafka_broker: Broker) -> Callable[..., list[Request]]:
    """The requests that arrived since the test began: `kafka_requests("Produce")`, `kafka_requests(client_id="x")`."""
    _skip_if_external(request, "a real cluster does not say which requests arrived")
    kafka_broker.clear_requests()
    return kafka_broker.requests


def _skip_if_external(request: pytest.FixtureRequest, why: str) -> None:
    address = external(request.config)
    if address is not None:
        pytest.skip(f"--kafka-bootstrap={address}: {why}")
