"""`kpybroker doctor` and `kpybroker verify-replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kpybroker.client.commands.complete import topic_names
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


@click.command(
    "verify-replicas", epilog=examples("kpybroker verify-replicas orders", "kpybroker verify-replicas 'app-*'")
)
@click.argument("patterns", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
@output_option
@client_command
def verify_replicas(connection: Connection, patterns: tuple[str, ...], output_format: str) -> int:
    """Compare the logs of all replicas of topics, up to the high watermark. A TOPIC may be a pattern with * and ?.

    It reads every replica, followers too, as a debugging consumer, and computes each batch's checksum. In a compacted
    topic it compares the records that all replicas still have. The exit code is 1 if replicas differ, or if one has
    nothing new within --timeout.
    """
    from kpybroker.client.doctor import replicas
    from kpybroker.client.show.output import Output

    return replicas.verify(connection, patterns, Output(output_format))
