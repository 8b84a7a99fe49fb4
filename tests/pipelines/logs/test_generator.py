"""The logs of the tests, without Spark."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from tests.pipelines.logs.generator import BROKEN, FAILING, NOISY, ROUTE, Workload, records

PLAN = Workload(seed=1, start=datetime(2024, 3, 5, tzinfo=UTC))


def test_a_seed_makes_the_same_records_and_another_one_others() -> None:
    assert list(records(PLAN)) == list(records(PLAN))
    assert list(records(PLAN)) != list(records(Workload(seed=2, start=PLAN.start)))


def test_every_trouble_is_in_the_records() -> None:
    given = list(records(PLAN))
    assert {record.value for record in given} & set(BROKEN)
    keys = Counter(record.key.partition(":")[2] for record in given)
    assert keys.keys() >= {FAILING, NOISY, *(service for service, _, _ in ROUTE)}
    assert keys["shop"] > keys["payment"] - 100 > keys["shipping"], "the load is not skewed"
    assert any(b"Traceback" in record.value for record in given)
    ordered = [record.value[:23] for record in given if b" - pay.charge - " in record.value]
    assert ordered != sorted(ordered), "none is late"
