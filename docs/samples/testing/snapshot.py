"""Back to an earlier state."""

from kpybroker.testing import Broker

with Broker() as broker:
    broker.produce("orders", ["kept"])
    before = broker.snapshot()
    broker.produce("orders", ["forgotten"])
    broker.delete_topic("orders")
    broker.restore(before)
    print([record.text for record in broker.records("orders")])
