"""`kpybroker log`: what the files of a log contain, whether they are sound, and the merge of state-change logs.

Read-only; needs no broker. Nothing but click is imported until one of the commands runs.
"""

from __future__ import annotations

from typing import Any, Final

import click

from kpybroker.cli.lazy import WholeGroup
from kpybroker.cli.param_types import CheckedCommand, Number

EXIT_CODES: Final = """\b
Exit codes:
  0  nothing is wrong
  1  damaged data were found (dump), an error was found (verify)
  2  a bad option, a path that is not of a log, or an unreadable file
"""

_paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
_output = click.option(
    "-o", "--output", type=click.Choice(("table", "json")), default="table", help="Columns, or one JSON object a line."
)


@click.group(cls=WholeGroup)
def log() -> None:
    """Inspect the files of a log, whether a broker runs or not; merge logs of state changes.

    A PATH is a file, recognized by its name, a partition's directory, or a log directory. Nothing is ever written.
    """


@log.command(cls=CheckedCommand, epilog=EXIT_CODES)
@_paths
@click.option("--records", is_flag=True, help="Keys, values and headers too; those of internal topics decoded.")
@click.option("--offset", type=Number(0), default=0, metavar="N", help="Begin with the batch that holds N.")
@click.option("--max-batches", type=Number(1), metavar="N", help="At most N batches of a partition.")
@click.option(
    "--decoder",
    type=click.Choice(("auto", "offsets", "transactions", "share-states", "raw")),
    default="auto",
    help="What the records are; auto decides by the directory's name.",
)
@_output
def dump(
    paths: tuple[str, ...], records: bool, offset: int, max_batches: int | None, decoder: str, output: str
) -> None:
    """Show batches, records, index entries, snapshots, checkpoints and metadata."""
    from kpybroker.cli.dump import commands

    raise SystemExit(commands.run_dump(paths, records, offset, max_batches, decoder, output))


@log.command(cls=CheckedCommand, epilog=EXIT_CODES)
@_paths
@click.option("--shallow", is_flag=True, help="Leave out the records within the batches; their CRC is checked anyway.")
@_output
def verify(paths: tuple[str, ...], shallow: bool, output: str) -> None:
    """Check every batch, record, index entry, snapshot and checkpoint.

    One line for each error or note: file, position, offset, and what is wrong. A note is no error: a gap that
    compaction leaves, a batch that is being written.
    """
    from kpybroker.cli.dump import commands

    raise SystemExit(commands.run_verify(paths, shallow, output))


@log.command(
    "merge-state-changes", cls=CheckedCommand, epilog="Exit codes:  0  merged;  2  a bad option, or an unreadable file"
)
@click.option("--logs", type=click.Path(), metavar="FILE,...", help="The state-change logs, separated by commas.")
@click.option(
    "--logs-regex", type=click.Path(), metavar="DIR/PATTERN", help="Those in DIR whose name has a match of the pattern."
)
@click.option("--topic", metavar="TOPIC", help="Only lines about its partitions.")
@click.option("--partitions", metavar="0,1,...", help="Of the topic, only these.")
@click.option("--start-time", default="0000-00-00 00:00:00,000", metavar="TIME", help="From it on.")
@click.option("--end-time", default="9999-12-31 23:59:59,999", metavar="TIME", help="Up to it.")
def merge_state_changes(**options: Any) -> None:
    """Merge state-change logs of several brokers by time, of kpybroker and of Kafka.

    It does what Kafka's StateChangeLogMerger does, and finds partitions as every version of Kafka writes them. A TIME
    is as in the logs: '2024-01-31 13:00:00,000'.
    """
    from kpybroker.cli.dump import merge

    raise SystemExit(merge.run_merge(merge.Options(**options)))
