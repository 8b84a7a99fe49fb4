"""The Pythons of this machine: those that the wheel must work with, each found where installers put them.

    python -m compat_tests.packaging.pythons     # which ones are here

What a machine lacks, `compat_tests.deps` may bring (`make test-deps`). Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
FETCHED = ROOT / ".cache" / "python"
"""`<version>/bin/python<version>`: what `compat_tests.deps` brought."""

_PROBE = "import ensurepip, sqlite3, ssl, sys, venv; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"


def find(version: str) -> Path | None:
    """A CPython of that minor version that runs, and is complete enough for a virtual environment; None without one.

    Those of the machine go first. A shim of pyenv for a version that is not selected exists but does not run.
    """
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    yield from (Path(place, name) for place in ("/usr/bin", "/usr/local/bin"))
    if (on_path := shutil.which(name)) is not None:
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"), reverse=True)
    yield FETCHED / version / "bin" / name


def _runs(path: Path, version: str) -> bool:
    if not path.is_file():
        return False
    done = subprocess.run([path, "-I", "-c", _PROBE], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.split() == [version, "cpython"]


if __name__ == "__main__":
    for wanted in VERSIONS:
        print(wanted, find(wanted) or "is not here")
