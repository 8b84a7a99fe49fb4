"""What is done to the files and tables of the pipeline `warehouse` next to its stream.

    python -m kpybroker.pipelines.warehouse compact --output DIR --checkpoint DIR [--older-than '2 hours']
    python -m kpybroker.pipelines.warehouse replay --from TIME --to TIME --bootstrap-servers HOST:PORT --output ... \\
        --checkpoint DIR
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from kpybroker.pipelines.errors import PipelineError, explain
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.messages import Messages
from kpybroker.pipelines.runtime.options import TOPICS
from kpybroker.pipelines.runtime.session import open_spark
from kpybroker.pipelines.sinks.table_output import SCHEME, check_address
from kpybroker.pipelines.warehouse.compaction import compact
from kpybroker.pipelines.warehouse.replay import Replay, hour_of, replay


def _hour(text: str) -> datetime:
    found = datetime.fromisoformat(is_a.moment(text))
    try:
        return hour_of(found if found.tzinfo is not None else found.replace(tzinfo=UTC))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' cannot be used: {error}") from None


def _output(text: str) -> str:
    if text.startswith(TOPICS) or not text:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a directory nor a database")
    if text.startswith(SCHEME) and (wrong := check_address(text)):
        raise argparse.ArgumentTypeError(f"this is no address of a database: {wrong}")
    return text.rstrip("/")


def _parser() -> argparse.ArgumentParser:
    made = is_a.Parser(prog="python -m kpybroker.pipelines.warehouse", allow_abbrev=False)
    commands = made.add_subparsers(dest="command", required=True)
    small = commands.add_parser("compact", help="make one file of the small ones of each hour that is over")
    again = commands.add_parser("replay", help="make the facts of some hours again, from the topic")
    for command in (small, again):
        command.add_argument("--checkpoint", required=True, metavar="DIR", help="of the stream, which may run")
        command.add_argument("--master", default="local[2]", help="the Spark to run on (default local[2])")
        command.add_argument("--jars", metavar="DIR|A.jar,B.jar", help="Spark's Kafka connector as files")
        command.add_argument("--packages", metavar="GROUP:NAME:VERSION", help="or as Maven coordinates")
    small.add_argument("--output", required=True, metavar="DIR", type=_output, help="the stream's directory")
    small.add_argument(
        "--older-than", default="2 hours", type=is_a.duration, help="since the end of the hour (2 hours)"
    )
    places = "the stream's directory, or database; may be given more than once"
    again.add_argument("--output", required=True, action="append", type=_output, help=places)
    again.add_argument("--bootstrap-servers", required=True, type=is_a.bootstrap_servers, metavar="HOST:PORT")
    again.add_argument("--from", dest="start", required=True, type=_hour, metavar="TIME", help="the first hour")
    again.add_argument("--to", dest="end", required=True, type=_hour, metavar="TIME", help="the end of the last hour")
    text = "of times without a zone, as the stream has it (default UTC)"
    again.add_argument("--timezone", default="UTC", type=is_a.timezone, help=text)
    again.add_argument("--kafka", action="append", default=[], type=is_a.pair, metavar="KEY=VALUE")
    again.add_argument("--allow-data-loss", action="store_true", help="also if hours then have fewer facts than now")
    return made


def _run(options: argparse.Namespace) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    messages = Messages(sys.stderr)
    spark = open_spark(options.master, options.jars, options.packages, messages)
    try:
        spark.conf.set("spark.sql.session.timeZone", vars(options).get("timezone", "UTC"))
        if options.command == "compact":
            done = compact(spark, options.output, options.checkpoint, is_a.seconds(options.older_than), print)
            print(f"{done.hours} hours: {done.before} files are {done.after}")
        else:
            print(f"{replay(spark, _replay(options), print)} facts in {_hours(options)} hours")
    except (PySparkException, Py4JJavaError) as error:
        found = explain(str(error))
        if found.is_unknown:
            print(messages.text(), file=sys.stderr)
        raise found from error
    finally:
        spark.stop()


def _hours(options: argparse.Namespace) -> int:
    return int((options.end - options.start).total_seconds()) // 3600


def _replay(options: argparse.Namespace) -> Replay:
    own = {key.removeprefix("kafka."): value for key, value in options.kafka}
    return Replay(
        options.start,
        options.end,
        options.checkpoint,
        tuple(one for one in options.output if not one.startswith(SCHEME)),
        tuple(one for one in options.output if one.startswith(SCHEME)),
        options.allow_data_loss,
        {**own, "bootstrap.servers": options.bootstrap_servers},
    )


def main(arguments: Sequence[str]) -> int:
    """Run; the exit code."""
    try:
        options = _parser().parse_args(arguments)
        if options.command == "replay" and _hours(options) < 1:
            raise PipelineError("--to is not after --from.", "Give the end of the last hour.", 2)
        _run(options)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
