"""Three small services that handle orders through two brokers, and log as services do: the input of the demo.

`shop` takes orders, `payment` charges them, `shipping` packs them; each order has a correlation id, which goes with it.
For a part of the time the bank of `payment` does not respond, and its log has a trace for each order.
"""

from __future__ import annotations

import json
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Message

ORDERS, PAID = "orders", "paid"
ORDER_S = 0.05
POLL_S = 0.1
DELIVERY_SECONDS_MAX = 30.0
BAD_CARD, EXPENSIVE = 0.03, 90
SERVICES = ("shop", "payment", "shipping")


@dataclass(slots=True)
class Log:
    """A file of JSON lines, or of text with the traces of errors, as `payment` has it."""

    path: Path

    def json(self, level: str, message: str, correlation: str) -> None:
        """One object."""
        fields = {"time": _now(), "level": level, "message": message, "correlation_id": correlation}
        self._write(json.dumps(fields))

    def text(self, level: str, message: str, correlation: str, trace: str = "") -> None:
        """One line of Python's logging, and the lines of a trace."""
        more = f"\n{trace.rstrip()}" if trace else ""
        self._write(f"{_now()} - pay.charge - {level} - {message} correlation_id={correlation}{more}")

    def _write(self, event: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{event}\n")


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")


def charge(amount: int, bank_responds: bool) -> None:
    """Charge an amount. Raises TimeoutError, and ValueError for a card that is refused."""
    if not bank_responds:
        raise TimeoutError("the bank did not respond")
    if random.random() < BAD_CARD:
        raise ValueError(f"the card was refused for {amount}")


@contextmanager
def running(orders: str, billing: str, place: Path, bank_responds: Callable[[], bool]) -> Iterator[None]:
    """Run the services in this block: orders go through a topic at `orders`, and one at `billing`."""
    _create(orders, ORDERS)
    _create(billing, PAID)
    ended = threading.Event()
    logs = {name: Log(place / f"{name}.log") for name in SERVICES}
    work: list[Callable[[], None]] = [
        lambda: _shop(orders, logs["shop"], ended),
        lambda: _payment(orders, billing, logs["payment"], ended, bank_responds),
        lambda: _shipping(billing, logs["shipping"], ended),
    ]
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _create(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(DELIVERY_SECONDS_MAX)


def _shop(orders: str, log: Log, ended: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": orders, "linger.ms": 5})
    while not ended.wait(ORDER_S):
        correlation, amount = f"{random.getrandbits(64):016x}", random.randrange(1, 100)
        log.json("WARN" if amount > EXPENSIVE else "INFO", f"order of {amount} accepted", correlation)
        producer.produce(ORDERS, str(amount), correlation)
        producer.poll(0)
    producer.flush(DELIVERY_SECONDS_MAX)


def _payment(orders: str, billing: str, log: Log, ended: threading.Event, bank_responds: Callable[[], bool]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": billing, "linger.ms": 5})
    for message in _consumed(orders, ORDERS, "payment", ended):
        correlation, amount = _text(message.key()), int(message.value() or 0)
        try:
            charge(amount, bank_responds())
        except TimeoutError:
            log.text("ERROR", "charge failed", correlation, traceback.format_exc())
        except ValueError as error:
            log.text("ERROR", str(error), correlation)
        else:
            log.text("INFO", f"charged {amount}", correlation)
            producer.produce(PAID, str(amount), correlation)
            producer.poll(0)
    producer.flush(DELIVERY_SECONDS_MAX)


def _shipping(billing: str, log: Log, ended: threading.Event) -> None:
    for message in _consumed(billing, PAID, "shipping", ended):
        log.json("INFO", "packed", _text(message.key()))


def _text(data: object) -> str:
    return data.decode() if isinstance(data, bytes) else str(data)


def _consumed(bootstrap: str, topic: str, group: str, ended: threading.Event) -> Iterator[Message]:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        while not ended.is_set():
            message = consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                yield message
            elif message is not None:
                time.sleep(POLL_S)
    finally:
        consumer.close()
