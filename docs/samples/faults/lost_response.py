"""A copier that writes some records twice, and one that does not."""

from kpybroker.testing import Broker


def copy(broker, topic, **settings):
    """Copy three orders to a topic, one request each."""
    producer = broker.producer(retry_backoff_ms=10, **settings)
    for order in ("one", "two", "three"):
        producer.produce(topic, order)
        producer.flush(10)


with Broker(topics=["broken", "fixed"], partitions=1) as broker:
    # The second request is done, and its response is lost: the producer must send it again.
    broker.faults.disconnect("Produce", "after", topic="broken", nth=2)
    broker.faults.disconnect("Produce", "after", topic="fixed", nth=2)

    copy(broker, "broken", enable_idempotence=False)
    copy(broker, "fixed", enable_idempotence=True)

    for topic in ("broken", "fixed"):
        print(topic, [record.text for record in broker.records(topic)])
