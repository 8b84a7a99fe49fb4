"""How many examples of a property are tried, where a test names a number of its own."""

from __future__ import annotations

import hypothesis

OF_SEARCH = 100
"""What hypothesis tries of a property that names no number, and so does `make search`."""


def examples(count: int) -> int:
    """In `make search` `count` of them, else the share that other properties have in this run."""
    default = hypothesis.settings.default
    assert default is not None
    return max(1, count * min(OF_SEARCH, default.max_examples) // OF_SEARCH)
