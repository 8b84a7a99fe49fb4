"""What `warehouse` must find, counted in plain Python from what was sent. It shares no code with the pipeline."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

TEXTS = ("id", "customer", "country", "product")


@dataclass(slots=True)
class Expected:
    """`facts` by id; `hours`: start -> lines, quantity, amount, late; how many lines are broken."""

    facts: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    hours: dict[datetime, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))
    broken: int = 0


def recount(sent: Iterable[tuple[int, bytes]], late_after: timedelta = timedelta(minutes=10)) -> Expected:
    """Of records: timestamp in milliseconds, and value."""
    found = Expected()
    for timestamp_ms, value in sent:
        arrived = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
        line = _line(value)
        time = None if line is None else _time(line.get("time"))
        if line is None or time is None or time > arrived + timedelta(hours=1) or not _is_whole(line):
            found.broken += 1
            continue
        hour = time.replace(minute=0, second=0, microsecond=0)
        amount = int(line["quantity"]) * int(line["price"])
        found.facts[line["id"]] = (time, amount)
        sums = found.hours[hour]
        sums[0] += 1
        sums[1] += int(line["quantity"])
        sums[2] += amount
        sums[3] += arrived >= hour + timedelta(hours=1) + late_after
    return found


def _line(value: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(value)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _is_whole(line: dict[str, Any]) -> bool:
    return all(isinstance(line.get(name), str) for name in TEXTS) and all(
        isinstance(line.get(name), int) for name in ("quantity", "price")
    )
