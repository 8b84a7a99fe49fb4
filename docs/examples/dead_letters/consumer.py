"""A consumer that one bad record does not stop: after three tries it goes to the dead-letter topic, with the reason."""

import json
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer

TRIES = 3


class Service:
    """Gives each record to `handle`, as JSON. What fails `TRIES` times is written to `<topic>.dead`."""

    def __init__(self, settings: dict[str, Any], group: str, topic: str, handle: Callable[[Any], None]) -> None:
        self._consumer = Consumer(
            {**settings, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._consumer.subscribe([topic])
        self._producer = Producer(settings)
        self._dead = f"{topic}.dead"
        self._handle = handle

    def serve_one(self, wait_s: float = 1.0) -> bool:
        """Whether there was a record. It is committed once it is handled, or safe in the dead-letter topic."""
        message = self._consumer.poll(wait_s)
        if message is None or message.error():
            return False
        failure = self._try(message)
        if failure is not None:
            self._bury(message, failure)
        self._consumer.commit(message, asynchronous=False)
        return True

    def _try(self, message: Message) -> Exception | None:
        failure: Exception | None = None
        for _ in range(TRIES):
            try:
                self._handle(json.loads(message.value()))
            except ValueError as error:  # no JSON, or refused: another try changes nothing
                return error
            except Exception as error:
                failure = error
            else:
                return None
        return failure

    def _bury(self, message: Message, failure: Exception) -> None:
        where = f"{message.topic()}-{message.partition()}@{message.offset()}"
        headers = {"reason": f"{type(failure).__name__}: {failure}", "from": where}
        self._producer.produce(self._dead, message.value(), message.key(), headers=headers)
        if self._producer.flush(30):
            raise RuntimeError(f"{where} could not be written to {self._dead}")

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
