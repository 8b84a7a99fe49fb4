"""The loop-stall gauge: what it counts, and the line that it says about it."""

from __future__ import annotations

from kpybroker.broker.loop.stall import LoopStallGauge


def gauge_after(*held_s: float) -> LoopStallGauge:
    """A gauge that has seen turns of these lengths."""
    readings = iter([reading for length in held_s for reading in (1.0, 1.0 + length)])
    gauge = LoopStallGauge(lambda: next(readings))
    for _ in held_s:
        gauge.after_io_wait(0)
        gauge.before_io_wait(0)
    return gauge


def test_a_percentile_is_the_bound_of_its_bucket() -> None:
    gauge = gauge_after(*[0.0001] * 90, *[0.004] * 9, 0.03)
    assert gauge.slices == 100
    assert gauge.percentile_ms(0.5) == 1
    assert gauge.percentile_ms(0.99) == 5


def test_a_percentile_is_never_above_the_longest_time_slice() -> None:
    assert round(gauge_after(0.0001, 0.03).percentile_ms(0.999), 3) == 30
    assert round(gauge_after(0.0001, 3.0).percentile_ms(0.999), 3) == 3000


def test_without_any_time_slice_there_is_a_line_too() -> None:
    assert gauge_after().describe() == "Loop stall: 0 time slices, p99.9 1.0 ms, longest 0.0 ms"


def test_after_a_reset_only_what_follows_counts() -> None:
    gauge = gauge_after(0.0001, 0.03)
    gauge.reset()
    assert gauge.describe() == gauge_after().describe()
    assert sum(gauge.counts) == 0
