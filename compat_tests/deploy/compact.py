"""Fills a compacted topic and waits until the broker has compacted it: `compact.py HOST:PORT TOPIC`.

It prints how many records are left of those that were written. A process of its own, as `client.py` is.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.support.waiting import eventually

SECONDS_MAX = 60
RECORDS = 200
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


def main(address: str, topic: str) -> None:
    """Write one key again and again, until fewer records are there than were written."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1, config=SETTINGS)])[topic].result(SECONDS_MAX)
    producer = Producer({"bootstrap.servers": address})
    written = 0

    def left() -> int:
        nonlocal written
        for _ in range(RECORDS):
            producer.produce(topic, "value", "key")
        assert producer.flush(SECONDS_MAX) == 0
        written += RECORDS
        count = count_records(address, topic, written)
        return count if count < written else 0

    print(eventually(left, "the topic is compacted", SECONDS_MAX), "of", written)


def count_records(address: str, topic: str, end: int) -> int:
    """The records of partition 0 up to the offset `end`."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    while (message := consumer.poll(SECONDS_MAX)) is not None and message.error() is None:
        count += 1
        if message.offset() == end - 1:
            break
    consumer.close()
    return count


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
