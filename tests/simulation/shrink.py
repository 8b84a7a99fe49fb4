"""Makes a storm that fails smaller: fewer faults, fewer clients, an earlier end, for as long as it fails alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.storm import Storm

RUNS_MAX = 120

Fails = Callable[[Storm], bool]
"""Whether a storm fails in the way that is looked for."""


def shrink(storm: Storm, fails: Fails, runs_max: int = RUNS_MAX) -> Storm:
    """The smallest storm found with so many runs; `storm` itself fails."""
    left = runs_max
    while True:
        for smaller in _smaller(storm):
            if left <= 0:
                return storm
            left -= 1
            if fails(smaller):
                storm = smaller
                break
        else:
            return storm


def _smaller(storm: Storm) -> Iterator[Storm]:
    """What is worth a try, the largest steps first."""
    yield from _without_faults(storm)
    for client in storm.clients:
        yield storm.without(client=client)
    if storm.faults:
        last = storm.faults[-1]
        end = last.at_s + last.for_s + 1
        if end < storm.seconds - 1:
            yield replace(storm, seconds=end)
    if storm.partitions > 1:
        yield replace(storm, partitions=1)
    for index, fault in enumerate(storm.faults):
        if fault.for_s > 1:
            shorter = fault._replace(for_s=round(fault.for_s / 2, 3))
            yield replace(storm, faults=(*storm.faults[:index], shorter, *storm.faults[index + 1 :]))


def _without_faults(storm: Storm) -> Iterator[Storm]:
    """Halves, quarters, and so on down to single faults."""
    faults = storm.faults
    size = len(faults)
    while size >= 1:
        for start in range(0, len(faults), size):
            yield storm.without(faults=faults[start : start + size])
        size //= 2
