"""What all consumer groups of one machine share next to what groups of every kind do: their surroundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kpybroker.core.budget import StateBudget
from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.modern_group.shared import Shared

Downgrade = Callable[[Any, Any, Any], "list[Any] | None"]
"""Takes a step, a group, and those members that go: the records that make a classic group of it; None if it stays."""


def no_downgrade(step: Any, group: Any, leaving: Any) -> None:
    """The group stays what it is."""


class ConsumerShared(Shared):
    """`downgrade` is asked whenever members go; what it does is not known here."""

    __slots__ = ("downgrade", "surroundings")

    def __init__(self, surroundings: Surroundings, budget: StateBudget) -> None:
        super().__init__(surroundings.counts, budget)
        self.surroundings = surroundings
        self.downgrade: Downgrade = no_downgrade
