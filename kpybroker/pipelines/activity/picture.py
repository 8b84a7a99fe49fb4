"""The picture of the demo: the events of each window by page, sessions by hour and by length, and the funnel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kpybroker.pipelines.demo.pictures import Panel, legend
from kpybroker.pipelines.demo.tables import Row, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGES_MAX, WINDOWS_MAX, SESSIONS_MAX = 6, 24, 500
HOURS = 24
OTHERS = "all others"


def panels(results: Mapping[str, Sequence[Row]]) -> list[Panel]:
    """Of `results` by name, as `tables.tables` takes them."""
    drawn: list[Panel] = [
        lambda axes: windows(axes, results["page-counts"]),
        lambda axes: hours(axes, results["sessions"]),
        lambda axes: sessions(axes, results["sessions"]),
    ]
    return [*drawn, lambda axes: funnel(axes, results["funnels"])] if results.get("funnels") else drawn


def windows(axes: Axes, counts: Sequence[Row]) -> None:
    """A bar for each of the last windows with events, divided by the pages with the most."""
    pages: Counter[str] = Counter()
    by_window: dict[str, Counter[str]] = defaultdict(Counter)
    for row in counts:
        pages[row["page"]] += row["events"]
        by_window[row["window_start"]][row["page"]] += row["events"]
    shown = sorted(by_window)[-WINDOWS_MAX:]
    named = [page for page, _ in pages.most_common(PAGES_MAX)]
    below = [0] * len(shown)
    for page in [*named, OTHERS]:
        heights = [_events(by_window[start], page, named) for start in shown]
        axes.bar([_label(start) for start in shown], heights, bottom=below, label=short(page))
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_title("Events of each window, by page")
    axes.tick_params("x", labelrotation=60)
    legend(axes)


def _events(of_window: Counter[str], page: str, named: Sequence[str]) -> int:
    if page == OTHERS:
        return sum(events for other, events in of_window.items() if other not in named)
    return of_window[page]


def _label(start: str) -> str:
    return start[:10] if start[11:19] == "00:00:00" else start[5:16].replace("T", " ")


def hours(axes: Axes, found: Sequence[Row]) -> None:
    """A bar for each hour of the day, of the sessions that began in it."""
    begun = Counter(datetime.fromisoformat(row["session_start"]).hour for row in found)
    axes.bar(range(HOURS), [begun[hour] for hour in range(HOURS)])
    axes.set_title("Sessions by the hour in which they began, UTC")
    axes.set_xticks(range(0, HOURS, 3), [f"{hour:02d}:00" for hour in range(0, HOURS, 3)])
    axes.set_ylabel("sessions")


def funnel(axes: Axes, found: Sequence[Row]) -> None:
    """A bar for each step, from the first down: how many sessions came to it, and what part that is of the first."""
    reached: Counter[tuple[int, str]] = Counter()
    for row in found:
        reached[row["step"], row["page"]] += row["sessions"]
    steps = sorted(reached)
    most = reached[steps[0]]
    bars = axes.barh([f"{step}. {short(page)}" for step, page in steps], [reached[step] for step in steps])
    axes.bar_label(bars, [f"{reached[step]}, {reached[step] / most:.0%}" for step in steps], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_title("Sessions that came to each step of the funnel")


def sessions(axes: Axes, found: Sequence[Row]) -> None:
    """A point for each of the longest sessions: how long it was, and how many events it had."""
    longest = sorted(found, key=lambda row: (-row["events"], row["session_start"]))[:SESSIONS_MAX]
    minutes = [max(_seconds(row), 1) / 60 for row in longest]
    axes.scatter(minutes, [row["events"] for row in longest], s=14, alpha=0.6)
    if longest:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_title(f"Sessions: {len(found)}")
    axes.set_xlabel("minutes from the first event to the last, one second at least")
    axes.set_ylabel("events")


def _seconds(row: Row) -> float:
    start, end = (datetime.fromisoformat(row[name]) for name in ("session_start", "session_end"))
    return (end - start).total_seconds()
