"""`kpybroker console`: its options. The console itself is `kpybroker.console`, imported when it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kpybroker.cli.param_types import Number
from kpybroker.client.commands.options import clusters_command

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection, Settings

PASSWORD = "KPYBROKER_CONSOLE_PASSWORD"

EPILOG = """\b
Examples:
  kpybroker console
  kpybroker console -b kafka.example.com:9093 --command-config client.properties
  kpybroker console --control http://127.0.0.1:9099 --allow-changes
  kpybroker console --host 0.0.0.0 --password-file /run/secrets/console
  kpybroker console --connect http://127.0.0.1:8083
  kpybroker console --cluster test=127.0.0.1:9092 --profile staging --profile production

\b
Exit codes:
  0  stopped in order
  1  the cluster cannot be reached, or refuses
  2  a bad option, value or configuration file, or a package that is not installed
  5  the address cannot be bound: the port is taken, or the host is not here
"""


@click.command(epilog=EPILOG)
@click.option("--host", default="127.0.0.1", help="The address to bind; others than loopback need a login.")
@click.option("--port", type=Number(0, 65535), default=8080, help="0 takes a free one. [default: 8080]")
@click.option("--allow-changes", is_flag=True, help="Let pages change the cluster; without it they only read.")
@click.option(
    "--password-file",
    type=click.Path(),
    metavar="FILE",
    help=f"Browsers log in with the password in FILE, or in ${PASSWORD}.",
)
@click.option(
    "--user-header",
    metavar="NAME",
    help="A proxy in front logs users in and sends NAME; it must remove NAME from what browsers send.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="From where a proxy's headers count: an address or a network, repeatable. [default: this machine]",
)
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A host name that browsers may use for the console, besides --host and loopback. May be repeated.",
)
@click.option(
    "--control",
    metavar="URL",
    help="The control channel of `kpybroker dev --control`: requests, faults and the clock get pages.",
)
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="A cluster by its name; repeated, one console shows them all. --profile may be repeated, too.",
)
@click.option(
    "--metrics-url",
    "metrics",
    multiple=True,
    metavar="[CLUSTER=]URL",
    help="Where a broker serves its metrics to Prometheus; one for each broker. Pages show rates and sizes from them.",
)
@click.option(
    "--schema-registry",
    "registries",
    multiple=True,
    metavar="[CLUSTER=]URL",
    help="Decode messages with schemas from there, or from $KPYBROKER_SCHEMA_REGISTRY, or the profile's registry.",
)
@click.option(
    "--connect",
    "connects",
    multiple=True,
    metavar="[[CLUSTER/]NAME=]URL",
    help="The REST of a Kafka Connect, with USER:PASSWORD@ before its host if it asks for a login. May be repeated.",
)
@click.option("--exit-with", type=Number(1), hidden=True, help="Stop when this process ends.")
@click.option("--options-from-stdin", is_flag=True, hidden=True, help="Read lines of KEY=VALUE as -X takes them.")
@click.option("--socket", type=Number(0), hidden=True, help="The descriptor of a socket that listens already.")
@clusters_command
def console(
    connection: Connection,
    profiles: tuple[str, ...],
    host: str,
    port: int,
    allow_changes: bool,
    password_file: str | None,
    user_header: str | None,
    proxies: tuple[str, ...],
    hosts: tuple[str, ...],
    control: str | None,
    clusters: tuple[str, ...],
    metrics: tuple[str, ...],
    registries: tuple[str, ...],
    connects: tuple[str, ...],
    exit_with: int | None,
    options_from_stdin: bool,
    socket: int | None,
) -> int:
    """Show the cluster in the browser: topics, messages, groups, access, and for development faults and requests.

    It is a client like any other, for kpybroker and any other Kafka. Once ready it prints `kpybroker console ready at
    URL` on standard output. It needs the extras: pip install 'kpybroker[console]'.
    """
    from kpybroker.cli.console import clusters as named
    from kpybroker.cli.health import exposure
    from kpybroker.cli.log_set_up import set_up_logging
    from kpybroker.console.options import Around, ConsoleOptions, parse_proxies, several
    from kpybroker.console.serve import serve

    if exit_with is not None:
        _end_with(exit_with)
    password = read_password(password_file)
    set_up_logging("text", "WARNING", quiet=False)
    exposure.warn(exposure.of_files((password_file,)))
    if options_from_stdin:
        connection = connection._replace(options=(*connection.options, *sys.stdin.read().splitlines()))
    settings = named.settings_of(connection, profiles, clusters)

    def made(found: Settings) -> ConsoleOptions:
        protection = allow_changes, password, user_header, hosts, control
        return ConsoleOptions(found, host, port, *protection, proxies=parse_proxies(proxies))

    around = Around(connects, metrics, registries)
    if not settings:
        return serve(named.one(connection, made, around), socket)
    found = several(made(next(iter(settings.values()))), settings, around)
    return serve(found[0], socket, found if len(found) > 1 else ())


def _end_with(pid: int) -> None:
    """Nothing here is kept, so the end may come at any time."""
    from kpybroker.control.process.exit_with import EXIT_CODE, exit_with

    exit_with(pid, lambda: os._exit(EXIT_CODE), lambda: None)


def read_password(file: str | None) -> str | None:
    """The password that browsers log in with; None for none. Raises CommandError for a file that has none."""
    from kpybroker.client.connect.errors import keep_secret, usage

    if file is None:
        password = os.environ.get(PASSWORD) or None
    else:
        try:
            password = Path(file).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise usage(f"{file} cannot be read: {error}", "name a file that holds the password alone") from None
        if not password:
            raise usage(f"{file} is empty", "write the password into it")
    if password is not None:
        keep_secret([password])
    return password
