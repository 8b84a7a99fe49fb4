"""The error codes in responses, counted for the metrics: the `errorCounts` of Kafka's responses.

Where a response has codes is taken from its schema: every field `error_code`, at the top and in nested arrays. Of
Metadata's only those of topics count, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, NamedTuple

from kpybroker.wire.schema import Message
from kpybroker.wire.yield_budget import WorkBudget

ERROR_CODE: Final = "error_code"
LEVELS_MAX: Final = {"MetadataResponse": 1}
ENTRY_COST: Final = 1
"""Units of a `WorkBudget` that one entry of an array costs."""


class Codes(NamedTuple):
    """Where one struct has codes: in itself, and in these of its arrays."""

    is_here: bool
    arrays: tuple[tuple[str, Codes], ...]


def codes_of(message: type[Message]) -> Codes | None:
    """The places in a message; None where there are none."""
    return _codes_in(message, message, LEVELS_MAX.get(message.__name__, 9))


def _codes_in(struct: type[Message], message: type[Message], levels: int) -> Codes | None:
    arrays = []
    is_here = False
    for name, type_name, *_ in struct.FIELDS:
        if name == ERROR_CODE:
            is_here = True
        element = getattr(message, type_name[1:-1], None) if type_name.startswith("[") and levels else None
        if element is not None and (nested := _codes_in(element, message, levels - 1)) is not None:
            arrays.append((name, nested))
    return Codes(is_here, tuple(arrays)) if is_here or arrays else None


def count(response: Any, codes: Codes, counts: dict[int, int]) -> None:
    """Add the codes of a response."""
    if codes.is_here:
        code = response.error_code
        counts[code] = counts.get(code, 0) + 1
    for name, nested in codes.arrays:
        elements = getattr(response, name) or ()
        if nested.arrays:
            for element in elements:
                count(element, nested, counts)
        else:
            for element in elements:
                code = element.error_code
                counts[code] = counts.get(code, 0) + 1


def count_steps(response: Any, codes: Codes, counts: dict[int, int], budget: WorkBudget) -> Generator[None, None, None]:
    """`count` for a response that may be large: yields when others should run."""
    if codes.is_here:
        code = response.error_code
        counts[code] = counts.get(code, 0) + 1
    for name, nested in codes.arrays:
        for element in getattr(response, name) or ():
            if budget.is_spent(ENTRY_COST):
                yield
            yield from count_steps(element, nested, counts, budget)
