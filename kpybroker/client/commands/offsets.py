"""`kpybroker offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import group_names, topic_names
from kpybroker.client.commands.options import client_command, examples, execute_option, output_option
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection


@click.group(cls=WholeGroup)
def offsets() -> None:
    """Committed offsets of groups as files: export, import."""


@offsets.command(
    "export",
    epilog=examples(
        "kpybroker offsets export readers",
        "kpybroker offsets export 'app-*' --file offsets.json",
        "kpybroker offsets export readers -t orders --file offsets.csv",
    ),
)
@click.argument("patterns", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)
@click.option("--file", type=click.Path(dir_okay=False), metavar="FILE", help="[default: standard output]")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(("json", "csv")),
    help="JSON, with metadata; or CSV as kafka-consumer-groups has it.  [default: csv for *.csv, else json]",
)
@click.option(
    "-t",
    "--topics",
    multiple=True,
    metavar="TOPIC[:N,...]",
    shell_complete=topic_names,
    help="Only these topics or partitions.",
)
@client_command
def export(connection: Connection, **options: Any) -> int:
    """Write the committed offsets of groups to a file. A GROUP may be a pattern with * and ?.

    CSV of one group has lines of topic,partition,offset; of several, with the group in front:
    kafka-consumer-groups --reset-offsets --from-file reads both.
    """
    from kpybroker.client.transfer import offsets as action

    return action.export(connection, action.ExportOptions(**options))


@offsets.command(
    "import",
    epilog=examples(
        "kpybroker offsets import offsets.json",
        "kpybroker offsets import offsets.json --execute",
        "kpybroker offsets import offsets.csv --group copies --execute",
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "-g", "--group", metavar="GROUP", shell_complete=group_names, help="Of a file of one group: commit as this one."
)
@execute_option
@output_option
@client_command
def import_(connection: Connection, output_format: str, **options: Any) -> int:
    """Commit the offsets of a file, JSON or CSV, for groups that have no members; - reads standard input.

    Without --execute it shows from where to where each partition would move. An offset outside of a partition becomes
    the nearest that it has. If anything in the file cannot be committed, nothing is.
    """
    from kpybroker.client.show.output import Output
    from kpybroker.client.transfer import offsets as action

    return action.import_offsets(connection, action.ImportOptions(**options), Output(output_format))
