"""The picture of the demo: the series with the most alerts, each with its alerts marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.demo.pictures import Panel, legend, time_axis
from kpybroker.pipelines.demo.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIES_MAX = 4
ALERT = "#c0392b"


def panels(values: Sequence[Row], alerts: Sequence[Row]) -> list[Panel]:
    """One for each series that is shown: those with the most alerts, then others by name, and those that are constant
    last."""
    count = Counter((row["host"], row["name"]) for row in alerts)
    known = sorted({(row["host"], row["name"]) for row in values if "value" in row})

    def of(rows: Sequence[Row], series: tuple[str, str]) -> list[Row]:
        found = [row for row in rows if (row["host"], row["name"]) == series and "value" in row]
        return sorted(found, key=lambda row: str(row["window_start"]))

    def order(series: tuple[str, str]) -> tuple[int, bool]:
        return -count[series], len({row["value"] for row in of(values, series)}) == 1

    chosen = sorted(known, key=order)[:SERIES_MAX]
    return [partial(draw, series=series, values=of(values, series), alerts=of(alerts, series)) for series in chosen]


def draw(axes: Axes, series: tuple[str, str], values: Sequence[Row], alerts: Sequence[Row]) -> None:
    """The values of one series over time; alerts as points, with what was usual before as a line up to them."""
    axes.plot(_starts(values), [row["value"] for row in values], color="#5b7a99", marker=".")
    times = _starts(alerts)
    axes.vlines(times, [row["expected"] for row in alerts], [row["value"] for row in alerts], colors=ALERT, alpha=0.5)
    axes.scatter(times, [row["value"] for row in alerts], color=ALERT, zorder=3, label="alert, and the usual value")
    host, name = series
    unit = ", a second" if any(row["kind"] == "counter" for row in values) else ""
    axes.set_title(f"{host}: {name}{unit}")
    time_axis(axes)
    if alerts:
        legend(axes)


def _starts(rows: Sequence[Row]) -> list[Any]:
    return [datetime.fromisoformat(row["window_start"]) for row in rows]
