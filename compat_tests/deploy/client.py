"""Writes a record with stock librdkafka and reads it back: `client.py HOST:PORT TOPIC [RECORDS_BEFORE]`.

It prints the values of all records of the topic. A process of its own, so that it can run in a broker's network.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer

SECONDS_MAX = 60


def main(address: str, topic: str, before: int) -> None:
    """Write one record, then read it and the `before` records that are there already."""
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, f"record {before}")
    assert producer.flush(SECONDS_MAX) == 0
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": f"{topic}-{before}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages = consumer.consume(before + 1, SECONDS_MAX)
    consumer.close()
    print(*(message.value().decode() for message in messages), sep=", ")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
