"""A broker for the length of a block."""

from kpybroker.testing import Broker

with Broker(topics=["orders"]) as broker:
    broker.produce("orders", ["first", ("key", {"amount": 5})])
    for record in broker.records("orders"):
        print(record.offset, record.key, record.text)
