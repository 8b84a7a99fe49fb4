"""The picture of the demo: hours with their corrections, and files before and after compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kpybroker.pipelines.demo.pictures import Panel, legend
from kpybroker.pipelines.warehouse.compaction import Compacted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def panels(
    hours: Sequence[tuple[datetime, int, int, int]], before: Mapping[datetime, int], compacted: Compacted
) -> list[Panel]:
    """`hours`: start, lines, amount, late; `before`: amounts when the job was killed."""
    return [lambda axes: amounts(axes, hours, before), lambda axes: files(axes, compacted)]


def amounts(axes: Axes, hours: Sequence[tuple[datetime, int, int, int]], before: Mapping[datetime, int]) -> None:
    """What each hour had before the kill, what corrected it later, and hours that came later."""
    names = [f"{hour:%H}" for hour, *_ in hours]
    places = range(len(hours))
    first = [before.get(hour, 0) / 100 for hour, *_ in hours]
    late = [(amount - before[hour]) / 100 if hour in before else 0.0 for hour, _, amount, _ in hours]
    new = [0.0 if hour in before else amount / 100 for hour, _, amount, _ in hours]
    axes.bar(places, first, label="before the kill", color="#5b7a99")
    axes.bar(places, late, bottom=first, label="corrected after it", color="#c0392b")
    axes.bar(places, new, label="new after it", color="#d8b365")
    axes.set_xticks(places[::2], names[::2])
    axes.set_title("Amount of each hour")
    axes.set_xlabel("hour, UTC")
    legend(axes)


def files(axes: Axes, compacted: Compacted) -> None:
    """Files with facts."""
    axes.barh(["after", "before"], [compacted.after, compacted.before], color=["#5b7a99", "#d8b365"])
    for place, count in enumerate((compacted.after, compacted.before)):
        axes.text(count, place, f" {count}", va="center")
    axes.set_title(f"Files of {compacted.hours} hours, before and after compaction")
