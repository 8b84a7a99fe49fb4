"""`kpybroker partition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import topic_names
from kpybroker.client.commands.options import INT64_MAX, client_command, examples, execute_option, output_option
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

REPLICAS_MAX = 32767
places_argument = click.argument("places", nargs=-1, metavar="[TOPIC[:N,...]]...", shell_complete=topic_names)


@click.group(cls=WholeGroup)
def partition() -> None:
    """Partitions: move them to other brokers, elect their leaders."""


@partition.command(
    "move",
    epilog=examples(
        "kpybroker partition move orders --to 4,5,6",
        "kpybroker partition move orders:0,2 --to 4,5,6 --throttle 50000000 --wait --execute",
        "kpybroker partition move orders --replicas 3 --execute",
        "kpybroker partition move --plan plan.json --save before.json --execute",
    ),
)
@places_argument
@click.option("--to", multiple=True, metavar="ID,...", help="The brokers that they go to. Default: all.")
@click.option(
    "-r", "--replicas", type=click.IntRange(1, REPLICAS_MAX), metavar="N", help="So many replicas. Default: as many."
)
@click.option(
    "--plan",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="The brokers of each partition, as kafka-reassign-partitions.sh has them; - is stdin.",
)
@click.option("--save", type=click.Path(), metavar="FILE", help="Write where they are now to FILE, as --plan reads it.")
@click.option(
    "--throttle",
    type=click.IntRange(1, INT64_MAX),
    metavar="BYTES",
    help="Copy no more than BYTES a second from or to a broker.",
)
@click.option("--wait", is_flag=True, help="Show how far it is until all are moved, and remove the throttle then.")
@execute_option
@output_option
@client_command
def move(connection: Connection, output_format: str, **options: Any) -> int:
    """Move the replicas of partitions to other brokers, or change how many there are.

    What is on the right brokers stays. Without --execute it shows what would be moved.
    """
    from kpybroker.client.actions.placement import moves as action
    from kpybroker.client.show.output import Output

    return action.move(connection, action.MoveOptions(**options), Output(output_format))


@partition.command("moves", epilog=examples("kpybroker partition moves", "kpybroker partition moves --end-throttle"))
@click.option("--end-throttle", is_flag=True, help="Remove the throttles that no move needs any more.")
@output_option
@client_command
def moves(connection: Connection, end_throttle: bool, output_format: str) -> int:
    """List the partitions that are being moved, and how much of each is copied."""
    from kpybroker.client.actions.placement import moves as action
    from kpybroker.client.show.output import Output

    return action.show_moves(connection, end_throttle, Output(output_format))


@partition.command(
    "cancel", epilog=examples("kpybroker partition cancel orders", "kpybroker partition cancel orders:0 --execute")
)
@places_argument
@execute_option
@output_option
@client_command
def cancel(connection: Connection, places: tuple[str, ...], execute: bool, output_format: str) -> int:
    """Cancel moves: all, or those of the named partitions, which stay where they were.

    Without --execute it shows what would be cancelled.
    """
    from kpybroker.client.actions.placement import moves as action
    from kpybroker.client.show.output import Output

    return action.cancel(connection, places, execute, Output(output_format))


@partition.command(
    "elect",
    epilog=examples(
        "kpybroker partition elect",
        "kpybroker partition elect orders --execute",
        "kpybroker partition elect orders:0 --unclean --execute",
    ),
)
@places_argument
@click.option(
    "--unclean",
    is_flag=True,
    help="Of partitions without a leader any replica that is alive, which loses what it does not have.",
)
@execute_option
@output_option
@client_command
def elect(connection: Connection, places: tuple[str, ...], unclean: bool, execute: bool, output_format: str) -> int:
    """Let partitions be led by their first replica again: all, or the named ones.

    Without --execute it shows which leaders would be elected.
    """
    from kpybroker.client.actions.placement import elections as action
    from kpybroker.client.show.output import Output

    return action.elect(connection, places, unclean, execute, Output(output_format))
