"""Exactly once: records and offsets are one transaction, which is there as a whole or not at all.

    python exactly_once.py BOOTSTRAP SOURCE TARGET GROUP

Copies SOURCE to TARGET until SIGTERM. Readers of TARGET set `isolation.level=read_committed` (librdkafka's default, not
the Java client's). It works from topics to topics of one cluster.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Producer

BATCH = 50


def insist(step: Callable[..., None], *arguments: object) -> None:
    """Repeat while the error is retriable. Any other error ends the program: the next start aborts the open transaction
    in `init_transactions`, and continues where the last committed transaction ended."""
    while True:
        try:
            return step(*arguments)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def main(bootstrap: str, source: str, target: str, group: str) -> None:
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    # with librdkafka's default, `rebootstrap`, send_offsets_to_transaction may never end after the only broker died
    common = {"bootstrap.servers": bootstrap, "metadata.recovery.strategy": "none", "log_level": 0}
    producer = Producer({**common, "transactional.id": group})
    insist(producer.init_transactions)  # before the first read: fences the previous producer
    consumer = Consumer(
        {
            **common,
            "group.id": group,
            "group.instance.id": group,  # after a restart the program gets its partitions back at once
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    while not stopping:
        messages = [message for message in consumer.consume(BATCH, 0.1) if message.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), message.key())
        positions = consumer.position(consumer.assignment())
        insist(producer.send_offsets_to_transaction, positions, consumer.consumer_group_metadata())
        insist(producer.commit_transaction)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
