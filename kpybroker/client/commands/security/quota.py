"""`kpybroker quota`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.options import client_command, examples, output_option, stacked
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

KINDS = ("user", "client-id", "ip")

entity_options = stacked(
    click.option("--user", metavar="USER", help="Of this user."),
    click.option("--client-id", metavar="ID", help="Of this client id; with --user: of this user's."),
    click.option("--ip", metavar="ADDRESS", help="Of this address."),
    click.option(
        "--default",
        "defaults",
        type=click.Choice(KINDS),
        multiple=True,
        help="Of every user, client id or address that has no quota of its own; may be repeated.",
    ),
)


@click.group(cls=WholeGroup)
def quota() -> None:
    """Quotas of users, client ids and addresses: list, set, unset."""


@quota.command(
    "list",
    epilog=examples("kpybroker quota list", "kpybroker quota list --user alice", "kpybroker quota list --default user"),
)
@entity_options
@output_option
@client_command
def list_quotas(connection: Connection, output_format: str, **options: Any) -> int:
    """List quotas: all, or those whose user, client id or address is named."""
    from kpybroker.client.actions.security import quotas
    from kpybroker.client.show.output import Output

    return quotas.show_list(connection, quotas.EntityOptions(**options), Output(output_format))


@quota.command(
    "set",
    epilog=examples(
        "kpybroker quota set --client-id loader producer_byte_rate=10000000",
        "kpybroker quota set --user alice --client-id reports consumer_byte_rate=5000000",
        "kpybroker quota set --default user request_percentage=20",
        "kpybroker quota set --ip 192.0.2.7 connection_creation_rate=5",
    ),
)
@entity_options
@click.argument("values", nargs=-1, required=True, metavar="KEY=NUMBER...")
@click.option("-d", "--dry-run", is_flag=True, help="Let the broker check the request, and change nothing.")
@output_option
@client_command
def set_values(
    connection: Connection, values: tuple[str, ...], dry_run: bool, output_format: str, **options: Any
) -> int:
    """Set quotas of one user, client id, user with a client id, or address; other keys stay as they are.

    Keys are producer_byte_rate, consumer_byte_rate, request_percentage and controller_mutation_rate, and for an address
    connection_creation_rate. Each broker counts for itself.
    """
    from kpybroker.client.actions.security import quotas
    from kpybroker.client.show.output import Output

    changes = quotas.parse_values(values)
    return quotas.change(connection, quotas.EntityOptions(**options), changes, dry_run, Output(output_format))


@quota.command("unset", epilog=examples("kpybroker quota unset --client-id loader producer_byte_rate"))
@entity_options
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("-d", "--dry-run", is_flag=True, help="Let the broker check the request, and change nothing.")
@output_option
@client_command
def unset(connection: Connection, keys: tuple[str, ...], dry_run: bool, output_format: str, **options: Any) -> int:
    """Remove quotas: what is less specific applies again."""
    from kpybroker.client.actions.security import quotas
    from kpybroker.client.show.output import Output

    changes = dict.fromkeys(keys)
    return quotas.change(connection, quotas.EntityOptions(**options), changes, dry_run, Output(output_format))
