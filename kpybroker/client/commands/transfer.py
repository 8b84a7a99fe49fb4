"""`kpybroker replay` and `kpybroker mirror`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import profile_names, topic_names
from kpybroker.client.commands.options import client_command, examples

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

by_key_option = click.option(
    "--by-key", is_flag=True, help="Choose the partition by the key. Default: the number stays what it was."
)
create_option = click.option(
    "--create",
    is_flag=True,
    help="Make topics and partitions that the target lacks, with the source's settings and the target's replicas.",
)
num_option = click.option("-n", "--num", type=click.IntRange(1), metavar="N", help="End after N records.")


@click.command(
    epilog=examples(
        "kpybroker replay orders orders-again",
        "kpybroker replay orders orders-test -o @-1h",
        "kpybroker replay dead-letters orders -o 100:200 -p 0 --by-key",
        "kpybroker replay orders orders-raw --create -X isolation.level=read_uncommitted",
    )
)
@click.argument("source", metavar="SOURCE", shell_complete=topic_names)
@click.argument("target", metavar="TARGET", shell_complete=topic_names)
@click.option(
    "-o",
    "--offset",
    default="start",
    metavar="OFFSET",
    help="start, 5, +5 (after the start), -5 (before the end), @TIME, @-1h, or a range: 5:9, @T:@T.  [default: start]",
)
@num_option
@click.option("-p", "--partitions", multiple=True, metavar="N,...", help="Only these partitions: 0, 0,2, 0-3.")
@by_key_option
@create_option
@client_command
def replay(connection: Connection, **options: Any) -> int:
    """Copy the records of topic SOURCE into topic TARGET.

    Keys, values, headers and timestamps stay as they are; records of aborted transactions are left out. It ends at the
    end of each partition as it is at the start. At the first record that TARGET does not acknowledge, and at Ctrl-C,
    it stops and says at which offsets to go on.
    """
    from kpybroker.client.transfer import replay as action

    return action.replay(connection, action.ReplayOptions(**options))


@click.command(
    epilog=examples(
        "kpybroker mirror orders -b old:9092 --to new:9092",
        "kpybroker mirror 'shop.*' -b old:9092 --to new:9092 --create -e",
        "kpybroker mirror orders --profile old --to-profile new",
        "kpybroker mirror orders -b old:9092 --to-config new.properties --to-option compression.type=zstd",
    )
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
@click.option("--to", metavar="HOST:PORT,...", help="The cluster to copy to; -b is the one to copy from.")
@click.option(
    "--to-config",
    type=click.Path(),
    metavar="FILE",
    help="A client's .properties file for the target, as --command-config.",
)
@click.option("--to-profile", metavar="PROFILE", shell_complete=profile_names, help="A profile, for the target.")
@click.option("--to-option", "to_options", multiple=True, metavar="KEY=VALUE", help="As -X, for the target.")
@click.option(
    "-g",
    "--group",
    metavar="GROUP",
    help="Whose offsets in the source say what is copied.  [default: kpybroker-mirror-, and the target's cluster id]",
)
@num_option
@click.option(
    "-e", "--exit", "exit_at_end", is_flag=True, help="End when all is copied up to the ends, by every member."
)
@by_key_option
@create_option
@client_command
def mirror(connection: Connection, **options: Any) -> int:
    """Copy topics to another cluster, into topics of the same name, until Ctrl-C, -e or -n.

    A TOPIC may be a pattern with * and ?, which is looked up at the start. Keys, values, headers and timestamps stay as
    they are; records of aborted transactions are left out. Each record is copied at least once: a mirror that is
    started again goes on where its group has committed, and after a crash it copies up to 2000 records a second time.
    Later changes of settings, ACLs, and offsets of other groups are not copied.
    """
    from kpybroker.client.transfer import mirror as action

    return action.mirror(connection, action.MirrorOptions(**options))
