"""Lines of orders as shops send them: by day more than by night, some hours late, some broken.

The same seed makes the same lines, but for the day: a broker keeps records for a week by their own time. Customers and
products are used unevenly, as real ones are.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

HOURS = 24
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS + 12)
LATE, BROKEN = 0.03, 0.005
LATE_HOURS_MAX = 9
COUNTRIES = ("NO", "DE", "PT", "JP", "BR")
WEIGHTS = (50, 25, 12, 8, 5)
BY_HOUR = (2, 1, 1, 1, 1, 2, 4, 7, 10, 12, 13, 13, 14, 13, 12, 12, 12, 13, 15, 17, 16, 12, 8, 4)
"""How many lines an hour of the day has, next to the others."""
NO_LINES = (
    b"",
    b"{",
    b"order 17",
    b'{"id": "x", "customer": "c", "country": "NO", "product": "p", "quantity": 1, "price": 1}',
    b'{"id": "x", "time": "2024-03-05T08:00:00Z", "customer": "c", "country": "NO", "product": "p", "quantity": 1.5}',
    b'{"id": "x", "time": "-0500-01-01T00:00:00Z", "customer": "c", "country": "NO", "product": "p", "quantity": 1, '
    b'"price": 1}',
    b'{"id": "x", "time": "2999-01-01T00:00:00Z", "customer": "c", "country": "NO", "product": "p", "quantity": 1, '
    b'"price": 1}',
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One record: when it was sent, its key and its value."""

    timestamp_ms: int
    key: str
    value: bytes


def lines(seed: int, count: int, hours: int = HOURS) -> Iterator[Sent]:
    """`count` records in the order in which they are sent, over so many hours."""
    dice = random.Random(seed)
    weights = [BY_HOUR[(START.hour + hour) % 24] for hour in range(hours)]
    chosen = dice.choices(range(hours), weights, k=count)
    for number, seconds in enumerate(sorted(hour * 3600 + dice.random() * 3600 for hour in chosen)):
        sent = START + timedelta(seconds=seconds)
        happened = sent - timedelta(seconds=dice.random() * 20)
        if dice.random() < LATE:
            happened -= timedelta(hours=dice.randint(1, LATE_HOURS_MAX))
        customer = f"customer-{min(dice.randrange(5000), dice.randrange(5000)):04d}"
        line = {
            "id": f"{seed}-{number}",
            "time": happened.isoformat(timespec="milliseconds"),
            "customer": customer,
            "country": dice.choices(COUNTRIES, WEIGHTS)[0],
            "product": f"product-{min(dice.randrange(300) for _ in range(3)):03d}",
            "quantity": dice.choice((1, 1, 1, 2, 3)),
            "price": dice.randrange(99, 20_000),
        }
        is_broken = dice.random() < BROKEN
        value = dice.choice(NO_LINES) if is_broken else json.dumps(line).encode()
        yield Sent(round(sent.timestamp() * 1000), customer, value)
