"""`Library`: what is known of texts of schemas. References are resolved through the state.

A reference to a subject without a context is to one in the context of the schema that refers to it. No text is parsed
here: what is not known is asked for with `Unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpybroker.registry.errors import RegistryError, invalid_schema
from kpybroker.registry.schemas.model import Definition, Reference, Texts
from kpybroker.registry.store import contexts
from kpybroker.registry.store.records import Version
from kpybroker.registry.store.state import State
from kpybroker.registry.texts.known import Known
from kpybroker.registry.texts.questions import (
    CHECK_NAMES,
    COMPARE,
    FORMAT,
    IDENTIFY,
    NORMALIZE,
    OWN,
    READ,
    SOUGHT,
    Question,
    Source,
    Unknown,
)

REFERENCES_MAX: Final = 1000
BATCH_MAX: Final = 16
"""Questions that are asked at once, where the reply to one says whether the next one matters."""


class Schema:
    """A schema that was read: `canonical` is a text that is read as the same schema."""

    def __init__(self, library: Library, source: Source, canonical: str) -> None:
        self._library = library
        self.source = source
        self.canonical = canonical

    @property
    def normalized(self) -> str:
        """Another text that is read as the same schema. Raises Unknown."""
        return str(self._library.reply(Question(NORMALIZE, [self.source])))

    def check_names(self) -> None:
        """Raises RegistryError 42201 for names that a new schema cannot have, and Unknown."""
        self._library.reply(Question(CHECK_NAMES, [self.source]))

    def formatted(self, form: str) -> str:
        """The text for the parameter `format`. Raises Unknown."""
        return str(self._library.reply(Question(FORMAT, [self.source], form)))


class Library:
    """Not of several threads: the lock of the store holds for it too."""

    def __init__(self, state: State, known: Known) -> None:
        self._state = state
        self._known = known

    def reply(self, question: Question) -> Any:
        """Raises RegistryError 42201 if that is the reply, and Unknown."""
        found = self._known.find(question)
        if found is None:
            raise Unknown([question])
        return found.got()

    def parsed(self, definition: Definition, context: str = contexts.DEFAULT, *, is_new: bool = False) -> Schema:
        """Raises RegistryError 42201, of a registered schema too, where a reference is gone; and Unknown.

        What may be new is read in the same way where it is not new: that is not asked again.
        """
        strict = self.source(definition, context, is_new=True)
        found = self._known.find(Question(READ, [strict]))
        if found is not None and not found.code:
            return Schema(self, strict, str(found.value))
        source = strict if is_new else self.source(definition, context)
        return Schema(self, source, str(self.reply(Question(READ, [source]))))

    def source(self, definition: Definition, context: str = contexts.DEFAULT, *, is_new: bool = False) -> Source:
        """The text with those that it refers to. Raises RegistryError 42201 where one is gone."""
        return Source(definition.kind, definition.text, self.texts(definition.references, context), is_new=is_new)

    def reasons(self, level: str, new: Source, earlier: Sequence[Version]) -> list[str]:
        """Why a schema may not follow the newest of some versions that it may not follow; empty if it may follow all.

        Raises RegistryError 42201 and Unknown.
        """
        unknown = []
        for version in reversed(earlier):
            old = self.source(version.definition, contexts.of(version.subject))
            question = Question(COMPARE, [new, old], level, version.version)
            found = self._known.find(question)
            if found is None:
                unknown.append(question)
            elif not unknown and (reasons := found.got()):
                return list(reasons)
            if len(unknown) == BATCH_MAX:
                break
        if unknown:
            raise Unknown(unknown)
        return []

    def same(
        self, wanted: Definition, stored: Sequence[Definition], context: str, *, normalize: bool
    ) -> Definition | None:
        """The first of some stored ones that is the wanted schema; with `normalize`, normalized texts count too.

        One that cannot be read any more is none. Raises RegistryError 42201 where the wanted one cannot be read, and
        Unknown.
        """
        question = Question(IDENTIFY, [self.source(wanted, context)], SOUGHT, normalize)
        sought = self._known.find(question)
        hashes = None if sought is None else frozenset(sought.got())
        unknown = [question] if hashes is None else []
        for one in stored:
            try:
                question = Question(IDENTIFY, [self.source(one, context)], OWN, normalize)
            except RegistryError:  # what it refers to is gone
                continue
            found = self._known.find(question)
            if found is None:
                unknown.append(question)
            elif not unknown and hashes is not None and not found.code and not hashes.isdisjoint(found.value):
                return one
            if len(unknown) >= BATCH_MAX:
                break
        if unknown:
            raise Unknown(unknown)
        return None

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
