"""Events to Kafka: after the commit of the database, never for a change that was rolled back."""

import json
from functools import lru_cache
from typing import Any

from confluent_kafka import Producer
from django.conf import settings
from django.db import transaction


@lru_cache(maxsize=1)
def producer(servers: str) -> Producer:
    """One a process, and another one where the address changes, as in tests."""
    return Producer({**settings.KAFKA, "bootstrap.servers": servers, "enable.idempotence": True})


def send_after_commit(topic: str, key: str, event: dict[str, Any]) -> None:
    """Write the event when the transaction that is open has been committed.

    A process that dies between the commit and this loses the event: where that must not be, keep an outbox.
    """

    def send() -> None:
        sender = producer(settings.KAFKA["bootstrap.servers"])
        sender.produce(topic, json.dumps(event), key)
        sender.flush(10)

    transaction.on_commit(send)
