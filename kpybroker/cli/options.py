"""`--override KEY=VALUE`, and the look of levels."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.cli.run import EXIT_CONFIG, fail


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    props: dict[str, str] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            fail(f"--override {override} has no key and value", "write --override KEY=VALUE", EXIT_CONFIG)
        props[name.strip()] = value.strip()
    return props


def python_level(level: str) -> str:
    return "WARNING" if level == "WARN" else level
