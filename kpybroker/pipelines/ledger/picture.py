"""The picture of the demo: the largest balances, and what became of the transfers that were begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kpybroker.pipelines.demo.pictures import Panel, legend
from kpybroker.pipelines.ledger.generator import Written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCOUNTS_MAX = 20


def panels(balances: Mapping[str, int], turns: Sequence[Written]) -> list[Panel]:
    """`balances` in the smallest unit; `turns` are what was written, a writer being killed after each."""
    return [lambda axes: largest(axes, balances), lambda axes: outcomes(axes, turns)]


def largest(axes: Axes, balances: Mapping[str, int]) -> None:
    """The accounts with the largest balances, negative ones below the axis."""
    shown = sorted(balances.items(), key=lambda one: (-abs(one[1]), one[0]))[:ACCOUNTS_MAX]
    heights = [balance / 100 for _, balance in shown]
    colors = ["#5b7a99" if height >= 0 else "#c0392b" for height in heights]
    axes.bar([account for account, _ in shown], heights, color=colors)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_title(f"The largest balances of {len(balances)}; the sum of all is {sum(balances.values())}")
    axes.tick_params("x", labelrotation=60)


def outcomes(axes: Axes, turns: Sequence[Written]) -> None:
    """How many transfers were committed, were aborted, and died with their writer, in each turn."""
    numbers = [str(number) for number in range(1, len(turns) + 1)]
    parts = {
        "committed": [turn.committed for turn in turns],
        "aborted": [turn.aborted for turn in turns],
        "writer killed": [1] * len(turns),
    }
    below = [0] * len(turns)
    for (label, heights), color in zip(parts.items(), ("#5b7a99", "#d8b365", "#c0392b"), strict=True):
        axes.bar(numbers, heights, bottom=below, label=f"{label}: {sum(heights)}", color=color)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_title("Transfers that were begun; only what is committed is in a balance")
    axes.set_xlabel("turn")
    legend(axes)
