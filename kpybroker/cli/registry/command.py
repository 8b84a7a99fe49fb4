"""`kpybroker registry`: its options. The registry itself is `kpybroker.registry`, imported when it runs."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from kpybroker.cli.param_types import Number
from kpybroker.client.commands.options import client_command

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

PACKAGES = ("confluent_kafka", "starlette", "uvicorn", "httpx", "jsonschema", "referencing", "grpc_tools")
"""Of the extra `registry`; some are of `console` too."""

EPILOG = """\b
Examples:
  kpybroker registry
  kpybroker registry -b kafka.example.com:9093 --command-config client.properties
  kpybroker registry --users-file users --add-user alice < password
  kpybroker registry --host 0.0.0.0 --users-file users --cert-file cert.pem --key-file key.pem

\b
Exit codes:
  0  stopped in order
  1  the cluster cannot be reached, or refuses; or no leader is elected
  2  a bad option, value or configuration file, or a package that is not installed
  5  the address cannot be bound: the port is taken, or the host is not here
"""


@click.command(epilog=EPILOG)
@click.option("--host", default="127.0.0.1", help="The address to bind; others than loopback need a login.")
@click.option("--port", type=Number(0, 65535), default=8081, help="0 takes a free one. [default: 8081]")
@click.option("--topic", default="_schemas", help="The compacted topic with the schemas. [default: _schemas]")
@click.option("--group", default="schema-registry", help="Instances of one group elect one that writes.")
@click.option("--never-leads", is_flag=True, help="Respond and forward only: another instance writes.")
@click.option("--advertised-url", metavar="URL", help="Where other instances reach this one. [default: host and port]")
@click.option("--users-file", type=click.Path(), metavar="FILE", help="Clients log in (Basic) as a user in FILE.")
@click.option("--add-user", metavar="NAME", help="Read a password from standard input, write NAME to FILE, and end.")
@click.option("--no-login", is_flag=True, help="Let everybody in who reaches --host.")
@click.option("--cert-file", type=click.Path(), metavar="FILE", help="Serve https with this certificate, in PEM.")
@click.option("--key-file", type=click.Path(), metavar="FILE", help="The certificate's key, in PEM.")
@click.option("--ca-file", type=click.Path(), metavar="FILE", help="What checks the leader's certificate, in PEM.")
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A host name by which clients reach it, besides --host and this machine's; * is any. May be repeated.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy whose X-Forwarded-For says who a client is, for the limit on wrong passwords. May be repeated.",
)
@click.option(
    "--log-level", type=click.Choice(("DEBUG", "INFO", "WARNING", "ERROR")), default="INFO", help="[default: INFO]"
)
@click.option("--exit-with", type=Number(1), hidden=True, help="Stop when this process ends.")
@click.option("--options-from-stdin", is_flag=True, hidden=True, help="Read lines of KEY=VALUE as -X takes them.")
@click.option("--socket", type=Number(0), hidden=True, help="The descriptor of a socket that listens already.")
@client_command
def registry(
    connection: Connection,
    host: str,
    port: int,
    topic: str,
    group: str,
    never_leads: bool,
    advertised_url: str | None,
    users_file: str | None,
    add_user: str | None,
    no_login: bool,
    cert_file: str | None,
    key_file: str | None,
    ca_file: str | None,
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
    log_level: str,
    exit_with: int | None,
    options_from_stdin: bool,
    socket: int | None,
) -> int:
    """Keep schemas in a topic, and serve them as Confluent's schema registry does: Avro, JSON Schema, Protobuf.

    It is a client like any other, for kpybroker and any other Kafka. Once ready it prints `kpybroker registry ready at
    URL` on standard output. It needs the extras: pip install 'kpybroker[registry]'.
    """
    from kpybroker.cli.health import exposure
    from kpybroker.cli.log_set_up import set_up_logging
    from kpybroker.client.connect.errors import usage
    from kpybroker.client.connect.settings import load

    _check_packages()
    from kpybroker.registry.api import users
    from kpybroker.registry.options import RegistryOptions
    from kpybroker.registry.serve import serve

    if add_user is not None:
        if users_file is None:
            raise usage("--add-user needs a file", "add --users-file FILE")
        users.add_user(users_file, add_user, sys.stdin.readline().rstrip("\r\n"))
        return 0
    if exit_with is not None:
        _end_with(exit_with)
    if options_from_stdin:
        connection = connection._replace(options=(*connection.options, *sys.stdin.read().splitlines()))
    settings = load(connection)
    known = None if users_file is None else users.load_users(users_file)
    set_up_logging("text", log_level, quiet=False)
    exposure.warn(exposure.of_files((users_file, key_file)))
    where, tls = (host, port, topic, group), (cert_file, key_file, ca_file)
    options = RegistryOptions(settings, *where, not never_leads, advertised_url, known, no_login, *tls, hosts, proxies)
    return serve(options, socket)


def _check_packages() -> None:
    from kpybroker.client.connect.errors import usage

    missing = next((name for name in PACKAGES if find_spec(name) is None), None)
    if missing is not None:
        raise usage(f"this command needs {missing}, which is not installed", "pip install 'kpybroker[registry]'")


def _end_with(pid: int) -> None:
    """Nothing here is kept, so the end may come at any time."""
    from kpybroker.control.process.exit_with import EXIT_CODE, exit_with

    exit_with(pid, lambda: os._exit(EXIT_CODE), lambda: None)
