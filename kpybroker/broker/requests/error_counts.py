"""The error codes in responses, counted for the metrics: the `errorCounts` of Kafka's responses.

Where a response has codes is taken from its schema: every field of `NAMES`, at the top and in nested arrays. A field
that an older version had does not count, as in Kafka; one that the version does not have yet counts as NONE (Fetch).
"""

from __future__ import annotations

from collections.abc import Generator
from operator import attrgetter
from typing import Any, Final, NamedTuple

from kpybroker.wire.schema import Message, struct_fields
from kpybroker.wire.yield_budget import WorkBudget

NAMES: Final = ("error_code", "partition_error_code")
ONLY_PRESENT: Final = ("AddPartitionsToTxnResponse",)
"""Responses in which a field that the version does not have yet counts for nothing."""
NOT_AT_THE_TOP: Final = ("MetadataResponse",)
"""Responses whose own error is counted with each topic, and not once more."""
ENTRY_COST: Final = 1
"""Units of a `WorkBudget` that one entry of an array costs."""


class Codes(NamedTuple):
    """Where one struct has codes: in itself, under the name `here` unless it is empty, and in these of its arrays."""

    here: str
    arrays: tuple[tuple[str, Codes], ...]


def codes_of(message: type[Message], version: int) -> Codes | None:
    """The places in a message of this version; None where there are none."""
    return _codes_in(message, message, version)


def _codes_in(struct: type[Message], message: type[Message], version: int) -> Codes | None:
    arrays = []
    here = ""
    for field in struct_fields(message, struct):
        oldest, newest = field.versions
        if version > newest or (version < oldest and message.__name__ in ONLY_PRESENT):
            continue
        if struct is message and field.name in NAMES and message.__name__ in NOT_AT_THE_TOP:
            continue
        if field.name in NAMES:
            here = field.name
        elif field.array and field.struct is not None:
            nested = _codes_in(field.struct, message, version)
            if nested is not None:
                arrays.append((field.name, nested))
    return Codes(here, tuple(arrays)) if here or arrays else None


def count(response: Any, codes: Codes, counts: dict[int, int]) -> None:
    """Add the codes of a response."""
    if codes.here:
        code = getattr(response, codes.here)
        counts[code] = counts.get(code, 0) + 1
    for name, nested in codes.arrays:
        elements = getattr(response, name) or ()
        if nested.arrays:
            for element in elements:
                count(element, nested, counts)
        else:
            for code in map(attrgetter(nested.here), elements):
                counts[code] = counts.get(code, 0) + 1


def count_steps(response: Any, codes: Codes, counts: dict[int, int], budget: WorkBudget) -> Generator[None, None, None]:
    """`count` for a response that may be large: yields when others should run."""
    if codes.here:
        code = getattr(response, codes.here)
        counts[code] = counts.get(code, 0) + 1
    for name, nested in codes.arrays:
        for element in getattr(response, name) or ():
            if budget.is_spent(ENTRY_COST):
                yield
            yield from count_steps(element, nested, counts, budget)
