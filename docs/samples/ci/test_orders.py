"""A test that uses the broker: topics of its own, and nothing to clean up."""

import uuid

from confluent_kafka import Consumer, Producer


def test_an_order_arrives(bootstrap: str) -> None:
    topic = f"orders-{uuid.uuid4()}"
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, "one order")
    assert producer.flush(30) == 0

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.value() == b"one order"
