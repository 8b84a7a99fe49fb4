"""A test with types."""

import pytest

from kpybroker.testing import Broker, ErrorName, Faults, Producer

ERRORS: list[ErrorName] = ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS"]


@pytest.mark.parametrize("error", ERRORS)
def test_a_producer_tries_again(
    kafka_broker: Broker, kafka_faults: Faults, kafka_producer: Producer, kafka_topic: str, error: ErrorName
) -> None:
    kafka_faults.error("Produce", error, topic=kafka_topic, once=True)
    kafka_producer.produce(kafka_topic, b"value")
    kafka_producer.flush()
    kafka_broker.assert_records(kafka_topic, ["value"])
