"""The options that all pipelines have. Every wrong argument is reported here, before Spark starts, which takes seconds.

Durations are written as Spark writes them (`90 seconds`, `10 minutes`, `1 hour`); all but `--every` are event time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Generic, TypeVar

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.pipeline import Pipeline
from kpybroker.pipelines.runtime.start import named_topics
from kpybroker.pipelines.sinks.table_output import SCHEME, check_address

Own = TypeVar("Own")
TOPICS = "topics:"


class Run(Enum):
    """How long a run lasts, and which windows it closes."""

    AVAILABLE_NOW = "available-now"  # existing records, then stop; open windows wait in the checkpoint for the next run
    FOLLOW = "follow"  # until it is stopped
    WHOLE = "whole"  # existing records as one bounded set, no checkpoint: every window is closed, nothing is late


@dataclass(frozen=True, slots=True)
class Options(Generic[Own]):
    """What to read, where to write it and how to run; `own` are the options of the pipeline. `parse` makes one."""

    bootstrap_servers: str
    input: tuple[str, ...]
    own: Own
    run: Run = Run.AVAILABLE_NOW
    checkpoint: str | None = None
    output: tuple[str, ...] = ()
    timezone: str = "UTC"
    starting_offsets: str = "earliest"
    until: str | None = None
    max_offsets: int | None = None
    min_partitions: int | None = None
    every: str = "10 seconds"
    allow_data_loss: bool = False
    kafka: dict[str, str] = field(default_factory=dict)
    master: str = "local[2]"
    jars: str | None = None
    packages: str | None = None

    @property
    def prefixes(self) -> list[str]:
        """Of the topics of results."""
        return [one.removeprefix(TOPICS) for one in self.output if one.startswith(TOPICS)]

    @property
    def directories(self) -> list[str]:
        """For Parquet: paths or URIs."""
        return [one.rstrip("/") for one in self.output if not one.startswith((TOPICS, SCHEME))]

    @property
    def databases(self) -> list[str]:
        """Addresses, for tables."""
        return [one for one in self.output if one.startswith(SCHEME)]


def result_topic(prefix: str, result: str) -> str:
    """The topic of a result: `site`, `page_counts` give `site-page-counts`."""
    return f"{prefix}-{result.replace('_', '-')}"


def _output(text: str) -> str:
    if text.startswith(TOPICS):
        is_a.topic(text.removeprefix(TOPICS))
    elif text.startswith(SCHEME):
        if wrong := check_address(text):
            raise argparse.ArgumentTypeError(f"this is no address of a database: {wrong}")
    elif not text:
        raise argparse.ArgumentTypeError("'' is no output: write topics:PREFIX, or a directory")
    return text


def parser(pipeline: Pipeline[Any]) -> argparse.ArgumentParser:
    """The command line of a pipeline."""
    made = is_a.Parser(
        prog=f"python -m kpybroker.pipelines run {pipeline.name}", description=pipeline.summary, allow_abbrev=False
    )
    _input_and_output(made.add_argument_group("input and output"), pipeline)
    pipeline.add_arguments(made)
    _running(made.add_argument_group("running"))
    return made


def _input_and_output(group: argparse._ArgumentGroup, pipeline: Pipeline[Any]) -> None:
    results = ", ".join(pipeline.keys)
    group.add_argument("--bootstrap-servers", required=True, type=is_a.bootstrap_servers, metavar="HOST:PORT")
    group.add_argument("--input", required=True, type=is_a.topics, metavar="TOPIC[,TOPIC]", help="topics to read")
    group.add_argument(
        "--output",
        required=True,
        action="append",
        type=_output,
        metavar="DIR|topics:PREFIX|postgresql://USER@HOST/DATABASE",
        help=f"where the results ({results}, dead_letters) go; may be given more than once. DIR, a path or a URI, gets "
        "Parquet, topics get JSON, and a database gets a table for each, of those pipelines that have tables",
    )
    group.add_argument(
        "--starting-offsets",
        default="earliest",
        type=is_a.start,
        metavar="earliest|latest|TIME|TOPIC:PARTITION:OFFSET,...",
        help="where a first run begins: a TIME is that of the records, in ISO 8601; partitions that are not named are "
        "read from their start (default earliest)",
    )
    group.add_argument("--until", type=is_a.moment, metavar="TIME", help="--run whole: up to the records of this time")
    group.add_argument("--max-offsets", type=is_a.positive, metavar="N", help="records a batch (default: all)")
    group.add_argument(
        "--min-partitions", type=is_a.positive, metavar="N", help="tasks that read a batch (default: one a partition)"
    )
    group.add_argument("--allow-data-loss", action="store_true", help="go on where records that were not read are gone")
    group.add_argument(
        "--kafka", action="append", default=[], type=is_a.pair, metavar="KEY=VALUE", help="setting of the Java client"
    )
    group.add_argument("--timezone", default="UTC", type=is_a.timezone, help="of times without a zone (default UTC)")


def _running(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--run",
        default=Run.AVAILABLE_NOW.value,
        choices=[run.value for run in Run],
        help="available-now: the records that exist, then stop, open windows wait for the next run (default); "
        "follow: until stopped; whole: the records that exist as one bounded set, all windows closed",
    )
    group.add_argument("--checkpoint", metavar="DIR", help="directory for the position and open windows of a stream")
    group.add_argument("--every", default="10 seconds", type=is_a.duration, help="follow: time between batches")
    group.add_argument("--master", default="local[2]", help="the Spark to run on (default local[2])")
    group.add_argument("--jars", metavar="DIR|A.jar,B.jar", help="Spark's Kafka connector as files")
    group.add_argument("--packages", metavar="GROUP:NAME:VERSION", help="or as Maven coordinates (the default)")


def parse(pipeline: Pipeline[Own], given: Sequence[str]) -> Options[Own]:
    """The options. Raises `PipelineError` with exit code 2."""
    values = vars(parser(pipeline).parse_args(given))
    own = pipeline.own(values)
    common = {one.name for one in fields(Options)} - {"own"}
    values["run"], values["kafka"] = Run(values["run"]), dict(values["kafka"])
    values["output"] = tuple(dict.fromkeys(values["output"]))
    options = Options(own=own, **{name: value for name, value in values.items() if name in common})
    for cause, fix in [*_contradictions(pipeline, options), *pipeline.contradictions(own)]:
        raise PipelineError(cause, fix, 2)
    return options


def _contradictions(pipeline: Pipeline[Own], options: Options[Own]) -> list[tuple[str, str]]:
    found = []
    if options.run is not Run.WHOLE and options.checkpoint is None:
        found.append(("A stream needs a place for its position.", "Give --checkpoint DIR, or --run whole."))
    if options.run is Run.WHOLE and options.checkpoint is not None:
        found.append(("--run whole keeps no position.", "Leave out --checkpoint."))
    if options.run is Run.WHOLE and options.starting_offsets == "latest":
        found.append(("--run whole from the latest offset has nothing to read.", "Leave out --starting-offsets."))
    if options.run is not Run.WHOLE and options.until is not None:
        found.append(("--until is the end of a bounded set.", "Give --run whole too, or leave it out."))
    if unread := named_topics(options.starting_offsets) - set(options.input):
        found.append((f"--starting-offsets names {', '.join(sorted(unread))}, which is not read.", "Correct --input."))
    if options.jars is not None and options.packages is not None:
        found.append(("Both --jars and --packages name the connector.", "Leave one out."))
    results = {result_topic(prefix, result) for prefix in options.prefixes for result in pipeline.results}
    if options.databases and not pipeline.tables:
        found.append((f"The results of {pipeline.name} are not for tables.", "Give a directory, or topics:PREFIX."))
    if results & set(options.input):
        found.append(("The results would be written to the topic that is read.", "Choose another prefix in --output."))
    return found


def check_reachable(bootstrap_servers: str, timeout_s: float = 5.0) -> None:
    """Raise `PipelineError` if no broker of the list accepts a connection; Spark's clients would retry for minutes."""
    reasons = is_a.unreachable(bootstrap_servers, timeout_s)
    if reasons:
        raise PipelineError(f"No broker responds ({'; '.join(reasons)}).", "Start it, or correct --bootstrap-servers.")
