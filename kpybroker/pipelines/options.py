"""The command line of the job. Every wrong argument is reported here, before Spark starts, which takes seconds.

Durations are written as Spark writes them (`90 seconds`, `10 minutes`, `1 hour`); all are event time.
"""

from __future__ import annotations

import argparse
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kpybroker.pipelines.errors import PipelineError

RESULTS = ("page_counts", "top_pages", "sessions")
FORMAT_NAMES = ("access", "activity", "dpkg")
ACTIVITY_FIELDS = {"time": "timestamp", "page": "page", "visitor": "user", "action": "action"}
_UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DURATION = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Run(Enum):
    """How long a run lasts, and which windows it closes."""

    AVAILABLE_NOW = "available-now"  # existing records, then stop; open windows wait in the checkpoint for the next run
    FOLLOW = "follow"  # until it is stopped
    WHOLE = "whole"  # existing records as one bounded set, no checkpoint: every window is closed, nothing is late


@dataclass(frozen=True, slots=True)
class Options:
    """What to read, what to compute, where to write it and how to run. `parse` makes one; its help explains each."""

    bootstrap_servers: str
    topic: str
    format: str
    run: Run = Run.AVAILABLE_NOW
    checkpoint: str | None = None
    to_topics: str | None = None
    to_parquet: str | None = None
    window: str = "10 minutes"
    slide: str | None = None
    watermark: str = "10 minutes"
    session_gap: str = "30 minutes"
    top: int = 10
    timezone: str = "UTC"
    fields: dict[str, str] = field(default_factory=lambda: dict(ACTIVITY_FIELDS))
    starting_offsets: str = "earliest"
    max_offsets: int | None = None
    every: str = "10 seconds"
    allow_data_loss: bool = False
    kafka: dict[str, str] = field(default_factory=dict)
    master: str = "local[2]"
    jars: str | None = None
    packages: str | None = None

    def result_topic(self, result: str) -> str:
        """The topic for a result, one of `RESULTS`."""
        return f"{self.to_topics}-{result.replace('_', '-')}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise PipelineError(f"{message[:1].upper()}{message[1:]}.", f"{self.prog} --help lists all options.", 2)


def _duration(text: str) -> str:
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a duration: write '90 seconds', '10 minutes', '1 hour'")
    return text.strip()


def seconds(duration: str) -> int:
    """The length of a duration that `parse` has accepted."""
    found = _DURATION.fullmatch(duration)
    assert found is not None, duration
    return int(found[1]) * _UNIT_SECONDS[found[2]]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return int(text)


def _topic(text: str) -> str:
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise argparse.ArgumentTypeError(f"'{text}' is not a topic name: letters, digits, '.', '_', '-', at most 249")
    return text


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def _timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time zone, such as UTC or Europe/Oslo") from None
    return text


def _bootstrap(text: str) -> str:
    for one in text.split(","):
        host, colon, port = one.strip().rpartition(":")
        if not host or not colon or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"'{one}' is not HOST:PORT")
    return text


def parser() -> argparse.ArgumentParser:
    """The command line. It raises `PipelineError` for a wrong argument."""
    made = _Parser(
        prog="python -m kpybroker.pipelines",
        description="Counts per page in event-time windows, top pages, sessions: from a topic to topics and Parquet.",
        allow_abbrev=False,
    )
    _source(made.add_argument_group("input"))
    _sinks(made.add_argument_group("output (at least one)"))
    _results(made.add_argument_group("results"))
    _running(made.add_argument_group("running"))
    return made


