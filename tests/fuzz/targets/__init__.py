"""All targets, by name. A module is imported when one of its targets is asked for, so that a fuzzer instruments it."""

from __future__ import annotations

from importlib import import_module

from tests.fuzz.target import Target

MODULES = ("wire", "records", "files", "settings", "logins", "inputs")


def every() -> dict[str, Target]:
    """Each target by its name."""
    found = {}
    for module in MODULES:
        for target in import_module(f"{__name__}.{module}").TARGETS:
            assert target.name not in found, target.name
            found[target.name] = target
    return found
