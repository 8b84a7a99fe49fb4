"""The picture of the demo: errors of each service over time, and the bursts, each with a link to its lines.

The lines are a page next to the picture. A picture of pixels has no links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.demo.pictures import Panel, legend, time_axis
from kpybroker.pipelines.demo.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERRORS = ("ERROR", "FATAL")
BURST = "#c0392b"


def panels(events: Sequence[Row], bursts: Sequence[Row], window_s: int, lines: str = "") -> list[Panel]:
    """All events by service, and errors by service with the bursts marked. `lines` is the page of their lines."""
    errors = errors_of(events)
    return [
        partial(draw, title=f"events in {window_s} seconds", events=events, bursts=[], window_s=window_s),
        partial(
            draw, title=f"errors in {window_s} seconds", events=errors, bursts=bursts, window_s=window_s, lines=lines
        ),
    ]


def errors_of(events: Sequence[Row]) -> list[Row]:
    """The events whose level is an error's."""
    return [row for row in events if row.get("level") in ERRORS]


def save_lines(picture: str | None, events: Sequence[Row], bursts: Sequence[Row]) -> str:
    """Write the page with the lines of each burst next to the picture, if there is one; its name, or an empty text."""
    if picture is None or not bursts:
        return ""
    file = Path(picture).with_name(f"{Path(picture).stem}-lines.html")
    parts = ["<!doctype html><meta charset=utf-8><title>Bursts of errors</title>"]
    for number, row in enumerate(bursts, 1):
        span = f"{row['burst_start']} to {row['burst_end']}"
        parts.append(f"<h2 id=burst-{number}>{escape(row['service'])}, {row['errors']} errors, {span}</h2>\n<pre>")
        parts += [escape(_line(event)) for event in of_burst(events, row)]
        parts.append("</pre>")
    file.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(f"The lines of the bursts are in {file}")
    return file.name


def of_burst(events: Sequence[Row], burst: Row) -> list[Row]:
    """The errors of its service, in its time and in order."""
    begin, end = (datetime.fromisoformat(burst[name]) for name in ("burst_start", "burst_end"))
    found = [row for row in errors_of(events) if row["service"] == burst["service"]]
    inside = [row for row in found if begin <= datetime.fromisoformat(row["event_time"]) < end]
    return sorted(inside, key=lambda row: str(row["event_time"]))


def _line(row: Row) -> str:
    place = f"{row['topic']}-{row['partition']}@{row['offset']}" if "offset" in row else "-"
    words = (row["event_time"], place, row.get("level", "-"), row.get("logger", "-"), row.get("message", ""))
    return " ".join(map(str, words))


def draw(axes: Axes, title: str, events: Sequence[Row], bursts: Sequence[Row], window_s: int, lines: str = "") -> None:
    """A line for each service; bursts as bands, whose texts lead to their lines."""
    counts = Counter((row["service"], _window(row["event_time"], window_s)) for row in events)
    windows = {number for _, number in counts}
    for service in sorted({service for service, _ in counts}):
        shown = range(min(windows), max(windows) + 1)
        times: list[Any] = [datetime.fromtimestamp(number * window_s, UTC) for number in shown]
        axes.plot(times, [counts[service, number] for number in shown], marker=".", label=service)
    for number, row in enumerate(bursts, 1):
        begin, end = _span(row, window_s)
        axes.axvspan(begin, end, color=BURST, alpha=0.15)
        text = axes.annotate(
            f"burst: {row['service']}, {row['errors']} errors", (begin, 0.9), xycoords=("data", "axes fraction")
        )
        if lines:
            text.set_url(f"{lines}#burst-{number}")
    axes.set_title(title)
    time_axis(axes)
    if counts:
        legend(axes)


def _window(time: str, window_s: int) -> int:
    return int(datetime.fromisoformat(time).timestamp() // window_s)


def _span(row: Row, window_s: int) -> tuple[Any, Any]:
    """Begin and end of a burst; a window is drawn at its start."""
    begin, end = (datetime.fromisoformat(row[name]) for name in ("burst_start", "burst_end"))
    return begin, end - timedelta(seconds=window_s)
