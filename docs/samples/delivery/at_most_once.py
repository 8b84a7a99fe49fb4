"""At most once: commit, then do. Records in progress at a crash are lost; nothing is done twice.

    python at_most_once.py BOOTSTRAP SOURCE TARGET GROUP

Copies SOURCE to TARGET until SIGTERM. For measurements that are soon followed by the next one.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, Producer

BATCH = 50


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
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 0, "retries": 0, "log_level": 0})
    consumer.subscribe([source])
    while not stopping:
        messages = [message for message in consumer.consume(BATCH, 0.1) if message.error() is None]
        if not messages:
            continue
        # First: they are never read again. An error ends the program, and the next start begins at the committed
        # offset: to do these records now could be to do them twice.
        consumer.commit(asynchronous=False)
        for message in messages:
            producer.produce(target, message.value(), message.key())
        producer.poll(0)
    producer.flush(10)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
