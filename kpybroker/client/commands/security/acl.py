"""`kpybroker acl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import group_names, topic_names
from kpybroker.client.commands.options import client_command, examples, execute_option, output_option, stacked
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection


@click.group(cls=WholeGroup)
def acl() -> None:
    """Access control lists: list, create, delete.

    The broker needs an authorizer. A principal is User:NAME; NAME alone is the same.
    """


def _repeated(*names: str, help: str, metavar: str, **more: Any) -> Any:
    return click.option(*names, multiple=True, metavar=metavar, help=help, **more)


acl_options = stacked(
    _repeated("--allow-principal", "allow", metavar="USER", help="Who may."),
    _repeated("--deny-principal", "deny", metavar="USER", help="Who may not."),
    _repeated("--host", "hosts", metavar="HOST", help="From this address; * is any."),
    _repeated(
        "--operation", "operations", metavar="OP,...", help="read, write, create, describe, alter, delete, all ..."
    ),
    _repeated("--topic", "topics", metavar="TOPIC", help="A topic; * is any.", shell_complete=topic_names),
    _repeated("--group", "groups", metavar="GROUP", help="A group.", shell_complete=group_names),
    _repeated("--transactional-id", "transactional_ids", metavar="ID", help="A transactional id."),
    click.option("--cluster", is_flag=True, help="The cluster."),
    click.option("--prefixed", is_flag=True, help="The names are prefixes."),
)


@acl.command("list", epilog=examples("kpybroker acl list", "kpybroker acl list --topic orders --format json"))
@acl_options
@output_option
@client_command
def list_acls(connection: Connection, output_format: str, **options: Any) -> int:
    """List ACLs: all, or those that fit the options."""
    from kpybroker.client.actions.security import acls
    from kpybroker.client.show.output import Output

    return acls.show_list(connection, acls.AclOptions(**options), Output(output_format))


@acl.command(
    "create",
    epilog=examples(
        "kpybroker acl create --allow-principal alice --topic orders --producer",
        "kpybroker acl create --allow-principal bob --topic app- --prefixed --group readers --consumer",
        "kpybroker acl create --deny-principal eve --operation all --topic '*'",
    ),
)
@acl_options
@click.option("--producer", is_flag=True, help="The operations that a producer needs.")
@click.option("--consumer", is_flag=True, help="The operations that a consumer needs.")
@output_option
@client_command
def create(connection: Connection, output_format: str, **options: Any) -> int:
    """Create an ACL for each principal, host, operation and resource that is named."""
    from kpybroker.client.actions.security import acls
    from kpybroker.client.show.output import Output

    return acls.create(connection, acls.AclOptions(**options), Output(output_format))


@acl.command(
    "delete",
    epilog=examples("kpybroker acl delete --topic orders", "kpybroker acl delete --allow-principal alice --execute"),
)
@acl_options
@execute_option
@output_option
@client_command
def delete(connection: Connection, execute: bool, output_format: str, **options: Any) -> int:
    """Delete the ACLs that fit the options.

    Without --execute it shows which ACLs would be deleted.
    """
    from kpybroker.client.actions.security import acls
    from kpybroker.client.show.output import Output

    return acls.delete(connection, acls.AclOptions(**options), execute, Output(output_format))
