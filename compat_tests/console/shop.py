"""A shop's cluster, for pictures and for tests that read pages as people do: topics, records, groups that lag.

The same records each time, apart from their times, which end when the cluster is filled.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

MINUTE_MS: Final = 60_000
RECORDS: Final = 900
SPAN_MS: Final = 90 * MINUTE_MS
"""How long before now the first record was written."""

MOVED: Final = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
SETTLE_S: Final = 60.0

LONG: Final = "checkout-order-aggregator-KSTREAM-AGGREGATE-STATE-STORE-0000000007-changelog"
PARTITIONS: Final = {
    "orders": 6,
    "payments": 6,
    "shipments": 3,
    "inventory.changes": 6,
    "customers": 3,
    "carts": 3,
    "clickstream": 12,
    "search.queries": 6,
    "emails.outgoing": 3,
    "invoices": 3,
    "refunds": 3,
    "prices": 1,
    "fraud.scores": 6,
    "sessions": 6,
    "audit.log": 1,
    "notifications.push": 3,
    "returns": 3,
    "reviews": 3,
    "recommendations.features": 6,
    "warehouse.eu-west-1.stock-levels": 3,
    "warehouse.us-east-1.stock-levels": 3,
    "warehouse.picking": 3,
    "suppliers": 1,
    "loyalty.points": 3,
    "vouchers": 1,
    "exchange-rates": 1,
    "support.tickets": 3,
    "deliveries.tracking": 6,
    "orders.dead-letters": 1,
    "payments.dead-letters": 1,
    LONG: 6,
    "checkout-order-aggregator-KSTREAM-AGGREGATE-STATE-STORE-0000000007-repartition": 6,
}
CONFIGS: Final = {
    "orders": {"retention.ms": "604800000", "min.insync.replicas": "1", "compression.type": "zstd"},
    "customers": {"cleanup.policy": "compact"},
    "prices": {"cleanup.policy": "compact"},
    "audit.log": {"retention.ms": "-1"},
}
READ: Final = {
    "billing": ("orders", 0.62),
    "fulfilment": ("orders", 1.0),
    "fraud-scorer": ("payments", 0.97),
    "invoicing": ("payments", 1.0),
    "search-indexer": ("inventory.changes", 0.4),
    "mailer": ("emails.outgoing", 1.0),
    "data-lake": ("clickstream", 0.88),
    "dashboard": ("shipments", 1.0),
    "recommendations": ("clickstream", 1.0),
    "loyalty": ("orders", 0.95),
    "nightly-export": ("invoices", 0.0),
}
"""Groups without members, the topic of each, and how much of it is committed."""
NAMES: Final = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Tony", "Frances", "Donald", "Radia", "Leslie")
GOODS: Final = (
    "espresso-beans-1kg",
    "hand-grinder",
    "paper-filters-100",
    "kettle-gooseneck",
    "scale-0.1g",
    "mug-350ml",
)


def fill(bootstrap: str, replicas: int = 1) -> None:
    """Create the topics, write the records, and commit the groups' offsets."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(name, count, replicas, config=CONFIGS.get(name, {})) for name, count in PARTITIONS.items()]
    for future in admin.create_topics(new).values():
        future.result()
    _write(bootstrap)
    for group, (topic, share) in READ.items():
        _commit(bootstrap, group, topic, share)


EVENTS: Final = "events"
EVENTS_COUNT: Final = 1_000_000
EVENTS_PARTITIONS: Final = 6
EVENTS_STEP_MS: Final = 6
EVENTS_AHEAD_MS: Final = 15 * MINUTE_MS
"""How long after now the last one is, so that there are some of the last five minutes whenever a test asks."""


def event_key(number: int) -> str:
    """Of one of a million."""
    return f"event-{number:07}"


def write_events(bootstrap: str) -> int:
    """A topic of a million records, one every few milliseconds, each in the next partition; the time of the first."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(EVENTS, EVENTS_PARTITIONS, 1)])[EVENTS].result()
    first_ms = int(time.time() * 1000) + EVENTS_AHEAD_MS - EVENTS_COUNT * EVENTS_STEP_MS
    batches = {"linger.ms": 50, "compression.type": "lz4", "queue.buffering.max.messages": EVENTS_COUNT}
    producer = Producer({"bootstrap.servers": bootstrap, **batches})
    for number in range(EVENTS_COUNT):
        at_ms = first_ms + number * EVENTS_STEP_MS
        producer.produce(EVENTS, "{}", event_key(number), partition=number % EVENTS_PARTITIONS, timestamp=at_ms)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return first_ms


def _write(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "checkout-7f9c", "compression.type": "lz4"})
    for topic, key, value, headers, timestamp_ms in records(random.Random(7), int(time.time() * 1000)):
        producer.produce(topic, json.dumps(value), key, headers=headers, timestamp=timestamp_ms)
        producer.poll(0)
    producer.flush()


Written = tuple[str, str, dict[str, Any], list[tuple[str, bytes]], int]


def records(chance: random.Random, now_ms: int) -> Iterator[Written]:
    """Topic, key, value, headers and time of each record, the oldest first."""
    for number in range(RECORDS):
        at = now_ms - SPAN_MS + number * SPAN_MS // RECORDS
        trace = [("trace-id", f"{chance.getrandbits(64):016x}".encode()), ("source", b"checkout")]
        order = _order(chance, 48_000 + number)
        yield "orders", order["customer"], order, trace, at
        paid = {
            "order": order["order"],
            "method": chance.choice(("card", "paypal", "invoice")),
            "amount": order["total"],
        }
        yield "payments", order["order"], paid, trace, at + 900
        sku = order["items"][0]["sku"]
        yield "inventory.changes", sku, {"sku": sku, "change": -1, "left": chance.randrange(400)}, trace, at + 950
        for page in ("/", f"/p/{sku}", "/cart"):
            yield "clickstream", order["customer"], {"path": page, "ms": chance.randrange(30, 900)}, [], at
        if number % 2:
            yield "shipments", order["order"], {"order": order["order"], "carrier": "DHL", "state": "packed"}, trace, at
            mail = {"to": f"{order['customer']}@example.com", "template": "order-confirmed"}
            yield "emails.outgoing", order["order"], mail, trace, at + 1200
        if number % 3 == 0:
            yield "invoices", order["order"], {"order": order["order"], "gross": order["total"]}, trace, at + 2000


def _order(chance: random.Random, number: int) -> dict[str, Any]:
    items: list[dict[str, Any]] = [
        {"sku": chance.choice(GOODS), "count": chance.randrange(1, 4), "price": round(chance.uniform(4, 180), 2)}
        for _ in range(chance.randrange(1, 4))
    ]
    return {
        "order": f"A-{number}",
        "customer": f"{chance.choice(NAMES).lower()}-{chance.randrange(100, 999)}",
        "state": chance.choices(("paid", "open", "refused"), (80, 15, 5))[0],
        "total": round(sum(one["count"] * one["price"] for one in items), 2),
        "currency": chance.choice(("EUR", "EUR", "USD", "GBP")),
        "items": items,
    }


def _commit(bootstrap: str, group: str, topic: str, share: float) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    places = []
    for number in range(PARTITIONS[topic]):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
        places.append(TopicPartition(topic, number, low + int((high - low) * share)))
    end = time.monotonic() + SETTLE_S
    while True:
        try:
            consumer.commit(offsets=places, asynchronous=False)
            break
        except KafkaException as error:  # librdkafka does not look for a coordinator that has moved
            if error.args[0].name() not in MOVED or time.monotonic() > end:
                raise
            time.sleep(0.2)
    consumer.close()
