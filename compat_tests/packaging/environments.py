"""Distributions built from this tree, and fresh virtual environments with nothing of this tree on their path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_tests.packaging.pythons import ROOT

SECONDS_MAX = 300


def build(out: Path) -> tuple[Path, Path]:
    """(sdist, wheel); the wheel is built from the sdist. Needs no network."""
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)])
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def create(place: Path, python: Path, requirements: Sequence[str]) -> Path:
    """The Python of a new virtual environment in `place` with `requirements` from a package index."""
    created = place / "bin" / "python"
    uv("venv", "--quiet", "--python", str(python), str(place))
    uv("pip", "install", "--quiet", "--python", str(created), *requirements)
    return created


def dependencies(extra: str = "") -> list[str]:
    """The requirements of the package, or of one of its extras, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return found


def lowest(requirements: Iterable[str]) -> list[str]:
    """Each requirement fixed to its lower bound. Raises ValueError for one without."""
    return [_at_lower_bound(requirement) for requirement in requirements]


def _at_lower_bound(requirement: str) -> str:
    match = re.match(r"([\w.-]+)(?:.*,)?\s*>=\s*([\w.]+)", requirement)
    if match is None:
        raise ValueError(f"{requirement} has no lower bound")
    return f"{match[1]}=={match[2]}"


def uv(*arguments: str) -> None:
    """Run the test environment's own uv, which makes an environment in a second."""
    run([str(Path(sys.executable).with_name("uv")), *arguments])


def run(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    """What the command prints. Fails with all its output if it does not end with 0.

    Its environment has neither this tree nor a setting of pytest's in it. Its uv trusts whom
    the machine trusts, as pip does.
    """
    ours = ("PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in ours and "PYTEST" not in name}
    environment["UV_SYSTEM_CERTS"] = "1"
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
