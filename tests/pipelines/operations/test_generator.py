"""The samples of the demo and of the tests, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

from kpybroker.pipelines.demo.tables import sparkline
from kpybroker.pipelines.operations.source import of_machine
from tests.pipelines.operations.generator import BROKEN, Workload, lines

PLAN = Workload(seed=1, start=datetime(2024, 3, 5, tzinfo=UTC))


def test_a_seed_makes_the_same_lines_and_another_one_others() -> None:
    assert list(lines(PLAN)) == list(lines(PLAN))
    other = Workload(seed=2, start=PLAN.start)
    assert list(lines(PLAN)) != list(lines(other))


def test_every_trouble_is_in_the_lines() -> None:
    given = list(lines(PLAN))
    assert set(given) & set(BROKEN)
    samples = [json.loads(line) for line in given if line not in BROKEN]
    times = [sample["time"] for sample in samples]
    assert times != sorted(times), "none is late"
    by_series: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for sample in samples:
        by_series.setdefault((sample["host"], sample["name"]), []).append((sample["time"], sample["value"]))
    assert len(by_series) == 3 * 5
    counts = Counter({series: len(values) for series, values in by_series.items()})
    assert counts["host-1", "disk.used.percent"] == counts["host-0", "disk.used.percent"] - 12
    numbers = [value for _, value in sorted(by_series["host-0", "cpu.used.percent"])]
    assert max(numbers) > 2 * sorted(numbers)[len(numbers) // 2]
    assert any(
        now < before
        for values in by_series.values()
        for (_, before), (_, now) in zip(sorted(values), sorted(values)[1:], strict=False)
    ), "no counter is started again"


def test_this_machine_has_samples() -> None:
    found = {name: (kind, value) for name, kind, value in of_machine()}
    assert found["disk.free.bytes"][0] == "gauge"
    assert all(value >= 0 for _, value in found.values())


def test_a_line_of_bars() -> None:
    assert sparkline([0, 7, 3.5]) == "▁█▅"
    assert sparkline([5, 5]) == "▁▁"
    assert sparkline([]) == ""
