"""What a consumer does about an error, request by request."""

from kpybroker.testing import Broker

with Broker(topics=["orders"], partitions=1) as broker:
    broker.produce("orders", ["paid"])
    broker.faults.error("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", group="billing", times=2)

    consumer = broker.consumer("billing", "orders")
    print("received:", consumer.poll(10).value().decode())
    consumer.close()

    for request in broker.requests("OffsetFetch"):
        print(request.api, request.outcome, *request.errors)
