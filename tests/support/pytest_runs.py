"""Runs of pytest as a project that has the plugin installed starts them: in a process and a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

RUN_S_MAX = 100
ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "kpybroker.pytest_plugin"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended. `counts`: how many tests "passed", "failed", "skipped"..."""

    code: int
    output: str
    counts: dict[str, int]


def run_pytest(directory: Path, tests: str, *options: str, ini: str = "") -> Run:
    """Run a file of tests. The plugin is loaded by name unless the entry point of an installation loads it."""
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text(f"[pytest]\n{ini}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    is_installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    plugins = [] if is_installed else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", *plugins, "-p", "no:cacheprovider", "-rs", *options, "test_it.py"]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    output = done.stdout + done.stderr
    last = done.stdout.strip().rpartition("\n")[2]
    return Run(done.returncode, output, {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", last)})
