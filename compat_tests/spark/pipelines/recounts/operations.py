"""Values, rates and alerts of `operations` in plain Python, which shares no code with the pipeline."""

from __future__ import annotations

import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

Series = tuple[str, str]


def understood(line: str) -> dict[str, Any] | None:
    """The sample of a line; None for what belongs to the dead letters."""
    try:
        sample = json.loads(line)
        time = datetime.fromisoformat(sample["time"])
    except (ValueError, TypeError, KeyError):
        return None
    return {**sample, "ms": round(time.timestamp() * 1000)}


def values(lines: Iterable[str], window_ms: int) -> dict[tuple[int, str, str], dict[str, Any]]:
    """By start of the window, host and name."""
    samples: dict[tuple[int, str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        sample = understood(line)
        if sample is not None:
            samples[sample["ms"] // window_ms * window_ms, sample["host"], sample["name"]].append(sample)
    return {place: _summary(of_window) for place, of_window in samples.items()}


def _summary(samples: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(samples, key=lambda one: one["ms"])
    numbers = [one["value"] for one in ordered]
    value: float | None = statistics.fmean(numbers)
    if ordered[0]["kind"] == "counter":
        took_s = (ordered[-1]["ms"] - ordered[0]["ms"]) / 1000
        steps = itertools.pairwise(numbers)
        grown = sum(now - before if now >= before else now for before, now in steps)
        value = grown / took_s if took_s else None
    return {
        "kind": ordered[0]["kind"],
        "samples": len(numbers),
        "least": min(numbers),
        "most": max(numbers),
        "value": value,
    }


def alerts(
    found: dict[tuple[int, str, str], dict[str, Any]], window_ms: int, history: int, threshold: float
) -> dict[tuple[int, str, str], str]:
    """The state by start of the window, host and name."""
    series: dict[Series, dict[int, float]] = defaultdict(dict)
    for (start, host, name), row in found.items():
        if row["value"] is not None:
            series[host, name][start] = row["value"]
    out = {}
    for (host, name), by_start in series.items():
        for start in range(min(by_start), max(by_start) + (history + 1) * window_ms, window_ms):
            before = [by_start[at] for at in range(start - history * window_ms, start, window_ms) if at in by_start]
            state = _state(by_start.get(start), before, history, threshold)
            if state is not None:
                out[start, host, name] = state
    return out


def _state(value: float | None, before: list[float], history: int, threshold: float) -> str | None:
    if len(before) < 5:
        return None
    expected = statistics.fmean(before)
    deviation = max(statistics.pstdev(before), abs(expected) / 100)
    if value is None:
        return "silent" if len(before) == history else None
    if value - expected > threshold * deviation:
        return "high"
    return "low" if expected - value > threshold * deviation else None
