"""What a client measures of itself, in a test: it notices that the broker is slow."""

from kpybroker.testing import Broker

LATENCY = "org.apache.kafka.producer.request.latency.max"

with Broker(topics=["orders"]) as broker:
    broker.subscribe_client_metrics("org.apache.kafka.producer.", match={"client_id": "shop-.*"})
    producer = broker.producer(client_id="shop-1", enable_metrics_push=True)

    def measured() -> float:
        producer.produce("orders", "one")
        producer.flush(10)
        return broker.wait_client_metrics("shop-1", name=LATENCY).value(LATENCY)

    with broker.faults.delay("Produce", 2_000):
        print("slow:", broker.wait_for(lambda: measured() >= 2_000, what="a latency of two seconds"))
    print("client:", broker.client_metrics("shop-1")[0].software_name)
