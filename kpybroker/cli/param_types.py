"""Types of options whose errors say what is accepted."""

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
