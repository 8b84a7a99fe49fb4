"""`kpybroker user`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kpybroker.client.commands.options import client_command, examples, execute_option, output_option
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@click.group(cls=WholeGroup)
def user() -> None:
    """Users with SCRAM credentials: list, set, delete."""


@user.command("list", epilog=examples("kpybroker user list", "kpybroker user list alice --format json"))
@click.argument("users", nargs=-1, metavar="[USER]...")
@output_option
@client_command
def list_users(connection: Connection, users: tuple[str, ...], output_format: str) -> int:
    """List users with their mechanisms. Passwords cannot be read back."""
    from kpybroker.client.actions.security import users as action
    from kpybroker.client.show.output import Output

    return action.show_list(connection, users, Output(output_format))


@user.command(
    "set",
    epilog=examples(
        "kpybroker user set alice",
        "kpybroker user set alice --mechanism SCRAM-SHA-256 --password-file alice.txt",
        "pass show kafka/alice | kpybroker user set alice",
    ),
)
@click.argument("user", metavar="USER")
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    default=["SCRAM-SHA-512"],
    help="May be repeated.  [default: SCRAM-SHA-512]",
)
@click.option("--iterations", type=click.IntRange(4096, 16384), default=8192, metavar="N", help="[default: 8192]")
@click.option("--password-file", type=click.Path(), metavar="FILE", help="Read the password from FILE; - is stdin.")
@output_option
@client_command
def set_user(
    connection: Connection,
    user: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: str | None,
    output_format: str,
) -> int:
    """Create a user, or give it another password.

    The password is read from --password-file, else from standard input, else it is asked for. It is never an argument,
    which other users of the machine could see.
    """
    from kpybroker.client.actions.security import users
    from kpybroker.client.show.output import Output

    return users.set_credentials(connection, user, mechanisms, iterations, password_file, Output(output_format))


@user.command("delete", epilog=examples("kpybroker user delete alice", "kpybroker user delete alice --execute"))
@click.argument("user", metavar="USER")
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    help="Only these credentials. Default: all.",
)
@execute_option
@output_option
@client_command
def delete(connection: Connection, user: str, mechanisms: tuple[str, ...], execute: bool, output_format: str) -> int:
    """Delete the credentials of a user.

    Without --execute it shows what would be deleted.
    """
    from kpybroker.client.actions.security import users
    from kpybroker.client.show.output import Output

    return users.delete(connection, user, mechanisms, execute, Output(output_format))
