"""JSON Schema: whether everything that the writer's schema accepts, the reader's does too, by Confluent's rules.

The rules look at keys, not at the sets of values that they describe, so they are on the safe side: a change that is not
known to be harmless is refused. The most surprising one is about content models. A schema that allows other properties
than those it names is open: what it did not name may have been anything, so adding a property with a type is refused.
Close it (`"additionalProperties": false`), or give the type of others, to be able to add.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kpybroker.registry.compatibility import json_arrays, json_objects, json_values
from kpybroker.registry.compatibility.json_places import Place, Places
from kpybroker.registry.compatibility.json_shapes import ALL, ANY, COMBINED, EMPTY, FALSE, ONE, Shape, shape_of
from kpybroker.registry.compatibility.reasons import Reason
from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.json_schema import JsonSchema

COMPARISONS_MAX: Final = 200_000
NUMBERS: Final = ("number", "integer")
Pair = tuple[tuple[Place, str, bool], tuple[Place, str, bool]]


def differences(reader: JsonSchema, writer: JsonSchema) -> list[Reason]:
    """Why the reader may refuse what the writer accepts; empty if it does not.

    A pair that is met again within itself is assumed to be compatible; if it turns out not to be, everything is
    compared again with that known, until nothing new is found.
    """
    known: dict[Pair, list[Reason]] = {}
    budget = [COMPARISONS_MAX]
    places = Places([*reader.documents, *writer.documents])
    while True:
        comparison = Comparison(known, budget, places)
        old = shape_of(writer.root, writer.resolver, writer.is_old)
        new = shape_of(reader.root, reader.resolver, reader.is_old)
        found = comparison.shapes(old, new)
        bad = {pair: reasons for pair, reasons in comparison.results.items() if reasons}
        if not comparison.has_assumed or bad.keys() == known.keys():
            return found
        known = bad


class Comparison:
    """One pass. Methods take the old shape first: what was written."""

    def __init__(self, known: dict[Pair, list[Reason]], budget: list[int], places: Places) -> None:
        self.results: dict[Pair, list[Reason]] = {}
        self.has_assumed = False
        self._known = known
        self._budget = budget
        self._places = places
        self._open: set[Pair] = set()
        self._path: list[str] = []

    @contextmanager
    def at(self, *parts: str) -> Iterator[None]:
        """What is found inside is at this place."""
        self._path += parts
        yield
        del self._path[len(self._path) - len(parts) :]

    def reason(self, kind: str, text: str) -> Reason:
        """A difference at the present place."""
        return Reason(kind, "#/" + "/".join(self._path), text)

    def shapes(self, old: Shape, new: Shape) -> list[Reason]:
        """The differences of two schemas, each pair compared once."""
        pair = (self._key(old), self._key(new))
        if pair in self.results and old.kind not in (EMPTY, FALSE) and new.kind not in (EMPTY, FALSE):
            return self.results[pair]
        if pair in self._open:
            if pair in self._known:
                return self._known[pair]
            self.has_assumed = True
            return []
        self._budget[0] -= 1
        if self._budget[0] < 0:
            raise invalid_schema("it is too entangled to be compared")
        self._open.add(pair)
        try:
            self.results[pair] = self._compare(old, new)
        finally:
            self._open.discard(pair)
        return self.results[pair]

    def _key(self, shape: Shape) -> tuple[Place, str, bool]:
        """Equal for the same text, which can be two shapes of a kind: what is said there, and a whole of that."""
        return self._places.of(shape.raw), shape.kind, bool(shape.inner)

    def _compare(self, old: Shape, new: Shape) -> list[Reason]:
        if old.kind == FALSE or new.kind == EMPTY:
            return []
        if self._has_compatible_part(old, new):
            return []
        if old.kind in COMBINED and new.kind in COMBINED:
            return self._combined(old, new)
        if old.kind in NUMBERS and new.kind in NUMBERS:
            found = json_values.numbers(self.reason, old.raw, new.raw)
            if old.kind == "number" and new.kind == "integer":
                found.append(self.reason("TYPE_NARROWED", "The type in the %reader is narrower than in the %writer"))
            return found
        if old.kind != new.kind:
            if "bytes" == old.raw.get("connect.type") == new.raw.get("connect.type"):
                return []
            return [self.reason("TYPE_CHANGED", "The type in the %reader is not that of the %writer")]
        return self._same_kind(old, new)

    def _has_compatible_part(self, old: Shape, new: Shape) -> bool:
        """A union grew out of what was no union, or what must hold in several ways holds in one less."""
        if new.kind in COMBINED and old.kind not in COMBINED:
            parts = list(new.shapes())
            if len(parts) == 1 or new.kind != ALL:
                return any(not self.shapes(old, part) for part in parts)
        elif old.kind in COMBINED and new.kind not in COMBINED:
            parts = list(old.shapes())
            if len(parts) == 1 or old.kind == ALL:
                return any(not self.shapes(part, new) for part in parts)
        return False

    def _same_kind(self, old: Shape, new: Shape) -> list[Reason]:
        match old.kind:
            case "string":
                return json_values.strings(self.reason, old.raw, new.raw)
            case "enum":
                return json_values.enums(self.reason, old.raw["enum"], new.raw["enum"])
            case "const":
                return json_values.constants(self.reason, old.raw["const"], new.raw["const"])
            case "not":
                with self.at("not"):
                    if self.shapes(new.sub(new.raw["not"]), old.sub(old.raw["not"])):
                        return [self.reason("NOT_TYPE_EXTENDED", "The %reader excludes more than the %writer")]
                return []
            case "object":
                return json_objects.differences(self, old, new)
            case "array":
                return json_arrays.differences(self, old, new)
            case _:
                return []

    def _combined(self, old: Shape, new: Shape) -> list[Reason]:
        before, after = list(old.shapes()), list(new.shapes())
        if not _may_follow(old.kind, new.kind, len(before), len(after)):
            return [self.reason("COMBINED_TYPE_CHANGED", f"{new.kind} in the %reader is {old.kind} in the %writer")]
        found = []
        if len(before) < len(after) and new.kind == ALL:
            found.append(self.reason("PRODUCT_TYPE_EXTENDED", "The %reader demands more schemas than the %writer"))
        if len(before) > len(after) and old.kind != ALL:
            found.append(self.reason("SUM_TYPE_NARROWED", "The %reader allows fewer schemas than the %writer"))
        edges = {
            number: [at for at, part in enumerate(after) if not self.shapes(one, part)]
            for number, one in enumerate(before)
        }
        if _matched(edges) < min(len(before), len(after)):
            text = f"A schema under {new.kind} in the %reader is not that of the %writer"
            found.append(self.reason("COMBINED_TYPE_SUBSCHEMAS_CHANGED", text))
        return found


def _may_follow(old: str, new: str, before: int, after: int) -> bool:
    return (
        old == new or new == ANY or before == after == 1 or (before == 1 and new == ONE) or (after == 1 and old == ALL)
    )


def _matched(edges: dict[int, list[int]]) -> int:
    """How many can be paired, each with another."""
    partner: dict[int, int] = {}

    def is_placed(number: int, tried: set[int]) -> bool:
        for at in edges[number]:
            if at not in tried:
                tried.add(at)
                if at not in partner or is_placed(partner[at], tried):
                    partner[at] = number
                    return True
        return False

    return sum(is_placed(number, set()) for number in edges)
