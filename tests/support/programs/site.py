"""The site of these pages, built once in a process: `tests/scopes.py` gives its tests to one worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support.programs.samples import ROOT

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
