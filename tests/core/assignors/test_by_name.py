"""The names of assignors, and which is the default."""

from __future__ import annotations

from kpybroker.core.assignors.by_name import ASSIGNORS
from kpybroker.core.assignors.range_assignor import assign_ranges
from kpybroker.core.assignors.uniform_assignor import assign_uniformly


def test_uniform_is_the_first_as_in_kafka() -> None:
    assert list(ASSIGNORS.items()) == [("uniform", assign_uniformly), ("range", assign_ranges)]