def _source(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--bootstrap-servers", required=True, type=_bootstrap, metavar="HOST:PORT[,...]")
    group.add_argument("--topic", required=True, type=_topic)
    group.add_argument(
        "--format",
        required=True,
        choices=FORMAT_NAMES,
        help="access: common or combined log lines; activity: JSON events; dpkg: the Debian package manager's log",
    )
    group.add_argument(
        "--field",
        dest="fields",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=KEY",
        help="activity: the JSON key of time, page, visitor or action "
        f"(default {', '.join(f'{k}={v}' for k, v in ACTIVITY_FIELDS.items())})",
    )
    group.add_argument("--timezone", default="UTC", type=_timezone, help="of times without one (default UTC)")
    group.add_argument("--starting-offsets", default="earliest", choices=("earliest", "latest"))
    group.add_argument("--max-offsets", type=_positive, metavar="N", help="at most N records a batch")
    group.add_argument("--allow-data-loss", action="store_true", help="continue where records are gone")
    group.add_argument(
        "--kafka",
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="a client setting for reading and writing, such as security.protocol=SSL",
    )


def _sinks(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--to-topics", type=_topic, metavar="PREFIX", help="PREFIX-page-counts and so on, as JSON")
    group.add_argument("--to-parquet", metavar="DIR", help="DIR/page_counts and so on; a directory or a URI")


def _results(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--window", default="10 minutes", type=_duration, help="of the counts (default 10 minutes)")
    group.add_argument("--slide", type=_duration, help="distance between windows (default: the window itself)")
    group.add_argument("--watermark", default="10 minutes", type=_duration, help="how late an event may be")
    group.add_argument("--session-gap", default="30 minutes", type=_duration, help="silence that ends a session")
    group.add_argument("--top", default=10, type=_positive, metavar="N", help="pages a window (default 10)")


def _running(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--run",
        default=Run.AVAILABLE_NOW.value,
        choices=[run.value for run in Run],
        help="available-now: the records that exist, then stop, open windows wait for the next run (default); "
        "follow: until stopped; whole: the records that exist as one bounded set, all windows closed",
    )
    group.add_argument("--checkpoint", metavar="DIR", help="directory for the position and open windows of a stream")
    group.add_argument("--every", default="10 seconds", type=_duration, help="follow: time between batches")
    group.add_argument("--master", default="local[2]", help="the Spark to run on (default local[2])")
    group.add_argument("--jars", metavar="DIR|A.jar,B.jar", help="Spark's Kafka connector as files")
    group.add_argument("--packages", metavar="GROUP:NAME:VERSION", help="or as Maven coordinates (the default)")


def parse(arguments: Sequence[str]) -> Options:
    """The options. Raises `PipelineError` with exit code 2."""
    values = vars(parser().parse_args(arguments))
    values["run"] = Run(values["run"])
    values["kafka"] = dict(values["kafka"])
    named = dict(values["fields"])
    options = Options(**{**values, "fields": {**ACTIVITY_FIELDS, **named}})
    for cause, fix in _contradictions(options, named):
        raise PipelineError(cause, fix, 2)
    return options


def _contradictions(options: Options, named: dict[str, str]) -> list[tuple[str, str]]:
    found = []
    if options.to_topics is None and options.to_parquet is None:
        found.append(("There is no place for the results.", "Give --to-topics PREFIX, --to-parquet DIR, or both."))
    if options.run is not Run.WHOLE and options.checkpoint is None:
        found.append(("A stream needs a place for its position.", "Give --checkpoint DIR, or --run whole."))
    if options.run is Run.WHOLE and options.checkpoint is not None:
        found.append(("--run whole keeps no position.", "Leave out --checkpoint."))
    if options.run is Run.WHOLE and options.starting_offsets == "latest":
        found.append(("--run whole from the latest offset has nothing to read.", "Leave out --starting-offsets."))
    if unknown := sorted(set(named) - set(ACTIVITY_FIELDS)):
        found.append((f"An event has no '{unknown[0]}'.", f"--field names one of {', '.join(ACTIVITY_FIELDS)}."))
    if named and options.format != "activity":
        found.append(("--field is for --format activity.", "Leave it out."))
    if options.slide is not None and seconds(options.slide) > seconds(options.window):
        found.append(("--slide is longer than --window: events between windows would be lost.", "Make it shorter."))
    if options.jars is not None and options.packages is not None:
        found.append(("Both --jars and --packages name the connector.", "Leave one out."))
    if options.to_topics is not None and options.topic in map(options.result_topic, RESULTS):
        found.append(("The results would be written to the topic that is read.", "Choose another --to-topics PREFIX."))
    return found


def check_reachable(bootstrap_servers: str, timeout_s: float = 5.0) -> None:
    """Raise `PipelineError` if no broker of the list accepts a connection; Spark's clients would retry for minutes."""
    reasons = []
    for one in bootstrap_servers.split(","):
        host, _, port = one.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
        except OSError as error:
            reasons.append(f"{one}: {error.strerror or error}")
        else:
            return
    raise PipelineError(f"No broker responds ({'; '.join(reasons)}).", "Start it, or correct --bootstrap-servers.")
