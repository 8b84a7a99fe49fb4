"""Every story of the transaction coordinator as a play: commands, and under a line of dashes what comes of them.

Plays stand in `plays/*.txt`, blocks separated by blank lines; `stage.py` says what the commands are. After a change of
behaviour, REWRITE_PLAYS=1 writes what happens now into the files, to be read in review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.core.transaction.stage import Stage

PLAYS = sorted((Path(__file__).parent / "plays").glob("*.txt"))


def perform(text: str) -> str:
    """The play as it goes now. A block that starts with `scene` begins on a fresh stage."""
    stage = Stage()
    blocks = []
    for block in text.strip().split("\n\n"):
        commands = block.split("\n----")[0].splitlines()
        stage.output = []
        for line in commands:
            if line.startswith("scene"):
                stage = Stage()
            elif not line.startswith("#"):
                stage.perform(line)
        blocks.append("\n".join([*commands, "----", *stage.output]))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", PLAYS, ids=lambda path: path.stem)
def test_play_goes_as_written(path: Path) -> None:
    written = path.read_text()
    played = perform(written)
    if os.environ.get("REWRITE_PLAYS"):
        path.write_text(played)
    else:
        assert played == written
