"""`Library`: parsed schemas, kept while they are in use. References are resolved through the state.

A reference to a subject without a context is to one in the context of the schema that refers to it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.model import Definition, Parsed, Reference, Texts
from kpybroker.registry.schemas.parse import parse
from kpybroker.registry.store import contexts
from kpybroker.registry.store.state import State

KEPT_MAX: Final = 1000
REFERENCES_MAX: Final = 1000


class Library:
    """Not of several threads: the lock of the store holds for it too."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._parsed: OrderedDict[tuple[Definition, tuple[tuple[str, str], ...]], Parsed] = OrderedDict()

    def parsed(self, definition: Definition, context: str = contexts.DEFAULT, *, is_new: bool = False) -> Parsed:
        """Raises RegistryError 42201: of a registered schema too, where a reference is gone."""
        texts = self.texts(definition.references, context)
        key = (definition, tuple(texts.items()))
        found = self._parsed.get(key)
        if found is None or is_new:
            found = parse(definition.kind, definition.text, texts, is_new=is_new)
            self._parsed[key] = found
            while len(self._parsed) > KEPT_MAX:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return found

    def texts(self, references: tuple[Reference, ...], context: str) -> Texts:
        """What they refer to, and what that refers to, the deepest first."""
        found: dict[str, str] = {}
        self._collect(references, context, found, set())
        return found

    def _collect(
        self, references: tuple[Reference, ...], context: str, found: dict[str, str], within: set[Reference]
    ) -> None:
        for written in references:
            one = written._replace(subject=contexts.resolved(context, written.subject))
            if one.name in found or one in within:
                continue
            if len(found) + len(within) >= REFERENCES_MAX:
                raise invalid_schema(f"it refers to more than {REFERENCES_MAX} schemas")
            number = one.version
            if number == -1:
                number = max((version.version for version in self._state.versions(one.subject)), default=-1)
            version = self._state.version(one.subject, number)
            if version is None:
                raise invalid_schema(f"no schema reference found for subject '{one.subject}' and version {one.version}")
            self._collect(version.definition.references, contexts.of(one.subject), found, within | {one})
            found.setdefault(one.name, version.definition.text)
