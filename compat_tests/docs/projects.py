"""The projects in docs/examples as a reader copies them: their README's commands in a fresh environment.

    python -m compat_tests.docs.projects [NAME...]     # run them, and write the picture of each report

A picture is what pytest prints, without times and paths, and a test says whether it still does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from compat_tests.deps import jars_dir
from compat_tests.packaging import environments
from compat_tests.packaging.pythons import ROOT
from tests.support.programs.samples import module_of

EXAMPLES: Final = ROOT / "docs" / "examples"
NAMES: Final = tuple(sorted(readme.parent.name for readme in EXAMPLES.glob("*/README.md")))
CHECKOUT: Final = "../kpybroker"
RUN_S_MAX: Final = 600
OUTCOME = re.compile(r"^(test_\S+::\S+) (PASSED|FAILED|ERROR|SKIPPED)|^=+ (\d+ [a-z, 0-9]+?) in ", re.MULTILINE)


def commands(name: str) -> list[list[str]]:
    """The words of each command in the README, in order."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


def report(name: str, place: Path, wheel: Path) -> list[str]:
    """Copy the project, run its README's commands, and return the report. Fails if a command does."""
    folder = shutil.copytree(EXAMPLES / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    python = environments.create(place / "environment", Path(sys.executable), ["pip"])
    jars = {"SPARK_KAFKA_JARS": str(jars_dir("spark-4.0.0"))} if name.startswith("spark") else {}
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" and "PYTEST" not in key}
    lines: list[str] = []
    for words in commands(name):
        assert words[0] == "python", words
        command = [str(python), *(str(wheel) if word == CHECKOUT else word for word in words[1:])]
        done = subprocess.run(
            command, cwd=folder, env=kept | jars, capture_output=True, text=True, timeout=RUN_S_MAX, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        if found := reported(done.stdout):
            lines += [f"$ {' '.join(words)}", *found]
    return lines


def reported(output: str) -> list[str]:
    """Of what pytest prints, the tests with their outcomes, and how many there were."""
    found = OUTCOME.findall(output)
    return [f"{test} {outcome}" if test else re.sub(r", \d+ warnings?", "", total) for test, outcome, total in found]


def draw(name: str, lines: list[str]) -> None:
    """Write the picture, and its lines next to it."""
    terminal = module_of(ROOT / "docs" / "_ext" / "terminal.py")
    (EXAMPLES / name / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (EXAMPLES / name / "report.svg").write_text(terminal.drawing(lines), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        _, built = environments.build(Path(directory) / "dist")
        for one in sys.argv[1:] or NAMES:
            draw(one, report(one, Path(directory) / "projects" / one, built))
            print(f"{one}: written", flush=True)
