"""Arrays of JSON Schema: the items of each place, and those after them."""

from __future__ import annotations

from typing import Any, Final

from kpybroker.registry.compatibility import json_objects, json_values
from kpybroker.registry.compatibility.json_objects import Comparer, Keyword
from kpybroker.registry.compatibility.json_shapes import EMPTY, FALSE, Shape
from kpybroker.registry.compatibility.reasons import Reason

ADDITIONAL_ITEMS: Final = Keyword("additionalItems", "ADDITIONAL_ITEMS")
UNEVALUATED_ITEMS: Final = Keyword("unevaluatedItems", "UNEVALUATED_ITEMS")


def differences(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    """Of two arrays."""
    found = [*_of_all(compare, old, new), *_places(compare, old, new)]
    found += json_objects.others(compare, old, new, ADDITIONAL_ITEMS, _rest_of(old), _rest_of(new))
    found += json_objects.unevaluated(compare, old, new, UNEVALUATED_ITEMS)
    for key, name in (("maxItems", "MAX_ITEMS"), ("maxContains", "MAX_CONTAINS")):
        found += json_values.upper(compare.reason, key, name, old.raw.get(key), new.raw.get(key))
    for key, name in (("minItems", "MIN_ITEMS"), ("minContains", "MIN_CONTAINS")):
        found += json_values.lower(compare.reason, key, name, old.raw.get(key), new.raw.get(key))
    if new.raw.get("uniqueItems") is True and old.raw.get("uniqueItems") is not True:
        found.append(compare.reason("UNIQUE_ITEMS_ADDED", "uniqueItems is true in the %reader only"))
    return found


def _places_of(shape: Shape) -> list[Any]:
    """The schemas of the first items: `prefixItems`, or the older form of `items`."""
    found = shape.raw.get("prefixItems", shape.raw.get("items"))
    return found if isinstance(found, list) else []


def _all_of(shape: Shape) -> Any:
    """The schema of all items; None where there is none."""
    found = shape.raw.get("items")
    return found if isinstance(found, dict | bool) and "prefixItems" not in shape.raw else None


def _rest_of(shape: Shape) -> Any:
    """A schema or a boolean for the items after the first ones."""
    if "prefixItems" in shape.raw:
        return shape.raw.get("items", True)
    return shape.raw.get("additionalItems", True)


def _of_all(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    before, after = _all_of(old), _all_of(new)
    if after is None:
        return []
    with compare.at("items"):
        if before is None:
            return [compare.reason("SCHEMA_ADDED", "The %reader has a schema for items, and the %writer has none")]
        return list(compare.shapes(old.sub(before), new.sub(after)))


def _places(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    before, after = _places_of(old), _places_of(new)
    found: list[Reason] = []
    for number in range(max(len(before), len(after))):
        with compare.at("items", str(number)):
            if number >= len(after):
                found += _removed(compare, old.sub(before[number]), new)
            elif number >= len(before):
                found += _added(compare, old, new.sub(after[number]))
            else:
                found += compare.shapes(old.sub(before[number]), new.sub(after[number]))
    return found


def _removed(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    rest = _others(new)
    if rest is True:
        return []
    if rest is False:
        if old.kind == FALSE:
            return []
        text = "The %reader is closed and lacks an item of the %writer"
        return [compare.reason("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", text)]
    found = list(compare.shapes(old, new.sub(rest)))
    if found:
        text = "An item of the %writer is not covered by what the %reader says of others"
        found.append(compare.reason("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", text))
    return found


def _added(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    rest = _others(old)
    if rest is True:
        if new.kind == EMPTY:
            return []
        text = "The %writer is open, and the %reader gives a type to an item that it lacks"
        return [compare.reason("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", text)]
    if rest is False:
        return []
    found = list(compare.shapes(old.sub(rest), new))
    if found:
        text = "An item of the %reader does not cover what the %writer says of others"
        found.append(compare.reason("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", text))
    return found


def _others(shape: Shape) -> Any:
    """True where any item may follow, False where none, else the schema of those that follow."""
    rest = _rest_of(shape)
    if rest is not True:
        return rest
    later = shape.raw.get("unevaluatedItems", True)
    return True if shape.sub(later).kind == EMPTY else False if later is False else later
