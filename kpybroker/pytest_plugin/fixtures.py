"""The fixtures. A broker lives for the session; topics, groups and clients are of one test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import pytest

from kpybroker.pytest_plugin import marker
from kpybroker.pytest_plugin.options import broker_scope, external, extra_config, real_cluster, security
from kpybroker.pytest_plugin.real import NEEDS_OURS

if TYPE_CHECKING:
    from kpybroker.testing import (
        Admin,
        Broker,
        BrokerClock,
        BrokerFactory,
        Cluster,
        Consumer,
        Faults,
        Producer,
        Requests,
        SchemaRegistry,
        ShareConsumer,
    )

FLUSH_S_MAX = 10.0
NAME_MAX = 200


# --- brokers


@pytest.fixture(scope=broker_scope)
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker: `.bootstrap_servers`, `.config(library)`, `.producer()`, `.records(topic)` ...

    It is a `kpybroker.testing.Broker`, one for the whole run; `--kafka-broker-scope=function` makes it one a test.
    With pytest-xdist each worker has its own. With `--kafka-bootstrap` it is that cluster, as far as stock clients can
    serve.
    """
    there = real_cluster(request.config)
    if there is not None:
        from kpybroker.pytest_plugin.external import ExternalKafka

        with ExternalKafka(there) as kafka:
            yield kafka
        return
    from kpybroker.testing import Broker

    with Broker(config=extra_config(request.config), **security(request.config)) as broker:
        yield broker


@pytest.fixture(scope=broker_scope)
def kpybroker(kafka_broker: Broker) -> Broker:
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
def kafka_broker_factory(request: pytest.FixtureRequest) -> Iterator[BrokerFactory]:
    """Starts brokers for this test: `kafka_broker_factory(partitions=3)`, `kafka_broker_factory(brokers=3)`,
    `kafka_broker_factory(tls=True, sasl="scram")`.

    The arguments are those of `kpybroker.testing.Broker` and `Cluster`; all end with the test.
    """
    _skip_if_external(request, "kafka_broker_factory starts brokers")
    from kpybroker.testing import Broker, Cluster
    from kpybroker.testing.checking.calls import checked
    from kpybroker.testing.cluster import BROKERS
    from kpybroker.testing.running.options import OPTIONS, by_one_name

    with ExitStack() as stack:

        @by_one_name
        @checked(OPTIONS, brokers=BROKERS)
        def kafka_broker_factory(brokers: int = 1, **options: Any) -> Broker | Cluster:
            keys = {**extra_config(request.config), **(options.pop("config", None) or {})}
            options = {**security(request.config), **options, "config": keys}
            if brokers == 1:
                return stack.enter_context(Broker(**options))
            return stack.enter_context(Cluster(brokers, **options))

        yield cast("BrokerFactory", kafka_broker_factory)


@pytest.fixture(scope=broker_scope)
def kafka_schema_registry(request: pytest.FixtureRequest, kafka_broker: Broker) -> Iterator[SchemaRegistry]:
    """A schema registry of `kafka_broker`: `.url`. It lives as long; subjects are those of all tests."""
    _skip_if_external(request, "kafka_schema_registry writes schemas into the broker")
    from kpybroker.testing import SchemaRegistry

    with SchemaRegistry(kafka_broker) as registry:
        yield registry


# --- one test's own


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: Broker) -> Iterator[str]:
    """The name of a topic that no other test has. `@pytest.mark.kafka(partitions=3)` says how it is created."""
    name = _unique(request)
    wanted = marker.given(request.node)
    kafka_broker.create_topic(name, wanted.get("partitions", 1), config=wanted.get("config"))
    yield name
    if external(request.config) is not None:  # which does not end with the run
        kafka_broker.delete_topic(name)


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
def kafka_producer(kafka_broker: Broker) -> Iterator[Producer]:
    """A producer of confluent-kafka, or else of kafka-python. It is flushed at the end of the test."""
    producer = kafka_broker.producer()
    yield producer
    pending = producer.flush(FLUSH_S_MAX)
    if hasattr(producer, "close"):
        producer.close()
    if pending and kafka_broker.is_running:
        pytest.fail(f"kafka_producer: {pending} records were not delivered within {FLUSH_S_MAX:g} s", pytrace=False)


@pytest.fixture
def kafka_consumer(kafka_broker: Broker, kafka_topic: str, group_id: str) -> Iterator[Consumer]:
    """A consumer of `kafka_topic` in the group `group_id`, from the earliest offset; closed at the end of the test."""
    consumer = kafka_broker.consumer(group_id, kafka_topic)
    yield consumer
    consumer.close()


@pytest.fixture
def kafka_share_consumer(kafka_broker: Broker, kafka_topic: str, group_id: str) -> Iterator[ShareConsumer]:
    """A member of the share group `group_id` that reads `kafka_topic` from the earliest offset, of confluent-kafka.

    It is closed at the end of the test.
    """
    consumer = kafka_broker.share_consumer(group_id, kafka_topic)
    yield consumer
    consumer.close()


@pytest.fixture
def kafka_admin(kafka_broker: Broker) -> Iterator[Admin]:
    """An admin client of confluent-kafka, or else of kafka-python."""
    admin = kafka_broker.admin()
    yield admin
    if hasattr(admin, "close"):
        admin.close()


# --- what only a broker for tests has


@pytest.fixture
def kafka_faults(request: pytest.FixtureRequest, kafka_broker: Broker) -> Iterator[Faults]:
    """Makes requests and the disk fail; all faults end with the test, and one that never acted fails it."""
    _skip_if_external(request, "a real cluster does not fail on request")
    yield kafka_broker.faults
    kafka_broker.faults.clear_others()


@pytest.fixture
def kafka_clock(request: pytest.FixtureRequest, kafka_broker: Broker) -> BrokerClock:
    """The broker's clock: `kafka_clock.advance(hours=25)`. It stays ahead after the test."""
    _skip_if_external(request, "the clock of a real cluster cannot be moved")
    return kafka_broker.clock


@pytest.fixture
def kafka_requests(request: pytest.FixtureRequest, kafka_broker: Broker) -> Requests:
    """The requests that arrived since the test began: `kafka_requests("Produce")`, `kafka_requests(client_id="x")`."""
    _skip_if_external(request, "a real cluster does not say which requests arrived")
    kafka_broker.clear_requests()
    return kafka_broker.requests


def _skip_if_external(request: pytest.FixtureRequest, why: str) -> None:
    address = external(request.config)
    if address is not None:
        pytest.skip(f"{NEEDS_OURS}: {why}")
