"""`kpybroker doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kpybroker.client.commands.options import client_command, examples, output_option

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection


@click.command(
    epilog=examples(
        "kpybroker doctor",
        "kpybroker doctor broker.example.com:9093 --command-config client.properties",
        "kpybroker doctor 127.0.0.1:9092 --write",
    )
)
@click.argument("addresses", nargs=-1, metavar="[ADDRESS]...")
@click.option(
    "--write",
    is_flag=True,
    help="Write and read a record in a topic of its own, which is deleted again, and compare the brokers' clocks.",
)
@output_option
@client_command
def doctor(connection: Connection, addresses: tuple[str, ...], write: bool, output_format: str) -> int:
    """Find out why a client cannot work with a cluster, with a fix for each finding.

    It looks at the name, the connection, what the port speaks, versions, certificates, login, the addresses that the
    brokers advertise, leaders and replicas, and clocks. Nothing is changed unless --write is given.

    ADDRESS is HOST:PORT, by default that of -b. It works without the extra `tools`; the exit code is 1 if anything
    failed, 0 otherwise.
    """
    from kpybroker.client.doctor import run

    if addresses:
        connection = connection._replace(bootstrap=",".join(addresses))
    return run.doctor(connection, write, output_format)
