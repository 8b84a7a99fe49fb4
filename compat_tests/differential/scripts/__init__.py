"""The scripts, one module a family of APIs; every `SCRIPTS` in here is played."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from compat_tests.differential.script import Script


def all_scripts() -> list[Script]:
    """In the order of the modules' names. Names are unique: topics and groups are called after them."""
    here = Path(__file__).parent
    files = sorted(here.rglob("[a-z]*.py"), key=lambda path: path.stem)
    modules = [".".join((__name__, *file.relative_to(here).with_suffix("").parts)) for file in files]
    scripts = [one for module in modules for one in import_module(module).SCRIPTS]
    scripts += [twin for one in scripts if (twin := one.in_later_versions())]
    assert len({one.name for one in scripts}) == len(scripts), "two scripts share a name"
    return scripts
