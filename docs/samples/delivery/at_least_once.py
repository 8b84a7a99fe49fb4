"""At least once: do, then commit. Nothing is lost; records in progress at a crash are done again.

    python at_least_once.py BOOTSTRAP SOURCE TARGET GROUP

Copies SOURCE to TARGET until SIGTERM. For work that may be done twice: writing under a key, deleting, an upsert.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

BATCH = 50


def check(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)  # ends the program before it commits


def main(bootstrap: str, source: str, target: str, group: str) -> None:
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.instance.id": group,  # after a restart the program gets its partitions back at once
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    # idempotent: what the producer repeats by itself is there once and in order
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0})
    consumer.subscribe([source])
    while not stopping:
        messages = [message for message in consumer.consume(BATCH, 0.1) if message.error() is None]
        if not messages:
            continue
        for message in messages:
            producer.produce(target, message.value(), message.key(), on_delivery=check)
        producer.flush()  # first: all of them are acknowledged
        consumer.commit(asynchronous=False)  # an error ends the program, and the next one reads them again
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
