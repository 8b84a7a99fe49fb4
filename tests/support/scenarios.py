"""Scenarios: commands, and below a line of dashes their exact output; blocks are separated by blank lines.

They are in `scenarios/*.txt` next to their test, whose harness defines the commands. After a change of behaviour,
REWRITE_SCENARIOS=1 writes the present output into the files, for review.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Harness(Protocol):
    output: list[str]

    def perform(self, line: str) -> None: ...


def scenarios_of(test: str) -> list[Path]:
    return sorted((Path(test).parent / "scenarios").glob("*.txt"))


def perform(text: str, new_harness: Callable[[], Harness]) -> str:
    """The text with its present output. A block that starts with `scenario` has a new harness."""
    harness = new_harness()
    blocks = []
    for block in text.strip().split("\n\n"):
        commands = block.split("\n----")[0].splitlines()
        harness.output = []
        for line in commands:
            if line.startswith("scenario "):
                harness = new_harness()
            elif not line.startswith("#"):
                harness.perform(line)
        blocks.append("\n".join([*commands, "----", *harness.output]))
    return "\n\n".join(blocks) + "\n"


def check_scenarios(path: Path, new_harness: Callable[[], Harness]) -> None:
    written = path.read_text()
    actual = perform(written, new_harness)
    if os.environ.get("REWRITE_SCENARIOS"):
        path.write_text(actual)
    else:
        assert actual == written
