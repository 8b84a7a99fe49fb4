"""Orders are written to a topic, and read by the service that bills them."""

import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer


class OrderBook:
    """Writes orders. `settings` are those of confluent-kafka's Producer."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self._producer = Producer({**settings, "enable.idempotence": True})
        self._topic = topic

    def place(self, customer: str, amount: int) -> None:
        """Return when the order is acknowledged. Raises RuntimeError if it is not."""
        failures = []
        order = json.dumps({"customer": customer, "amount": amount})
        self._producer.produce(
            self._topic, order, customer, on_delivery=lambda error, _: error and failures.append(error)
        )
        if self._producer.flush(30) or failures:
            raise RuntimeError(f"the order of {customer} was not written: {failures}")


def orders(settings: dict[str, Any], group: str, topic: str) -> Iterator[dict[str, Any]]:
    """Orders as they arrive; each is committed when the next one is asked for."""
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        while True:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                raise RuntimeError(message.error())
            yield json.loads(message.value())
            consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()
