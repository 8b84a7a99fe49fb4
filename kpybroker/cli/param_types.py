"""Types of options whose errors say what is accepted, and the class of commands that are no clients."""

from __future__ import annotations

from typing import Any

import click


class Number(click.IntRange):
    """A whole number from `low` to `high`, or of at least `low`."""

    def __init__(self, low: int, high: int | None = None) -> None:
        super().__init__(low, high)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Raises `click.BadParameter`, which says what is accepted."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            bounds = f"from {self.min} to {self.max}" if self.max is not None else f"of at least {self.min}"
            self.fail(f"{value!r} is not a whole number {bounds}.", param, ctx)


class Seconds(click.FloatRange):
    """A time from `least` to `most`."""

    def __init__(self, least: float, most: float = 1e9) -> None:
        super().__init__(min=least, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The seconds. Raises `click.BadParameter`, for `nan` too, which no bound excludes."""
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is no number.", param, ctx)
        return found


class CheckedCommand(click.Command):
    """A command that is no client, and refuses texts that are no UTF-8 as clients do."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. Raises `click.BadParameter`."""
        from kpybroker.client.commands.options import refuse_odd_texts

        refuse_odd_texts(ctx)
        return super().invoke(ctx)
