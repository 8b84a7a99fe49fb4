"""What CI runs is the command that README and CONTRIBUTING show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CI = ROOT / ".ci" / "run"


def commands_of(page: str) -> list[str]:
    """The lines of a page's shell blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


@pytest.mark.skipif(not CI.exists(), reason="not in a source distribution")
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_ci_runs_the_command_that_a_page_shows(page: str) -> None:
    last = CI.read_text().splitlines()[-1]
    assert last.startswith("exec ")
    assert last.removeprefix("exec ") in commands_of(page)
