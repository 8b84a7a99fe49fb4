"""`kpybroker group`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import group_names, topic_names
from kpybroker.client.commands.options import client_command, examples, execute_option, output_option
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

STATES = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
TYPES = ("classic", "consumer", "share", "streams")


@click.group(cls=WholeGroup)
def group() -> None:
    """Consumer groups, share groups and streams groups: list, describe (lag), seek, delete."""


group_argument = click.argument("group", metavar="GROUP", shell_complete=group_names)
groups_argument = click.argument("groups", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_names)


@group.command(
    "list",
    epilog=examples("kpybroker group list", "kpybroker group list 'app-*' --state Empty --type consumer --lag"),
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=group_names)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    metavar="STATE",
    help=f"Only groups in this state; may be repeated: {', '.join(STATES)}.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(TYPES, case_sensitive=False),
    help="Only classic groups, consumer groups (KIP-848), share groups (KIP-932) or streams groups (KIP-1071).",
)
@click.option("--lag", is_flag=True, help="The lag of each group; asks for the offsets of each.")
@output_option
@client_command
def list_groups(connection: Connection, output_format: str, **options: Any) -> int:
    """List groups: all, or those that a PATTERN with * and ? matches."""
    from kpybroker.client.actions import groups
    from kpybroker.client.show.output import Output

    return groups.show_list(connection, groups.ListOptions(**options), Output(output_format))


@group.command(
    "describe",
    epilog=examples("kpybroker group describe readers", "kpybroker group describe readers --members --format wide"),
)
@groups_argument
@click.option(
    "-m",
    "--members",
    is_flag=True,
    help="The members too, with their partitions; of newer protocols also epoch and target, of streams groups tasks.",
)
@click.option("--only-lag", is_flag=True, help="Only the partitions with a lag.")
@output_option
@client_command
def describe(connection: Connection, output_format: str, **options: Any) -> int:
    """Show the state of groups, and for each partition the committed offset, the lag and who reads it.

    Of a share group, for each partition where it starts, and how many records wait or are in flight. Of a streams group
    also its topology.
    """
    from kpybroker.client.actions import groups as action
    from kpybroker.client.show.output import Output

    return action.show_describe(connection, action.DescribeOptions(**options), Output(output_format))


@group.command(
    "seek",
    epilog=examples(
        "kpybroker group seek readers --to start",
        "kpybroker group seek readers --to @2026-01-31T12:00 --execute",
        "kpybroker group seek readers --to -100 --topics orders:0,1 --execute",
        "kpybroker group seek copies --to-group readers --execute",
    ),
)
@group_argument
@click.option("--to", metavar="OFFSET", help="start, end, an offset, +N or -N from where it is, @TIME, @-1h.")
@click.option("--to-group", metavar="GROUP", shell_complete=group_names, help="To the offsets of another group.")
@click.option(
    "--to-file",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="To those of a file: TOPIC PARTITION OFFSET a line; - is stdin.",
)
@click.option(
    "-t",
    "--topics",
    "--topics-partitions",
    "topics",
    multiple=True,
    metavar="TOPIC[:N,...]",
    shell_complete=topic_names,
    help="Only these topics or partitions; also such as the group has not read. Default: all it has read.",
)
@execute_option
@output_option
@client_command
def seek(connection: Connection, group: str, output_format: str, **options: Any) -> int:
    """Move the committed offsets of a group that has no members, or the start offsets of a share group.

    Without --execute it shows from where to where each partition would move. An offset outside of a partition becomes
    the nearest that it has.
    """
    from kpybroker.client.actions import seek as action
    from kpybroker.client.show.output import Output

    return action.seek(connection, group, action.SeekOptions(**options), Output(output_format))


@group.command(
    "delete", epilog=examples("kpybroker group delete readers", "kpybroker group delete readers copies --execute")
)
@groups_argument
@execute_option
@output_option
@client_command
def delete(connection: Connection, groups: tuple[str, ...], execute: bool, output_format: str) -> int:
    """Delete groups with their offsets. They must have no members.

    Without --execute it shows which groups would be deleted.
    """
    from kpybroker.client.actions import groups as action
    from kpybroker.client.show.output import Output

    return action.delete(connection, groups, execute, Output(output_format))


@group.command(
    "offset-delete",
    epilog=examples(
        "kpybroker group offset-delete readers -t orders",
        "kpybroker group offset-delete readers -t orders:0,1 --execute",
    ),
)
@group_argument
@click.option(
    "-t",
    "--topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:N,...]",
    shell_complete=topic_names,
    help="The topics or partitions whose offsets go.",
)
@execute_option
@output_option
@client_command
def offset_delete(
    connection: Connection, group: str, topics: tuple[str, ...], execute: bool, output_format: str
) -> int:
    """Delete a group's committed offsets of some topics. No member may read them. A share group may have no members,
    and forgets whole topics.

    Without --execute it shows which offsets would be deleted.
    """
    from kpybroker.client.actions import groups as action
    from kpybroker.client.show.output import Output

    return action.offset_delete(connection, group, topics, execute, Output(output_format))
