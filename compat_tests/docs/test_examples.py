"""Each project in docs/examples, run as a reader runs it: in a copy of its folder, with nothing but the plugin."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from compat_tests.deps import jars_dir
from tests.support.programs.pytest_runs import pytest_command, pytest_environment

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
RUN_S_MAX = 300
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/test_*.py"))


def test_there_are_ten() -> None:
    assert len(NAMES) == 10
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.wide] if name.startswith("spark") else []) for name in NAMES]
)
def test_its_tests_pass(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name)
    environment = {**pytest_environment(), "SPARK_KAFKA_JARS": str(jars_dir("spark-4.0.0"))}
    done = subprocess.run(
        pytest_command("-q", others=["asyncio"] if name == "web_service" else []),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed(, \d+ warnings?)? in ", done.stdout, re.MULTILINE), done.stdout
