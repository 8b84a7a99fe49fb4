"""A registry's topic and its requests, for tests of what one registry takes over from another."""

from __future__ import annotations

from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaError, TopicPartition

from compat_tests.support.quick import DEADLINE_S, QUIET
from tests.registry.store.taking_over import Ask

TIMEOUT_S = 120.0
JSON = {"Content-Type": "application/json"}


def http(url: str) -> Ask:
    """Asks the registry at `url`."""
    client = httpx.Client(base_url=url, timeout=TIMEOUT_S)

    def ask(method: str, path: str, body: Any) -> tuple[int, Any]:
        response = client.request(method, path, json=body, headers=JSON)
        return response.status_code, response.json()

    return ask


def records_of(bootstrap: str, topic: str) -> list[tuple[str, str | None, int]]:
    """Keys, values and times, in the order of the log."""
    settings = {"group.id": "none", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[str, str | None, int]] = []
    try:
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            value = message.value()
            found.append((message.key().decode(), None if value is None else value.decode(), message.timestamp()[1]))
    finally:
        consumer.close()
