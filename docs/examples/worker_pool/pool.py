"""A pool of workers, each a process: they share the partitions of a topic, and take over from one that dies.

python pool.py HOST:PORT TOPIC GROUP RESULTS
"""

import sys

from confluent_kafka import Consumer, Producer


def work(servers: str, topic: str, group: str, results: str) -> None:
    """Take jobs until killed. A job is committed after its result is written: a job may be done twice, never lost."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(1)
        if message is None or message.error():
            continue
        number = int(message.value())
        producer.produce(results, str(number * number), str(number))
        producer.flush(30)
        consumer.commit(message, asynchronous=False)


if __name__ == "__main__":
    work(*sys.argv[1:])
