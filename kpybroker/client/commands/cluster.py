"""`kpybroker cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

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


@click.group(cls=WholeGroup)
def cluster() -> None:
    """The cluster: brokers, health, balance, log directories, API versions."""


@cluster.command(
    "info", epilog=examples("kpybroker cluster info", "kpybroker cluster info --format json | jq .brokers")
)
@output_option
@client_command
def info(connection: Connection, output_format: str) -> int:
    """Show the cluster's id, its controller, its brokers, and which Kafka each looks like."""
    from kpybroker.client.actions import clusters
    from kpybroker.client.show.output import Output

    return clusters.info(connection, Output(output_format))


@cluster.command("health", epilog=examples("kpybroker cluster health", "kpybroker cluster health --format json"))
@output_option
@client_command
def health(connection: Connection, output_format: str) -> int:
    """List the partitions without a leader, and those with too few in-sync replicas. Exit code 1 if there are any."""
    from kpybroker.client.actions import clusters
    from kpybroker.client.show.output import Output

    return clusters.health(connection, Output(output_format))


@cluster.command(
    "balance",
    epilog=examples(
        "kpybroker cluster balance",
        "kpybroker cluster balance --seconds 60 --execute",
        "kpybroker cluster balance --copy --throttle 50000000 --execute",
    ),
)
@click.option("--seconds", type=Seconds(0.1), default=10, show_default=True, help="Measure for so long.")
@click.option("--copy", "copies", is_flag=True, help="Also to brokers without a replica: their data are copied.")
@click.option(
    "--throttle",
    type=click.IntRange(1, INT64_MAX),
    metavar="BYTES",
    help="Copy no more than BYTES a second from or to a broker.",
)
@execute_option
@output_option
@client_command
def balance(connection: Connection, output_format: str, **options: Any) -> int:
    """Show how much is written to what each broker leads, and which leaders would make that even.

    Without --execute it shows what would be changed. How much is read is not known.
    """
    from kpybroker.client.actions.placement import balancing
    from kpybroker.client.show.output import Output

    return balancing.run(connection, balancing.BalanceOptions(**options), Output(output_format))


@cluster.command(
    "log-dirs", epilog=examples("kpybroker cluster log-dirs", "kpybroker cluster log-dirs --broker 0 --replicas")
)
@click.option(
    "--broker", "brokers", type=click.IntRange(0, INT32_MAX), multiple=True, metavar="ID", help="Only of this broker."
)
@click.option("-r", "--replicas", is_flag=True, help="Each replica, the largest first.")
@output_option
@client_command
def log_dirs(connection: Connection, brokers: tuple[int, ...], replicas: bool, output_format: str) -> int:
    """Show the log directories of the brokers, with the number of replicas and their size."""
    from kpybroker.client.actions import clusters
    from kpybroker.client.show.output import Output

    return clusters.log_dirs(connection, brokers, replicas, Output(output_format))


@cluster.command(
    "api-versions", epilog=examples("kpybroker cluster api-versions", "kpybroker cluster api-versions --broker 1")
)
@click.option(
    "--broker",
    type=click.IntRange(0, INT32_MAX),
    metavar="ID",
    help="Of this broker. Default: the first that responds.",
)
@output_option
@client_command
def api_versions(connection: Connection, broker: int | None, output_format: str) -> int:
    """Show the APIs that a broker serves, with their oldest and newest versions."""
    from kpybroker.client.actions import clusters
    from kpybroker.client.show.output import Output

    return clusters.api_versions(connection, broker, Output(output_format))
