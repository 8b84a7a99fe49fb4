"""`kpybroker topic`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import topic_names
from kpybroker.client.commands.options import client_command, examples, execute_option, output_option
from kpybroker.client.commands.records import consume, produce
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection


@click.group(cls=WholeGroup)
def topic() -> None:
    """Topics: list, describe, create, alter, delete, trim, produce, consume."""


PARTITIONS_MAX = 100_000
"""librdkafka asks for no more."""

names_argument = click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)


@topic.command(
    "list",
    epilog=examples(
        "kpybroker topic list",
        "kpybroker topic list 'orders*' --format wide",
        "kpybroker topic list --format json | jq -r '.[].name'",
    ),
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=topic_names)
@click.option("-i", "--internal", is_flag=True, help="Internal topics too, like __consumer_offsets.")
@output_option
@client_command
def list_topics(connection: Connection, patterns: tuple[str, ...], internal: bool, output_format: str) -> int:
    """List topics: all, or those that a PATTERN with * and ? matches."""
    from kpybroker.client.actions import topics
    from kpybroker.client.show.output import Output

    return topics.show_list(connection, patterns, internal, Output(output_format))


@topic.command(
    "describe",
    epilog=examples("kpybroker topic describe orders", "kpybroker topic describe orders --all --format yaml"),
)
@names_argument
@click.option("-a", "--all", "all_configs", is_flag=True, help="Settings with their defaults too.")
@output_option
@client_command
def describe(connection: Connection, names: tuple[str, ...], all_configs: bool, output_format: str) -> int:
    """Show the partitions, offsets and settings of topics. TOPIC may be a pattern."""
    from kpybroker.client.actions import topics
    from kpybroker.client.show.output import Output

    return topics.show_describe(connection, names, all_configs, Output(output_format))


@topic.command(
    "create",
    epilog=examples(
        "kpybroker topic create orders",
        "kpybroker topic create orders -p 12 -r 3 -c retention.ms=86400000",
        "kpybroker topic create accounts -c cleanup.policy=compact --if-not-exists",
        "kpybroker topic create pinned --replica-assignment 0:1,1:2",
        "kpybroker topic create orders-copy --like orders",
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1, PARTITIONS_MAX),
    metavar="N",
    help="Default: the broker's num.partitions.",
)
@click.option("-r", "--replicas", type=click.IntRange(1, 32767), metavar="N", help="Default: the broker's factor.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated.")
@click.option("--replica-assignment", "assignment", metavar="0:1,1:2", help="The brokers of each partition.")
@click.option(
    "--like",
    metavar="TOPIC",
    shell_complete=topic_names,
    help="With the partitions, replicas and settings of another topic, where the other options leave them open.",
)
@click.option("--if-not-exists", is_flag=True, help="A topic that exists is no failure; it is left as it is.")
@click.option("-d", "--dry-run", is_flag=True, help="Let the broker check the request, and change nothing.")
@output_option
@client_command
def create(connection: Connection, names: tuple[str, ...], output_format: str, **options: Any) -> int:
    """Create topics."""
    from kpybroker.client.actions import topic_changes
    from kpybroker.client.show.output import Output

    wanted = topic_changes.NewTopicOptions(**options)
    return topic_changes.create(connection, names, wanted, Output(output_format))


@topic.command(
    "alter",
    epilog=examples(
        "kpybroker topic alter orders --partitions 24",
        "kpybroker topic alter orders -s retention.ms=3600000 -d max.message.bytes",
        "kpybroker topic alter orders --append cleanup.policy=compact",
    ),
)
@names_argument
@click.option(
    "-p", "--partitions", type=click.IntRange(1, PARTITIONS_MAX), metavar="N", help="Add partitions, to N in all."
)
@click.option("-s", "--set", "set_", multiple=True, metavar="KEY=VALUE", help="Set a key.")
@click.option("-d", "--delete", multiple=True, metavar="KEY", help="Return a key to its default.")
@click.option("--append", multiple=True, metavar="KEY=VALUE", help="Add to a list.")
@click.option("--subtract", multiple=True, metavar="KEY=VALUE", help="Remove from a list.")
@output_option
@client_command
def alter(
    connection: Connection, names: tuple[str, ...], partitions: int | None, output_format: str, **changes: Any
) -> int:
    """Change the settings of topics, or give them more partitions. TOPIC may be a pattern.

    Records with a key may go to another partition than before once there are more partitions.
    """
    from kpybroker.client.actions import topic_changes
    from kpybroker.client.actions.resources import parse_changes
    from kpybroker.client.show.output import Output

    return topic_changes.alter(connection, names, partitions, parse_changes(**changes), Output(output_format))


@topic.command("delete", epilog=examples("kpybroker topic delete orders", "kpybroker topic delete 'test-*' --execute"))
@names_argument
@execute_option
@output_option
@client_command
def delete(connection: Connection, names: tuple[str, ...], execute: bool, output_format: str) -> int:
    """Delete topics with all their records. TOPIC may be a pattern.

    Without --execute it shows which topics would be deleted.
    """
    from kpybroker.client.actions import topic_changes
    from kpybroker.client.show.output import Output

    return topic_changes.delete(connection, names, execute, Output(output_format))


@topic.command(
    "trim",
    epilog=examples(
        "kpybroker topic trim orders --to end",
        "kpybroker topic trim orders --to @-7d --execute",
        "kpybroker topic trim orders -p 0 --to 1000 --execute",
    ),
)
@names_argument
@click.option(
    "--to", required=True, metavar="OFFSET", help="Where the records that stay begin: end, 5, +5, -5, @TIMESTAMP."
)
@click.option("-p", "--partitions", multiple=True, metavar="N,...", help="Only these partitions: 0, 0,2, 0-3.")
@execute_option
@output_option
@client_command
def trim(connection: Connection, names: tuple[str, ...], output_format: str, **options: Any) -> int:
    """Delete the records below an offset or a time, from each partition. TOPIC may be a pattern.

    Without --execute it shows how many records of which partitions would be deleted.
    """
    from kpybroker.client.actions import topic_changes
    from kpybroker.client.show.output import Output

    return topic_changes.trim(connection, names, topic_changes.TrimOptions(**options), Output(output_format))


topic.add_command(produce)
topic.add_command(consume)
