"""A function of the test that chooses the requests."""

from kpybroker.testing import Broker


def is_about_alice(request):
    """A Produce request with a record whose key is `alice`."""
    for topic in request["topic_data"]:
        for partition in topic["partition_data"]:
            for batch in partition["records"]["batches"]:
                if any(record["key"] == "alice" for record in batch["records"]):
                    return True
    return False


with Broker(topics=["orders"], partitions=1) as broker:
    producer = broker.producer()
    with broker.faults.error("Produce", "MESSAGE_TOO_LARGE", when=is_about_alice):
        for name in ("bob", "alice", "carol"):
            producer.produce("orders", "an order", name)
            producer.flush(10)
    print([record.key for record in broker.records("orders")])
