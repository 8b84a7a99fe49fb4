"""Packages that metrics need and the broker alone does not: those of the extra `otlp`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

PACKAGES: Final = ("opentelemetry.proto",)


@cache
def available() -> str | None:
    """None where metrics of clients can be read; else what to do about it."""
    names = missing(PACKAGES)
    if not names:
        return None
    return f"client metrics need packages that are not installed: {', '.join(names)}; pip install 'kpybroker[otlp]'"


def missing(names: Iterable[str]) -> list[str]:
    """Those of the packages that are not installed. Nothing is imported but their parents."""
    return [name for name in names if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
