"""Requests and disks that fail."""

from kpybroker.testing import Broker

with Broker(topics=["orders"]) as broker:
    producer = broker.producer(enable_idempotence=True, retry_backoff_ms=10)

    with broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2) as fault:
        producer.produce("orders", "tried three times")
        producer.flush(10)
    print("errors:", fault.hits)

    with broker.faults.disconnect("Produce", "after", times=1) as lost:  # the work is done, the response is lost
        producer.produce("orders", "written once")
        producer.flush(10)
    print("lost responses:", lost.hits)

    held = broker.faults.hold("Produce")
    producer.produce("orders", "late")
    producer.poll(0)
    held.wait(1)
    print("before:", len(broker.records("orders")))
    held.release()
    producer.flush(10)
    print("after:", [record.text for record in broker.records("orders")])

    # A fault that never acts is an error when it ends, unless it says that it may not:
    broker.faults.delay("Fetch", 200, jitter_ms=50, expect_unused=True)
    broker.faults.blackhole(client_id="hung", expect_unused=True)
    broker.faults.error("Fetch", "OFFSET_OUT_OF_RANGE", times=2, expect_unused=True)
    broker.cap_versions("2.4")  # serve what Kafka 2.4 served
    broker.reset()
