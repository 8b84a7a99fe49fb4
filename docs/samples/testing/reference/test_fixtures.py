"""Each fixture of the pytest plugin."""

from collections.abc import Callable
from typing import Any

import pytest

from kpybroker.testing import Broker, BrokerClock, Cluster, Faults, Request, SchemaRegistry


# kafka_broker
# kafka_topic
def test_what_is_written(kafka_broker: Broker, kafka_topic: str) -> None:
    kafka_broker.produce(kafka_topic, ["first"])
    kafka_broker.assert_records(kafka_topic, ["first"])


# kpybroker
def test_the_other_name(kpybroker: Broker, kafka_broker: Broker) -> None:
    assert kpybroker is kafka_broker


# kafka_cluster
def test_a_broker_dies(kafka_cluster: Cluster) -> None:
    kafka_cluster[0].kill()
    kafka_cluster[0].start()


# kafka_broker_factory
def test_two_brokers(kafka_broker_factory: Callable[..., Any]) -> None:
    source, copy = kafka_broker_factory(topics=["orders"]), kafka_broker_factory(topics=["orders"])
    assert source.port != copy.port


# kafka_schema_registry
def test_a_registry(kafka_schema_registry: SchemaRegistry) -> None:
    assert kafka_schema_registry.url.startswith("http://127.0.0.1:")


# group_id
# kafka_producer
# kafka_consumer
# pytest.mark.kafka
@pytest.mark.kafka(partitions=3, config={"retention.ms": 60_000})
def test_there_and_back(kafka_producer: Any, kafka_consumer: Any, kafka_topic: str, group_id: str) -> None:
    kafka_producer.produce(kafka_topic, b"first")
    kafka_producer.flush()
    assert kafka_consumer.poll(60).value() == b"first"  # the consumer is in the group `group_id`


# kafka_share_consumer
def test_a_queue(kafka_producer: Any, kafka_share_consumer: Any, kafka_topic: str) -> None:
    kafka_producer.produce(kafka_topic, b"job")
    kafka_producer.flush()
    (job,) = kafka_share_consumer.poll(60)
    assert (job.value(), job.delivery_count()) == (b"job", 1)


# kafka_admin
def test_topics(kafka_admin: Any, kafka_topic: str) -> None:
    assert kafka_topic in kafka_admin.list_topics().topics


# kafka_faults
# kafka_requests
def test_a_lost_response(
    kafka_faults: Faults, kafka_requests: Callable[..., list[Request]], kafka_producer: Any, kafka_topic: str
) -> None:
    kafka_faults.disconnect("Produce", "after", topic=kafka_topic, once=True)
    kafka_producer.produce(kafka_topic, b"first")
    kafka_producer.flush()
    assert len(kafka_requests("Produce")) == 2


# kafka_clock
def test_a_day_later(kafka_clock: BrokerClock) -> None:
    kafka_clock.advance(hours=25)


# kafka_group_protocol
def test_either_protocol(kafka_group_protocol: str) -> None:
    assert kafka_group_protocol in ("classic", "consumer")
