"""`Activity`: lines of a site, or of any log, to page counts, top pages and sessions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.activity.formats import FIELDS, FORMATS
from kpybroker.pipelines.activity.results import bots, funnels, page_counts, sessions, top_pages
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.event_time import after_watermark, events, is_heartbeat, time_of, usual
from kpybroker.pipelines.runtime.pipeline import Pipeline, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_VISITOR = "-"
BOTS = r"(?i)bot\b|bot/|crawl|spider|slurp|curl/|wget/|python-|go-http-client|headless|monitor"
"""Agents that say that they are no browser of a person."""


@dataclass(frozen=True, slots=True)
class ActivityOptions:
    """What the lines are, and what is computed; the help of the command line explains each."""

    format: str
    window: str = "10 minutes"
    slide: str | None = None
    watermark: str = "10 minutes"
    session_gap: str = "30 minutes"
    top: int = 10
    fields: Mapping[str, str] = field(default_factory=dict)
    """Keys of JSON that are not those of `formats.FIELDS`."""
    funnel: tuple[str, ...] = ()
    count_bots: bool = False


class Activity(Pipeline[ActivityOptions]):
    """The pipeline `activity`."""

    name = "activity"
    summary = "Counts per page in event-time windows, top pages, sessions: from lines of a site or of any log."
    keys = {
        "page_counts": "page",
        "top_pages": "window_start",
        "sessions": "visitor",
        "bots": "agent",
        "funnels": "page",
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Formats, windows and sessions."""
        group = parser.add_argument_group("lines and results")
        group.add_argument("--format", required=True, choices=list(FORMATS), help="of the lines")
        known = ", ".join(f"{name}={key}" for name, key in FIELDS.items())
        group.add_argument(
            "--field",
            action="append",
            default=[],
            type=is_a.pair,
            dest="fields",
            metavar="NAME=KEY",
            help=f"key of a JSON event with --format activity (default: {known})",
        )
        group.add_argument("--window", default="10 minutes", type=is_a.duration, help="of the counts (10 minutes)")
        group.add_argument("--slide", type=is_a.duration, help="distance between windows (default: the window itself)")
        group.add_argument("--watermark", default="10 minutes", type=is_a.duration, help="how late an event may be")
        group.add_argument("--session-gap", default="30 minutes", type=is_a.duration, help="silence between sessions")
        group.add_argument(
            "--funnel",
            default=(),
            type=_funnel,
            metavar="PAGE,PAGE",
            help="steps to count sessions at, in order; a page that ends with * is any that begins so",
        )
        group.add_argument(
            "--count-bots", action="store_true", help="count agents that say that they are bots with the visitors"
        )
        group.add_argument("--top", default=10, type=is_a.positive, metavar="N", help="pages a window (default 10)")

    def own(self, values: Mapping[str, Any]) -> ActivityOptions:
        """See `Pipeline`."""
        names = ("format", "window", "slide", "watermark", "session_gap", "top", "funnel", "count_bots")
        return ActivityOptions(**{name: values[name] for name in names}, fields=dict(values["fields"]))

    def contradictions(self, own: ActivityOptions) -> Sequence[tuple[str, str]]:
        """See `Pipeline`."""
        found = []
        if unknown := sorted(set(own.fields) - set(FIELDS)):
            found.append((f"An event has no '{unknown[0]}'.", f"--field names one of {', '.join(FIELDS)}."))
        if own.fields and own.format != "activity":
            found.append(("--field is for --format activity.", "Leave it out."))
        if own.slide is not None and is_a.seconds(own.slide) > is_a.seconds(own.window):
            found.append(("--slide is longer than --window: events between windows would be lost.", "Make it shorter."))
        return found

    def kept(self, own: ActivityOptions) -> Mapping[str, object]:
        """See `Pipeline`."""
        fields = {f"field {name}": key for name, key in own.fields.items()}
        return {
            "format": own.format,
            "window": own.window,
            "slide": own.slide,
            "watermark": own.watermark,
            "session-gap": own.session_gap,
            "funnel": ",".join(own.funnel),
            "count-bots": own.count_bots,
            **fields,
        }

    def parse(self, records: DataFrame, own: ActivityOptions) -> DataFrame:
        """A row: `event_time`, `page`, `visitor`, `action`, and what every pipeline has."""
        from pyspark.sql import functions as F

        value = records["value"].cast("string")
        heartbeat = is_heartbeat(records)
        columns = FORMATS[own.format](value, {**FIELDS, **own.fields})
        time = usual(columns.event_time)
        understood = time.isNotNull() & columns.page.isNotNull()
        beat = time_of(value)
        return records.select(
            *("topic", "partition", "offset", "key", "value"),
            F.when(heartbeat, beat).when(understood, time).alias("event_time"),
            F.when(~heartbeat & understood, columns.page).alias("page"),
            F.coalesce(columns.visitor, F.lit(NO_VISITOR)).alias("visitor"),
            columns.action.alias("action"),
            columns.agent.alias("agent"),
            heartbeat.alias("heartbeat"),
            F.when(heartbeat & beat.isNull(), F.lit("the value of a heartbeat is not a time"))
            .when(~heartbeat & ~understood, F.lit(f"not a line of format {own.format}"))
            .alias("reason"),
        )

    def queries(self, rows: DataFrame, own: ActivityOptions) -> Sequence[Query]:
        """Pages, whose batches have whole windows; sessions; and what bots and funnels have, where they are counted."""
        from pyspark.sql import functions as F

        everybody = events(rows, own.watermark)
        bot = F.coalesce(F.col("agent").rlike(BOTS), F.lit(False))
        people = everybody if own.count_bots else everybody.where(~bot)
        pages, visits = page_counts(people, own.window, own.slide), sessions(people, own.session_gap, own.funnel)
        found = [
            Query("pages", pages, lambda counts: {"page_counts": counts, "top_pages": top_pages(counts, own.top)}),
            Query("sessions", visits.drop("session_window"), lambda batch: {"sessions": batch}),
        ]
        if not own.count_bots:
            machines = everybody.where(after_watermark(bot))
            found.append(Query("bots", bots(machines, own.window), lambda batch: {"bots": batch}))
        if own.funnel:
            steps = funnels(visits, own.window, own.funnel)
            found.append(Query("funnels", steps, lambda batch: {"funnels": batch}))
        return found


def _funnel(text: str) -> tuple[str, ...]:
    steps = tuple(one.strip() for one in text.split(","))
    if len(steps) < 2 or not all(steps):
        raise argparse.ArgumentTypeError(f"'{text}' is no funnel: write two pages or more, with commas between them")
    return steps


ACTIVITY = Activity()
