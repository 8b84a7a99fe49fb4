"""`kpybroker metrics`."""

from __future__ import annotations

import click

from kpybroker.client.commands.options import Seconds, examples, reported, stacked
from kpybroker.client.show.help import WholeGroup

REPORT_FORMATS = ("original", "properties", "csv", "tsv")

_source = stacked(
    click.argument("address", required=False),
    click.option(
        "--auth-file",
        type=click.Path(),
        metavar="FILE",
        help="Its first line is the USER:PASSWORD of HTTP's basic authentication.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(0.1),
        default=30.0,
        metavar="SECONDS",
        help="How long to wait for a response.  [default: 30]",
    ),
    click.option(
        "--wait",
        "wait_s",
        type=Seconds(0, 10**9),
        default=0.0,
        metavar="SECONDS",
        help="Try again for so long: until there is a broker, and an MBean of each name.  [default: 0]",
    ),
)


@click.group(cls=WholeGroup)
def metrics() -> None:
    """MBeans of a broker, ours or a Kafka with Jolokia's agent, read over HTTP."""


@metrics.command(
    "watch",
    epilog=examples(
        "kpybroker metrics watch --object-name 'kafka.server:type=BrokerTopic*,*' --attributes Count",
        "kpybroker metrics watch http://kafka.example.com:8778/jolokia --one-time --report-format tsv",
    ),
)
@_source
@click.option(
    "--object-name",
    "object_names",
    multiple=True,
    metavar="PATTERN",
    help="An MBean, or several by * and ?; may be repeated.  [default: all]",
)
@click.option("--attributes", metavar="NAME,...", help="Only these.  [default: all]")
@click.option(
    "--date-format", metavar="FORMAT", help="Of the time, as Java's SimpleDateFormat.  [default: milliseconds]"
)
@click.option(
    "--reporting-interval",
    "interval_ms",
    type=click.IntRange(min=-1),
    default=1000,
    metavar="MS",
    help="From one reading to the next; -1 reads once.  [default: 1000]",
)
@click.option("--one-time", "once", is_flag=True, help="Read once.")
@click.option(
    "--report-format",
    "form",
    type=click.Choice(REPORT_FORMATS, case_sensitive=False),
    default="original",
    help="A header and lines of CSV, or a line for each value.  [default: original]",
)
@reported
def watch(
    address: str | None,
    auth_file: str | None,
    timeout_s: float,
    wait_s: float,
    object_names: tuple[str, ...],
    attributes: str | None,
    date_format: str | None,
    interval_ms: int,
    once: bool,
    form: str,
) -> int:
    """Print the values of MBeans every second, as Kafka's JmxTool does, until Ctrl-C.

    ADDRESS is HOST:PORT or an URL of Jolokia: of a broker's kpybroker.metrics.port, or of a Kafka's Jolokia agent. It
    is 127.0.0.1:9404 unless given. The columns are those of the start.
    """
    from kpybroker.client.metrics import watch as action

    source = action.Source(address, timeout_s, auth_file, wait_s)
    return action.watch(source, action.Watch(object_names, attributes, form, date_format, interval_ms, once))


@metrics.command(
    "list",
    epilog=examples("kpybroker metrics list", "kpybroker metrics list --object-name 'kafka.controller:*'"),
)
@_source
@click.option("--object-name", "object_names", multiple=True, metavar="PATTERN", help="Only those that match.")
@reported
def list_(
    address: str | None, auth_file: str | None, timeout_s: float, wait_s: float, object_names: tuple[str, ...]
) -> int:
    """Print the names of MBeans, one a line. ADDRESS is as for `watch`."""
    from kpybroker.client.metrics import watch as action

    return action.list_names(action.Source(address, timeout_s, auth_file, wait_s), object_names)
