"""The help of a group of commands, with the summary of each of them whole."""

from __future__ import annotations

from typing import Final

import click

UNLIMITED: Final = 10_000


class WholeGroup(click.Group):
    """Folds the first sentence of a command's help where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their summaries, in the order of the group."""
        write_summaries(self, ctx, formatter)


def write_summaries(group: click.Group, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The commands of any group, with their summaries."""
    found = [(name, group.get_command(ctx, name)) for name in group.list_commands(ctx)]
    rows = [
        (name, command.get_short_help_str(UNLIMITED))
        for name, command in found
        if command is not None and not command.hidden
    ]
    if rows:
        with formatter.section("Commands"):
            formatter.write_dl(rows)
