"""The scripts, one module a family of APIs; every `SCRIPTS` in here is played."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from compat_tests.differential.script import Script


def all_scripts() -> list[Script]:
    """In the order of the modules' names. Names are unique: topics and groups are called after them."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    scripts = [one for module in modules for one in import_module(f"{__name__}.{module}").SCRIPTS]
    assert len({one.name for one in scripts}) == len(scripts), "two scripts share a name"
    return scripts
