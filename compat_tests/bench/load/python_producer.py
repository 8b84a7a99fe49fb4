"""A Python producer at full speed, as its library's users write one.

    python -m compat_tests.bench.load.python_producer confluent|kafka-python HOST:PORT TOPIC COUNT SIZE

Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time


def confluent(bootstrap: str, topic: str, count: int, value: bytes) -> None:
    from confluent_kafka import Producer

    failures: list[object] = []

    def report(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 5, "on_delivery": report})
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    left = producer.flush(60)
    assert (left, failures) == (0, []), (left, failures[:3])


def kafka_python(bootstrap: str, topic: str, count: int, value: bytes) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks=1, linger_ms=5, enable_idempotence=False)
    last = None
    for _ in range(count):
        last = producer.send(topic, value)
    producer.flush(60)
    assert last is not None
    assert last.succeeded(), last.exception
    producer.close()


LIBRARIES = {"confluent": confluent, "kafka-python": kafka_python}


def main(library: str, bootstrap: str, topic: str, count: str, size: str) -> None:
    begin = time.perf_counter()
    LIBRARIES[library](bootstrap, topic, int(count), b"x" * int(size))
    print(json.dumps({"count": int(count), "seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main(*sys.argv[1:])
