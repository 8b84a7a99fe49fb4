"""Levels: with which earlier versions a new schema is compared, and in which direction."""

from __future__ import annotations

from typing import Final, NamedTuple


class Level(NamedTuple):
    """`backward`: the new schema reads old data. `forward`: old schemas read new data. `transitive`: all versions."""

    backward: bool
    forward: bool
    transitive: bool


LEVELS: Final = {
    "NONE": Level(False, False, False),
    "BACKWARD": Level(True, False, False),
    "BACKWARD_TRANSITIVE": Level(True, False, True),
    "FORWARD": Level(False, True, False),
    "FORWARD_TRANSITIVE": Level(False, True, True),
    "FULL": Level(True, True, False),
    "FULL_TRANSITIVE": Level(True, True, True),
}
DEFAULT: Final = "BACKWARD"
