"""When a fault acts on the requests that its match selects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Trigger:
    """By default always. `skip` requests pass first; `nth` and `times` count those after them.

    `probability` is drawn once for each request after `skip`, from a generator seeded with `seed`, so that the same
    requests meet the same fate. `for_ms` is counted on the broker's clock from when the fault was added.
    """

    nth: int | None = None
    times: int | None = None
    skip: int = 0
    probability: float = 1.0
    seed: int = 0
    for_ms: int | None = None

    def fires(self, matches: int, fired: int, age_ms: float, chance: Callable[[], float]) -> bool:
        """Whether to act on this request: the `matches`-th selected one, after acting `fired` times."""
        number = matches - self.skip
        if number < 1:
            return False
        is_lucky = self.probability >= 1 or chance() < self.probability
        return (
            is_lucky
            and (self.nth is None or number == self.nth)
            and (self.times is None or fired < self.times)
            and (self.for_ms is None or age_ms < self.for_ms)
        )

    def is_over(self, matches: int, fired: int, age_ms: float) -> bool:
        """Whether it can never fire again."""
        return (
            (self.nth is not None and matches - self.skip >= self.nth)
            or (self.times is not None and fired >= self.times)
            or age_ms >= (inf if self.for_ms is None else self.for_ms)
        )
