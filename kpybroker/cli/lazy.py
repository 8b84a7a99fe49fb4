"""`LazyGroup`: the commands that talk to a cluster, imported when one of them or the list of all is asked for."""

from __future__ import annotations

import click

from kpybroker.cli.param_types import CheckedCommand

CLIENT_COMMANDS = (
    *("topic", "group", "offsets", "config", "cluster", "partition", "feature", "transaction", "acl", "user", "quota"),
    *("replay", "mirror", "verify-replicas", "metrics", "doctor", "profile", "completion"),
)
LAZY_COMMANDS = (*CLIENT_COMMANDS, "console", "registry")


class WholeGroup(click.Group):
    """A group whose help has the summary of each command whole."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their summaries, in the order of the group."""
        from kpybroker.client.show.help import write_summaries

        write_summaries(self, ctx, formatter)


class LazyGroup(WholeGroup):
    """A group whose client commands are declared in `kpybroker.client.commands`."""

    command_class = CheckedCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        """First those that run a broker, then those that talk to one."""
        return [*super().list_commands(ctx), *LAZY_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None if there is none."""
        return _lazy_command(cmd_name) if cmd_name in LAZY_COMMANDS else super().get_command(ctx, cmd_name)


def _lazy_command(name: str) -> click.Command | None:
    match name:
        case "console":
            from kpybroker.cli.console.command import console

            return console
        case "registry":
            from kpybroker.cli.registry.command import registry

            return registry
        case _:
            return _client_command(name)


def _client_command(name: str) -> click.Command | None:
    """Written out, so that linters and editors follow the imports."""
    return _of_records(name) or _of_the_cluster(name) or _of_security(name) or _of_none(name)


def _of_records(name: str) -> click.Command | None:
    """Topics and who reads them."""
    match name:
        case "topic":
            from kpybroker.client.commands.topic import topic

            return topic
        case "group":
            from kpybroker.client.commands.group import group

            return group
        case "offsets":
            from kpybroker.client.commands.offsets import offsets

            return offsets
        case "transaction":
            from kpybroker.client.commands.transaction import transaction

            return transaction
        case "replay" | "mirror":
            from kpybroker.client.commands.transfer import mirror, replay

            return replay if name == "replay" else mirror
        case _:
            return None


def _of_the_cluster(name: str) -> click.Command | None:
    """Brokers and what they keep."""
    match name:
        case "config":
            from kpybroker.client.commands.config import config

            return config
        case "cluster":
            from kpybroker.client.commands.cluster import cluster

            return cluster
        case "partition":
            from kpybroker.client.commands.partition import partition

            return partition
        case "feature":
            from kpybroker.client.commands.feature import feature

            return feature
        case "doctor" | "verify-replicas":
            from kpybroker.client.commands.doctor import doctor, verify_replicas

            return doctor if name == "doctor" else verify_replicas
        case _:
            return None


def _of_security(name: str) -> click.Command | None:
    """Who may do what."""
    match name:
        case "acl":
            from kpybroker.client.commands.security.acl import acl

            return acl
        case "user":
            from kpybroker.client.commands.security.user import user

            return user
        case "quota":
            from kpybroker.client.commands.security.quota import quota

            return quota
        case _:
            return None


def _of_none(name: str) -> click.Command | None:
    """Commands that do not speak Kafka."""
    match name:
        case "metrics":
            from kpybroker.client.commands.metrics import metrics

            return metrics
        case "profile":
            from kpybroker.client.commands.profile import profile

            return profile
        case "completion":
            from kpybroker.client.commands.complete import completion

            return completion
        case _:
            return None
