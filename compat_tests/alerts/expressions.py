"""Which metrics an expression reads."""

from __future__ import annotations

import re

NAME = re.compile(r"\b(?:kafka|kpybroker|process)_[a-z0-9_]+\b|\bup\b")
"""All our metrics begin with one of these, and no label or function does."""


def metrics_of(expression: str) -> set[str]:
    """The names of metrics in it."""
    return set(NAME.findall(re.sub(r'"[^"]*"', '""', expression)))
