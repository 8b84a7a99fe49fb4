"""Modules taken out of this process for one test, as if they were not installed or not imported yet."""

from __future__ import annotations

import sys

import pytest


def forget(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let the modules of `packages` be imported again when they are asked for.

    Undone, a module is back where it was looked up by its name and where it is an attribute of its package: the two
    must be one module, or the next test patches one and uses the other.
    """
    for name in [one for one in sys.modules if one.startswith(packages)]:
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and hasattr(sys.modules[parent], child):
            monkeypatch.delattr(sys.modules[parent], child)
    for name in [one for one in sys.modules if one.startswith(packages)]:
        monkeypatch.delitem(sys.modules, name)


def uninstall(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Let importing `package`, or a module of it, fail as where it is not installed."""
    for name in [package, *(one for one in sys.modules if one.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
