"""Plays: commands, and under a line of dashes exactly what comes of them; blocks are separated by blank lines.

They are in `plays/*.txt` next to their test; the stage they run on defines the commands. After a change
of behaviour, REWRITE_PLAYS=1 writes what happens now into the files, to be read in review.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Stage(Protocol):
    output: list[str]

    def perform(self, line: str) -> None: ...


def plays_beside(test: str) -> list[Path]:
    return sorted((Path(test).parent / "plays").glob("*.txt"))


def perform(text: str, new_stage: Callable[[], Stage]) -> str:
    """The play as it goes now. A block that starts with `scene` begins on a fresh stage."""
    stage = new_stage()
    blocks = []
    for block in text.strip().split("\n\n"):
        commands = block.split("\n----")[0].splitlines()
        stage.output = []
        for line in commands:
            if line.startswith("scene"):
                stage = new_stage()
            elif not line.startswith("#"):
                stage.perform(line)
        blocks.append("\n".join([*commands, "----", *stage.output]))
    return "\n\n".join(blocks) + "\n"


def goes_as_written(path: Path, new_stage: Callable[[], Stage]) -> None:
    written = path.read_text()
    played = perform(written, new_stage)
    if os.environ.get("REWRITE_PLAYS"):
        path.write_text(played)
    else:
        assert played == written
