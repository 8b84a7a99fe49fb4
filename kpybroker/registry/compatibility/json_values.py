"""Keys of JSON Schema whose values are compared: limits, patterns, enums."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from kpybroker.registry.compatibility.reasons import Reason

Explain = Callable[[str, str], Reason]
"""Makes the reason for a kind and a text."""
Raw = Mapping[str, Any]


def upper(explain: Explain, key: str, name: str, old: Any, new: Any) -> list[Reason]:
    """A limit that may only rise or go: `maxLength` is MAX_LENGTH."""
    if new is None or new == old:
        return []
    if old is None:
        return [explain(f"{name}_ADDED", f"{key} of the %reader is missing in the %writer")]
    return [explain(f"{name}_DECREASED", f"{key} in the %reader is less than in the %writer")] if new < old else []


def lower(explain: Explain, key: str, name: str, old: Any, new: Any) -> list[Reason]:
    """A limit that may only fall or go."""
    if new is None or new == old:
        return []
    if old is None:
        return [explain(f"{name}_ADDED", f"{key} of the %reader is missing in the %writer")]
    return [explain(f"{name}_INCREASED", f"{key} in the %reader is greater than in the %writer")] if new > old else []


def strings(explain: Explain, old: Raw, new: Raw) -> list[Reason]:
    """`maxLength`, `minLength`, `pattern`."""
    found = upper(explain, "maxLength", "MAX_LENGTH", old.get("maxLength"), new.get("maxLength"))
    found += lower(explain, "minLength", "MIN_LENGTH", old.get("minLength"), new.get("minLength"))
    before, after = old.get("pattern"), new.get("pattern")
    if after is not None and before != after:
        kind = "PATTERN_ADDED" if before is None else "PATTERN_CHANGED"
        found.append(explain(kind, "pattern in the %reader is not that of the %writer"))
    return found


def numbers(explain: Explain, old: Raw, new: Raw) -> list[Reason]:
    """Limits and `multipleOf`."""
    before, after = _limits(old), _limits(new)
    found = []
    for key, name in (("maximum", "MAXIMUM"), ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM")):
        found += upper(explain, key, name, before[key], after[key])
    for key, name in (("minimum", "MINIMUM"), ("exclusiveMinimum", "EXCLUSIVE_MINIMUM")):
        found += lower(explain, key, name, before[key], after[key])
    return found + _multiples(explain, old.get("multipleOf"), new.get("multipleOf"))


def _limits(raw: Raw) -> dict[str, Any]:
    """In draft 4, `exclusiveMaximum` is a boolean that says what `maximum` means."""
    limits = {key: raw.get(key) for key in ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")}
    for key, exclusive in (("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")):
        if isinstance(limits[exclusive], bool):
            is_exclusive = limits[exclusive]
            limits[exclusive] = limits[key] if is_exclusive else None
            limits[key] = None if is_exclusive else limits[key]
    return limits


def _multiples(explain: Explain, old: Any, new: Any) -> list[Reason]:
    if new is None or old == new:
        return []
    if old is None:
        return [explain("MULTIPLE_OF_ADDED", "multipleOf of the %reader is missing in the %writer")]
    try:
        if Decimal(str(old)) % Decimal(str(new)) == 0:
            return []
        is_larger = Decimal(str(new)) % Decimal(str(old)) == 0
    except InvalidOperation:
        is_larger = False
    kind = "MULTIPLE_OF_EXPANDED" if is_larger else "MULTIPLE_OF_CHANGED"
    return [explain(kind, "multipleOf in the %writer is no multiple of that in the %reader")]


def enums(explain: Explain, old: Sequence[Any], new: Sequence[Any]) -> list[Reason]:
    """Values may only be added."""
    before, after = _texts(old), _texts(new)
    if before <= after:
        return []
    kind = "ENUM_ARRAY_NARROWED" if after < before else "ENUM_ARRAY_CHANGED"
    return [explain(kind, "enum in the %reader lacks a value of the %writer")]


def constants(explain: Explain, old: Any, new: Any) -> list[Reason]:
    """The value stays."""
    if _texts([old]) == _texts([new]):
        return []
    return [explain("ENUM_ARRAY_CHANGED", "const in the %reader is not that of the %writer")]


def _texts(values: Sequence[Any]) -> set[str]:
    """JSON that is equal for equal values, true and 1 apart."""
    return {json.dumps(value, sort_keys=True) for value in values}
