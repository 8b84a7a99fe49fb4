"""Faults of a file."""

from kpybroker.testing import Broker

with Broker(topics=["orders"]) as broker:
    leader, slow, commit = broker.faults.load("faults.yaml", expect_unused=True)

    producer = broker.producer(retry_backoff_ms=10)
    producer.produce("orders", "arrives")
    producer.flush(10)

    print("errors:", leader.hits)
    print("records:", len(broker.records("orders")))
