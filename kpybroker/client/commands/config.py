"""`kpybroker config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpybroker.client.commands.options import client_command, examples, output_option
from kpybroker.client.show.help import WholeGroup

if TYPE_CHECKING:
    from kpybroker.client.connect.settings import Connection

    Choice = click.Choice[str]
else:
    Choice = click.Choice  # click before 8.2 has no parameters of types

PLURALS = {"topics": "topic", "brokers": "broker", "groups": "group"}


class _Kind(Choice):
    """`topic`, `broker`, `group` or `client-metrics`; the plural is accepted."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(PLURALS.get(value, value), param, ctx)


KINDS = ("topic", "broker", "group", "client-metrics")
kind_argument = click.argument("kind", type=_Kind(KINDS), metavar="|".join(KINDS))
name_argument = click.argument("name")


@click.group(cls=WholeGroup)
def config() -> None:
    """Settings of topics, brokers, groups and client metrics: list, describe, get, set, unset.

    A broker is named by its id; `default` is the setting of all brokers. A group need not exist. Client metrics are
    subscriptions: which metrics clients push, how often, and which clients. One ends when all its keys are unset.
    """


@config.command(
    "list",
    epilog=examples(
        "kpybroker config list topic", "kpybroker config list broker", "kpybroker config list group 'app-*'"
    ),
)
@kind_argument
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@output_option
@client_command
def list_configs(connection: Connection, kind: str, patterns: tuple[str, ...], output_format: str) -> int:
    """List what was set for topics, groups or client metrics, or for brokers while they ran."""
    from kpybroker.client.actions import configs
    from kpybroker.client.show.output import Output

    return configs.show_list(connection, kind, patterns, Output(output_format))


@config.command(
    "describe",
    epilog=examples("kpybroker config describe topic orders --all", "kpybroker config describe broker 0"),
)
@kind_argument
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-a", "--all", "everything", is_flag=True, help="The defaults, and what server.properties sets, too.")
@output_option
@client_command
def describe(connection: Connection, kind: str, names: tuple[str, ...], everything: bool, output_format: str) -> int:
    """Show the settings of topics, brokers, groups or client metrics, and where each value is from."""
    from kpybroker.client.actions import configs
    from kpybroker.client.show.output import Output

    return configs.show_describe(connection, kind, names, everything, Output(output_format))


@config.command(
    "get",
    epilog=examples("kpybroker config get topic orders retention.ms", "kpybroker config get broker 0 log.retention.ms"),
)
@kind_argument
@name_argument
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@output_option
@client_command
def get(connection: Connection, kind: str, name: str, keys: tuple[str, ...], output_format: str) -> int:
    """Print the value of a KEY, and nothing else; of several keys, a table."""
    from kpybroker.client.actions import configs
    from kpybroker.client.show.output import Output

    return configs.get(connection, kind, name, keys, Output(output_format))


@config.command(
    "set",
    epilog=examples(
        "kpybroker config set topic orders retention.ms=86400000 cleanup.policy=compact",
        "kpybroker config set broker 0 log.cleaner.threads=2",
        "kpybroker config set broker default message.max.bytes=2000000",
        "kpybroker config set group readers consumer.session.timeout.ms=60000",
        "kpybroker config set client-metrics slow metrics=org.apache.kafka.producer. interval.ms=5000",
    ),
)
@kind_argument
@name_argument
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
@output_option
@client_command
def set_values(connection: Connection, kind: str, name: str, values: tuple[str, ...], output_format: str) -> int:
    """Set keys; others stay as they are."""
    from kpybroker.client.actions import configs
    from kpybroker.client.actions.resources import parse_changes
    from kpybroker.client.show.output import Output

    return configs.change(connection, kind, name, parse_changes(set_=values), Output(output_format))


@config.command(
    "unset",
    epilog=examples(
        "kpybroker config unset topic orders retention.ms", "kpybroker config unset broker default message.max.bytes"
    ),
)
@kind_argument
@name_argument
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@output_option
@client_command
def unset(connection: Connection, kind: str, name: str, keys: tuple[str, ...], output_format: str) -> int:
    """Return keys to their defaults."""
    from kpybroker.client.actions import configs
    from kpybroker.client.actions.resources import parse_changes
    from kpybroker.client.show.output import Output

    return configs.change(connection, kind, name, parse_changes(delete=keys), Output(output_format))
