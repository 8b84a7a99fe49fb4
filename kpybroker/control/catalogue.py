"""Every method there is: a new module in `methods` is added here."""

from __future__ import annotations

from kpybroker.control.methods import (
    disk,
    faults,
    general,
    look,
    records,
    requests,
    seed,
    snapshots,
    time,
    topology,
    upkeep,
)
from kpybroker.control.registry import Registry

MODULES = (disk, faults, general, look, records, requests, seed, snapshots, time, topology, upkeep)


def all_methods() -> Registry:
    """The registry of all methods."""
    return Registry(module.METHODS for module in MODULES)
