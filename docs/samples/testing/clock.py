"""A clock that the test moves."""

from kpybroker.testing import Broker

with Broker() as broker:
    broker.create_topic("sessions", config={"retention.ms": 24 * 3_600_000})
    broker.produce("sessions", ["yesterday"])
    broker.clock.advance(hours=25)  # retention, session and transaction timeouts, producer ids ...
    broker.apply_retention("sessions")
    print(broker.records("sessions"))
