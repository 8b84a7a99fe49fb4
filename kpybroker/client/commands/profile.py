"""`kpybroker profile`."""

from __future__ import annotations

import click

from kpybroker.client.commands.complete import profile_names
from kpybroker.client.commands.options import examples, execute_option, output_option, reported
from kpybroker.client.show.help import WholeGroup

name_argument = click.argument("name", metavar="PROFILE", shell_complete=profile_names)


@click.group(cls=WholeGroup)
def profile() -> None:
    """Profiles of clusters: list, show, set, unset, use, delete.

    A profile has the keys of a client: the address, the login, a schema registry. A command uses the profile that
    --profile names, else $KPYBROKER_PROFILE, else the one in use. Its other options and the environment override it.
    """


@profile.command("list", epilog=examples("kpybroker profile list", "kpybroker profile list --format json"))
@output_option
@reported
def list_profiles(output_format: str) -> int:
    """List the profiles, and which of them commands use."""
    from kpybroker.client.actions import profile as action
    from kpybroker.client.show.output import Output

    return action.show_list(Output(output_format))


@profile.command("show", epilog=examples("kpybroker profile show", "kpybroker profile show production"))
@click.argument("name", required=False, metavar="[PROFILE]", shell_complete=profile_names)
@output_option
@reported
def show(name: str | None, output_format: str) -> int:
    """Show the keys of a profile, or of the one that commands use. Passwords are shown as ***."""
    from kpybroker.client.actions import profile as action
    from kpybroker.client.show.output import Output

    return action.show(name, Output(output_format))


@profile.command(
    "set",
    epilog=examples(
        "kpybroker profile set local bootstrap.servers=127.0.0.1:9092",
        "kpybroker profile set production --from client.properties schema.registry.url=https://schemas",
        "kpybroker profile set production --ask sasl.password",
    ),
)
@name_argument
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--from", "file", type=click.Path(), metavar="FILE", help="First take all keys of a client's .properties file."
)
@click.option(
    "--ask",
    "asked",
    multiple=True,
    metavar="KEY",
    help="Read the value of KEY from the terminal, or a line of standard input: for passwords.",
)
@reported
def set_values(name: str, values: tuple[str, ...], file: str | None, asked: tuple[str, ...]) -> int:
    """Make a profile, or set keys of one; others stay as they are.

    Keys are those of Java's clients and of librdkafka, and schema.registry.url and basic.auth.user.info of a schema
    registry. Only its user can read the file.
    """
    from kpybroker.client.actions import profile as action

    return action.set_values(name, values, file, asked)


@profile.command("unset", epilog=examples("kpybroker profile unset production schema.registry.url"))
@name_argument
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@reported
def unset(name: str, keys: tuple[str, ...]) -> int:
    """Remove keys from a profile."""
    from kpybroker.client.actions import profile as action

    return action.unset(name, keys)


@profile.command("use", epilog=examples("kpybroker profile use production", "kpybroker profile use none"))
@name_argument
@reported
def use(name: str) -> int:
    """Let commands use a profile from now on; none: no profile."""
    from kpybroker.client.actions import profile as action

    return action.use(name)


@profile.command("delete", epilog=examples("kpybroker profile delete old", "kpybroker profile delete old --execute"))
@name_argument
@execute_option
@reported
def delete(name: str, execute: bool) -> int:
    """Delete a profile. Without --execute it shows what would be deleted."""
    from kpybroker.client.actions import profile as action

    return action.delete(name, execute)
