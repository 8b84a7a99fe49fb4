"""How many modules a folder holds: at most `MODULES_MAX`, so that a newcomer can read the list of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

MODULES_MAX = 15
NOT_COUNTED = frozenset(("__init__.py", "conftest.py"))
EXEMPT = frozenset(("messages",))
"""Generated."""


def findings(packages: Iterable[Path]) -> Iterator[str]:
    """A line for each folder with too many modules; `__init__.py` and `conftest.py` do not count."""
    for package in packages:
        for folder in [package, *sorted(path for path in package.rglob("*") if path.is_dir())]:
            modules = [file for file in folder.glob("*.py") if file.name not in NOT_COUNTED]
            if len(modules) > MODULES_MAX and folder.name not in EXEMPT:
                yield f"{folder}: more than {MODULES_MAX} modules"
