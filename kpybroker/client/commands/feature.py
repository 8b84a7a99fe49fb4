"""`kpybroker feature`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kpybroker.client.commands.options import client_command, examples, output_option
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

_levels = click.argument("levels", nargs=-1, required=True, metavar="NAME=LEVEL...")
_dry_run = click.option("--dry-run", is_flag=True, help="Let the cluster check it, and change nothing.")


@click.group(cls=WholeGroup)
def feature() -> None:
    """Feature levels, which decide for all brokers: list, upgrade, downgrade."""


@feature.command("list", epilog=examples("kpybroker feature list", "kpybroker feature list --format json"))
@output_option
@client_command
def list_features(connection: Connection, output_format: str) -> int:
    """List features: the level that the cluster has finalized, and the levels that all of its brokers support."""
    from kpybroker.client.actions import features
    from kpybroker.client.show.output import Output

    return features.show_list(connection, Output(output_format))


@feature.command(
    "upgrade",
    epilog=examples("kpybroker feature upgrade group.version=1", "kpybroker feature upgrade group.version=1 --dry-run"),
)
@_levels
@_dry_run
@output_option
@client_command
def upgrade(connection: Connection, levels: tuple[str, ...], dry_run: bool, output_format: str) -> int:
    """Finalize higher levels of features. Every registered broker must support them."""
    from kpybroker.client.actions import features
    from kpybroker.client.show.output import Output

    return features.update(connection, levels, features.UPGRADE, dry_run, Output(output_format))


@feature.command(
    "downgrade",
    epilog=examples(
        "kpybroker feature downgrade group.version=0",
        "kpybroker feature downgrade group.version=0 --unsafe",
    ),
)
@_levels
@click.option("--unsafe", is_flag=True, help="Also where it loses what the lower level does not know.")
@_dry_run
@output_option
@client_command
def downgrade(connection: Connection, levels: tuple[str, ...], unsafe: bool, dry_run: bool, output_format: str) -> int:
    """Finalize lower levels of features; 0: none, as before the feature."""
    from kpybroker.client.actions import features
    from kpybroker.client.show.output import Output

    kind = features.UNSAFE_DOWNGRADE if unsafe else features.SAFE_DOWNGRADE
    return features.update(connection, levels, kind, dry_run, Output(output_format))
