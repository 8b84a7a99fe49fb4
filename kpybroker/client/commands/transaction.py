"""`kpybroker transaction`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import topic_names
from kpybroker.client.commands.options import (
    INT32_MAX,
    INT64_MAX,
    Seconds,
    client_command,
    examples,
    execute_option,
    output_option,
)
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


@click.group(cls=WholeGroup)
def transaction() -> None:
    """Transactions: list, describe, find those that hang, abort."""


@transaction.command(
    "list", epilog=examples("kpybroker transaction list", "kpybroker transaction list --state Ongoing --format wide")
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    metavar="STATE",
    help=f"Only in this state; may be repeated: {', '.join(STATES)}.",
)
@output_option
@client_command
def list_transactions(connection: Connection, states: tuple[str, ...], output_format: str) -> int:
    """List the transactional ids that the coordinators know."""
    from kpybroker.client.actions import transactions
    from kpybroker.client.show.output import Output

    return transactions.show_list(connection, states, Output(output_format))


@transaction.command("describe", epilog=examples("kpybroker transaction describe payments-1"))
@click.argument("ids", nargs=-1, required=True, metavar="TRANSACTIONAL-ID...")
@output_option
@client_command
def describe(connection: Connection, ids: tuple[str, ...], output_format: str) -> int:
    """Show the state of transactions and the partitions in them."""
    from kpybroker.client.actions import transactions
    from kpybroker.client.show.output import Output

    return transactions.show_describe(connection, ids, Output(output_format))


@transaction.command(
    "hanging", epilog=examples("kpybroker transaction hanging", "kpybroker transaction hanging orders --older-than 60")
)
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=topic_names)
@click.option(
    "--older-than",
    type=Seconds(0, 10**9),
    default=900.0,
    metavar="SECONDS",
    help="Without a write for so long.  [default: 900, the broker's transaction.max.timeout.ms]",
)
@output_option
@client_command
def hanging(connection: Connection, topics: tuple[str, ...], older_than: float, output_format: str) -> int:
    """Find open transactions that no coordinator knows: read_committed consumers wait for them forever."""
    from kpybroker.client.actions import transactions
    from kpybroker.client.show.output import Output

    return transactions.hanging(connection, topics, older_than, Output(output_format))


@transaction.command(
    "abort",
    epilog=examples(
        "kpybroker transaction abort payments-1",
        "kpybroker transaction abort payments-1 --execute",
        "kpybroker transaction abort --topic orders --partition 0 --start-offset 17 --execute",
    ),
)
@click.argument("ids", nargs=-1, metavar="[TRANSACTIONAL-ID]...")
@click.option("--topic", metavar="TOPIC", shell_complete=topic_names, help="The topic of a transaction that hangs.")
@click.option("--partition", type=click.IntRange(0, INT32_MAX), metavar="N", help="Its partition.")
@click.option("--start-offset", type=click.IntRange(0, INT64_MAX), metavar="OFFSET", help="Its first offset.")
@execute_option
@output_option
@client_command
def abort(connection: Connection, output_format: str, **options: Any) -> int:
    """Abort open transactions.

    By TRANSACTIONAL-ID: the coordinator aborts it, and its producer is fenced. By --topic, --partition and
    --start-offset, as `transaction hanging` lists them: an abort marker is written into the partition.

    Without --execute it shows what would be aborted.
    """
    from kpybroker.client.actions import transactions
    from kpybroker.client.show.output import Output

    return transactions.abort(connection, transactions.AbortOptions(**options), Output(output_format))
