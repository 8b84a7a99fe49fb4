"""`Change`: what a request that changes something leads to."""

from __future__ import annotations

from typing import Any, NamedTuple

from kpybroker.registry.store.records import Record, Version


class Change(NamedTuple):
    """`records` are written in this order, and none if nothing changes; `result` is the JSON of the response.

    `expected` must be in the state afterwards: if it is not, another leader took its id.
    """

    records: list[Record]
    result: Any
    expected: Version | None = None
