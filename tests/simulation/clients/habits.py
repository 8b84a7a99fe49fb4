"""How members of groups come and go, of whichever kind of group."""

from __future__ import annotations

import random
from typing import NamedTuple

VANISHES = 0.02
"""Odds after each round of reading."""
STAYS = 0.5
"""Odds at the end: it does not leave."""
AWAY_S_MAX = 14.0
"""Twice as long as a session, and no time at all."""


class Vanished(Exception):
    """The member stops where it is, as a process that is killed, and says no word: its session has to end by itself."""


class Habits(NamedTuple):
    """`vanishes`: members stop without leaving. `is_static`: they have an instance id, and come back as the same."""

    vanishes: bool = False
    is_static: bool = False

    def may_vanish(self, chance: random.Random) -> None:
        """Raises `Vanished`, seldom."""
        if self.vanishes and chance.random() < VANISHES:
            raise Vanished

    def leaves(self, chance: random.Random) -> bool:
        """Whether it says so at its end."""
        return not (self.vanishes and chance.random() < STAYS)


NO_HABITS = Habits()
