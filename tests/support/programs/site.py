"""The site of these pages, built once in a process: `tests/scopes.py` gives its tests to one worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.support.programs.samples import ROOT, module_of

BUILD_S_MAX = 600


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kpybroker-site-")  # gone when the process ends


@cache
def built_site() -> Path:
    """Where it is: as HTML, or as text, which has no pictures, without graphviz. A warning fails."""
    out = Path(_place().name)
    builder = "html" if shutil.which("dot") else "text"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "docs", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert done.returncode == 0, done.stderr
    return out


def reference_of_testing() -> ModuleType:
    """What writes the reference of `kpybroker.testing`. Needs Sphinx."""
    extensions = ROOT / "docs" / "_ext"
    sys.path.insert(0, str(extensions))
    try:
        return module_of(extensions / "reference.py")
    finally:
        sys.path.pop(0)


def public(reference: ModuleType) -> set[str]:
    """Every name of that reference that has an entry, but fields of values."""
    found = {"wait_for", "pytest.mark.kafka", *(node.name for node in reference.fixtures())}
    for name, cls in reference.classes().items():
        found.add(name)
        if not issubclass(cls, BaseException):
            found |= {f"{name}.{member}" for member in reference.members(cls)}
    return found
