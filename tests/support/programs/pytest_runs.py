"""Runs of pytest as a project that has the plugin installed starts them: in a process and a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

RUN_S_MAX = 100
ROOT = Path(__file__).resolve().parents[3]
PLUGIN = "kpybroker.pytest_plugin"
OTHER_PLUGINS = ("trio", "hypothesispytest", "asyncio", "anyio")
"""Of the tests' own environment. To import them all takes a second of processor time."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended. `counts`: how many tests "passed", "failed", "skipped"..."""

    code: int
    output: str
    counts: dict[str, int]


def pytest_command(*options: str, others: Collection[str] = ()) -> list[str]:
    """Pytest with the plugin, which is loaded by name unless the entry point of an installation loads it.

    Of `OTHER_PLUGINS` only `others` are loaded.
    """
    # Of each distribution: pytest looks at all, also at a second one of the same name.
    found = {point.value for one in distributions() for point in one.entry_points if point.group == "pytest11"}
    plugins = [] if PLUGIN in found else [PLUGIN]
    plugins += [f"no:{name}" for name in ("cacheprovider", *OTHER_PLUGINS) if name not in others]
    return [sys.executable, "-m", "pytest", *(word for name in plugins for word in ("-p", name)), *options]


def pytest_environment() -> dict[str, str]:
    """That of this process, without what this run of pytest has put there."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    return environment


def run_pytest(directory: Path, tests: str, *options: str, ini: str = "", others: Collection[str] = ()) -> Run:
    """Run a file of tests."""
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text(f"[pytest]\n{ini}")
    done = subprocess.run(
        pytest_command("-rs", *options, "test_it.py", others=others),
        cwd=directory,
        env=pytest_environment(),
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    output = done.stdout + done.stderr
    last = done.stdout.strip().rpartition("\n")[2]
    return Run(done.returncode, output, {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", last)})
