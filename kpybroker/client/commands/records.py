"""`kpybroker topic produce` and `kpybroker topic consume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.complete import group_names, topic_names
from kpybroker.client.commands.options import INT32_MAX, AnyBytes, client_command, examples

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection


registry_option = click.option(
    "--schema-registry",
    metavar="URL",
    help="Where schemas are. Default: $KPYBROKER_SCHEMA_REGISTRY, else the profile's.",
)


@click.command(
    epilog=examples(
        "kpybroker topic consume orders",
        "kpybroker topic consume orders -o -10 -e -f '%p %o %k %v\\n'",
        "kpybroker topic consume orders -o @-1h -f json | jq .value",
        "kpybroker topic consume orders -o 100:200 -p 0",
        "kpybroker topic consume orders -g readers -n 5",
        "kpybroker topic consume jobs --share-group work --ack ask -f '%k %v\\n'",
        "kpybroker topic consume 'shop.*' -e -f '%t %k\\n'",
        "kpybroker topic consume orders --schema-registry http://127.0.0.1:8081",
    )
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topic_names)
@click.option(
    "-o",
    "--offset",
    default="start",
    metavar="OFFSET",
    help="start, end, 5, +5 (after the start), -5 (before the end), @TIME, @-1h, or a range: 5:9, :end, @T:@T. "
    " [default: start]",
)
@click.option("-n", "--num", type=click.IntRange(1), metavar="N", help="End after N records.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="End at the end of every partition, as it is now.")
@click.option("-p", "--partitions", multiple=True, metavar="N,...", help="Only these partitions: 0, 0,2, 0-3.")
@click.option(
    "-g", "--group", metavar="GROUP", shell_complete=group_names, help="Join a group, and commit what was printed."
)
@click.option(
    "--share-group",
    metavar="GROUP",
    shell_complete=group_names,
    help="Join a share group (a queue), and acknowledge each printed record: see --ack.",
)
@click.option(
    "--ack",
    type=click.Choice(("accept", "release", "reject", "ask")),
    default="accept",
    help="With --share-group: what becomes of a record.  [default: accept]",
)
@click.option(
    "-f",
    "--format",
    "format_name",
    type=AnyBytes(),
    default="value",
    metavar="FORMAT",
    help="value, wide, json (a line a record), yaml, or a format like '%t %p %o %k %v\\n'.  [default: value]",
)
@click.option("-Z", "--null", "show_null", is_flag=True, help="Print a null key or value as NULL.")
@registry_option
@click.option(
    "--decode",
    type=click.Choice(("value", "key", "both")),
    help="Print it as JSON, by the schema whose id is in front.  [with --schema-registry: value]",
)
@client_command
def consume(connection: Connection, **options: Any) -> int:
    """Print the records of topics, until Ctrl-C, -e or -n.

    A TOPIC may be a pattern with * and ?, which is looked up at the start; internal topics are named only.

    Of a share group, --ack accept and reject finish what was printed; release hands it back when the command ends;
    ask reads a, r or x for each record from standard input. -e ends when the group has no record for this member.

    \b
    A format has these verbs:
      %t %p %o %e  topic, partition, offset, leader epoch
      %k %v        key and value; %s is the value too
      %K %V %S     their lengths in bytes, -1 for null; %R four binary bytes
      %h %H        headers as name=value,... and their number
      %T %d        the timestamp in milliseconds; %i counts records; %% is %
      %D           how often a share group has delivered the record
    \b
    In braces: %k{hex}, %v{base64}, %v{json}, %d{iso}, %d{s},
    %d{strftime[%F %T]}, and for each header %h{%k=%v;}.
    Escapes: \\n \\t \\r \\0 \\\\ \\xHH.

    JSON lines lose nothing, and `kpybroker topic produce -f json` reads them. Avro, Protobuf and JSON Schema are
    decoded with a schema registry (kpybroker[schemas]); what cannot be is printed as it is, and is a failure.
    """
    from kpybroker.client.actions import consume as action

    return action.consume(connection, action.ConsumeOptions(**options))


@click.command(
    epilog=examples(
        "echo hello | kpybroker topic produce demo",
        "printf 'k1:v1\\nk2:v2\\n' | kpybroker topic produce demo -K: -z zstd",
        "kpybroker topic produce demo -k key -H source=shell < lines.txt",
        "kpybroker topic consume a -e -f json | kpybroker topic produce b -f json --create",
        "kpybroker topic produce demo lines.txt",
        "kpybroker topic produce demo -f '%k\\t%v' < pairs.tsv",
        "echo '{\"id\": 7}' | kpybroker topic produce orders --value-schema orders-value",
    )
)
@click.argument("topic", required=False, shell_complete=topic_names)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option(
    "-f",
    "--format",
    "format_name",
    type=AnyBytes(),
    default="line",
    metavar="FORMAT",
    help="line, json (as consume writes it), or a format with %k %v %t %p %T.  [default: line]",
)
@click.option("-k", "--key", type=AnyBytes(), metavar="KEY", help="The key of records that have none.")
@click.option(
    "-K", "--key-separator", type=AnyBytes(), metavar="SEP", help="What separates the key from the value in a line: -K:"
)
@click.option(
    "-D", "--delimiter", type=AnyBytes(), default="\\n", metavar="SEP", help="What ends a record.  [default: \\n]"
)
@click.option(
    "-H", "--header", "headers", type=AnyBytes(), multiple=True, metavar="NAME=VALUE", help="A header of every record."
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(-1, INT32_MAX),
    metavar="N",
    help="All into partition N; -1: chosen by the key.",
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice(("none", "gzip", "snappy", "lz4", "zstd")),
    help="Compress batches.  [default: none]",
)
@click.option("-Z", "--null", "empty_is_null", is_flag=True, help="Send an empty key or value as null.")
@click.option(
    "-o",
    "--output-format",
    type=AnyBytes(),
    metavar="FORMAT",
    help="Print each record once it is delivered: '%p %o\\n', or json.",
)
@click.option(
    "--undelivered", type=click.Path(dir_okay=False), metavar="FILE", help="Append what fails to FILE, as JSON lines."
)
@click.option(
    "--create",
    is_flag=True,
    help="Make topics and partitions that records need; like the topic that a JSON line names, if there is one.",
)
@registry_option
@click.option("--value-schema", metavar="ID|SUBJECT", help="Values are JSON, written by this schema, with its id.")
@click.option("--key-schema", metavar="ID|SUBJECT", help="Keys are JSON, written by this schema, with its id.")
@click.option("--message", metavar="NAME", help="The message of a Protobuf value.  [default: the schema's first]")
@client_command
def produce(connection: Connection, **options: Any) -> int:
    """Send records from FILE or standard input, one a line.

    Without TOPIC each record names its own, as JSON lines do. Keys choose the partition as Java's clients do. A JSON
    line's partition is kept unless -p says otherwise, and its value may be any JSON. Sending is idempotent, with
    acks=all; -X changes it.

    It reports how many records were delivered. At the first line that is no record, or the first failure that others
    will have too, it stops reading and says at which line to go on; with --undelivered it goes on.
    """
    from kpybroker.client.actions.producing import produce as action
    from kpybroker.client.actions.producing.options import ProduceOptions

    return action.produce(connection, ProduceOptions(**options))
