"""`Places`: which parts of JSON schemas say the same, so that their comparison is done once.

A union of a hundred definitions that all refer to the union has ten thousand pairs of it if each place counts, and one
if equal texts count as one. Equal texts mean the same where `$ref` is resolved alike: within one base.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kpybroker.registry.schemas.json_schema import Raw

Place = tuple[int, int]
"""The base, and the number of the text."""


class Places:
    """Of some documents, which must be kept as long as this is used."""

    def __init__(self, documents: Iterable[Raw]) -> None:
        self._numbers: dict[Any, int] = {}
        self._places: dict[int, Place] = {}
        self._bases = 0
        for document in documents:
            self._add(document)

    def of(self, raw: Raw) -> Place:
        """Equal for what says the same. What is in none of the documents is itself only."""
        return self._places.get(id(raw), (-1, id(raw)))

    def _add(self, document: Raw) -> None:
        """Inner values have their number before outer ones."""
        self._bases += 1
        waiting: list[tuple[Raw, int, bool]] = [(document, self._bases, False)]
        while waiting:
            value, base, is_done = waiting.pop()
            if not isinstance(value, dict | list):
                continue
            if is_done:
                self._places[id(value)] = (base, self._number(value))
                continue
            if isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("$id", "id")):
                self._bases += 1
                base = self._bases
            waiting.append((value, base, True))
            waiting += [(part, base, False) for part in (value.values() if isinstance(value, dict) else value)]

    def _number(self, value: Any) -> int:
        if isinstance(value, dict):
            made: Any = ("{", frozenset((key, self._of_part(part)) for key, part in value.items()))
        else:
            made = ("[", *map(self._of_part, value))
        return self._numbers.setdefault(made, len(self._numbers))

    def _of_part(self, part: Any) -> Any:
        """A whole place: parts that say the same within different bases are different."""
        return self._places[id(part)] if isinstance(part, dict | list) else (type(part), part)
