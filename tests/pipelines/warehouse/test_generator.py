"""Lines of orders: the same for the same seed, some late, some broken."""

from __future__ import annotations

import json
from collections import Counter

from kpybroker.pipelines.warehouse.generator import BROKEN, LATE, NO_LINES, START, lines


def test_the_same_seed_makes_the_same_lines_in_the_order_in_which_they_are_sent() -> None:
    found = list(lines(3, 500))
    assert found == list(lines(3, 500))
    assert found != list(lines(4, 500))
    stamps = [one.timestamp_ms for one in found]
    assert stamps == sorted(stamps)
    assert stamps[0] >= START.timestamp() * 1000


def test_about_as_many_are_broken_and_late_as_it_says() -> None:
    found = list(lines(3, 20_000))
    broken = [one for one in found if one.value in NO_LINES]
    late = [one for one in found if one.value not in NO_LINES and _hours_late(one.timestamp_ms, one.value) > 0.5]
    assert 0.5 < len(broken) / (BROKEN * len(found)) < 2
    assert 0.8 < len(late) / (LATE * len(found)) < 1.2
    keys = Counter(one.key for one in found)
    assert keys["customer-0000"] < max(keys.values())


def _hours_late(timestamp_ms: int, value: bytes) -> float:
    from datetime import datetime

    return (timestamp_ms / 1000 - datetime.fromisoformat(json.loads(value)["time"]).timestamp()) / 3600
