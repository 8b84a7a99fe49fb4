"""The picture of the demo: errors of each service over time, and the bursts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.demo.pictures import Panel, legend, time_axis
from kpybroker.pipelines.demo.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERRORS = ("ERROR", "FATAL")
BURST = "#c0392b"


def panels(events: Sequence[Row], bursts: Sequence[Row], window_s: int) -> list[Panel]:
    """All events by service, and errors by service with the bursts marked."""
    errors = [row for row in events if row.get("level") in ERRORS]
    return [
        partial(draw, title=f"events in {window_s} seconds", events=events, bursts=[], window_s=window_s),
        partial(draw, title=f"errors in {window_s} seconds", events=errors, bursts=bursts, window_s=window_s),
    ]


def draw(axes: Axes, title: str, events: Sequence[Row], bursts: Sequence[Row], window_s: int) -> None:
    """A line for each service; bursts as bands."""
    counts = Counter((row["service"], _window(row["event_time"], window_s)) for row in events)
    windows = {number for _, number in counts}
    for service in sorted({service for service, _ in counts}):
        shown = range(min(windows), max(windows) + 1)
        times: list[Any] = [datetime.fromtimestamp(number * window_s, UTC) for number in shown]
        axes.plot(times, [counts[service, number] for number in shown], marker=".", label=service)
    for row in bursts:
        begin, end = _span(row, window_s)
        axes.axvspan(begin, end, color=BURST, alpha=0.15)
        axes.annotate(
            f"burst: {row['service']}, {row['errors']} errors", (begin, 0.9), xycoords=("data", "axes fraction")
        )
    axes.set_title(title)
    time_axis(axes)
    legend(axes)


def _window(time: str, window_s: int) -> int:
    return int(datetime.fromisoformat(time).timestamp() // window_s)


def _span(row: Row, window_s: int) -> tuple[Any, Any]:
    """Begin and end of a burst; a window is drawn at its start."""
    begin, end = (datetime.fromisoformat(row[name]) for name in ("burst_start", "burst_end"))
    return begin, end - timedelta(seconds=window_s)
