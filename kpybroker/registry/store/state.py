"""`State`: what the records of `_schemas` add up to. Only `apply` changes it; it does no I/O.

Rules
- The last record of a key holds, as in compaction.
- A schema whose id belongs to another schema is ignored, on every instance alike: two leaders that took one id, each
  believing to be alone, do not make an id ambiguous. The one that wrote later finds its version missing.
- A record that cannot be read is skipped and counted: a newer registry may have written it.
- A key may be spelled in several ways, and compaction knows only bytes: a removal is written for each spelling.
- An id resolves as long as a version has it, deleted softly or not.
- Each context has ids of its own; the methods that ask for one take the context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store import contexts, records
from kpybroker.registry.store.records import Record, Unreadable, Version

Place = tuple[str, int]
"""A subject and a version."""

READ_WRITE: Final = "READWRITE"


@dataclass(slots=True)
class _Ids:
    """Those of one context."""

    highest: int = 0
    definitions: dict[int, Definition] = field(default_factory=dict)
    by_definition: dict[Definition, int] = field(default_factory=dict)
    places: dict[int, set[Place]] = field(default_factory=dict)
    users: dict[int, Version] = field(default_factory=dict)
    """See `State.user`; those that were asked for since their versions changed."""


NONE: Final = _Ids()
"""Of a context that has no schema. Never changed."""


class State:
    """All versions, ids, configurations and modes. Not of several threads: its owner has a lock."""

    def __init__(self) -> None:
        self.skipped = 0
        """Records that were not understood."""
        self._versions: dict[str, dict[int, Version]] = {}
        self._ids: dict[str, _Ids] = {}
        self._contexts: set[str] = set()
        self._referrers: dict[Place, set[Place]] = {}
        self._configs: dict[str | None, dict[str, Any]] = {}
        self._modes: dict[str | None, str] = {}
        self._spellings: dict[bytes, dict[bytes, None]] = {}
        """How other registries wrote a key that is in the log, by its spelling here; only where they differ."""

    def apply(self, key: bytes | None, value: bytes | None, timestamp: int | None = None) -> str | None:
        """One record, in the order of the log, and when it was written. Why it was skipped, if it was."""
        try:
            if key is None:
                raise Unreadable("no key")
            parsed = records.parsed_object(key)
            self._apply(parsed, None if value is None else records.parsed_object(value), timestamp)
            self._remember(key, parsed, is_removed=value is None)
        except Unreadable as error:
            self.skipped += 1
            return str(error)
        return None

    def _remember(self, key: bytes, parsed: Mapping[str, Any], *, is_removed: bool) -> None:
        own = records.own_spelling(parsed)
        if own is None or own == key:
            return
        if not is_removed:
            self._spellings.setdefault(own, {})[key] = None
        elif own in self._spellings:
            self._spellings[own].pop(key, None)

    def spelled(self, written: Iterable[Record]) -> list[Record]:
        """Records to be written, with a removal for each spelling of its key that is in the log."""
        found: list[Record] = []
        for record in written:
            found.append(record)
            if record.value is None:
                found += (Record(key, None) for key in self._spellings.get(record.key, ()))
        return found

    def _apply(self, key: Mapping[str, Any], value: Mapping[str, Any] | None, timestamp: int | None) -> None:
        kind, subject = key.get("keytype"), key.get("subject")
        if subject is not None and not isinstance(subject, str):
            raise Unreadable("a subject that is no text")
        match kind:
            case records.SCHEMA:
                self._apply_schema(key, value, timestamp)
            case records.CONFIG:
                self._set(self._configs, subject, None if value is None else _config_of(value))
            case records.MODE:
                self._set(self._modes, subject, None if value is None else str(value.get("mode", READ_WRITE)))
            case records.DELETE_SUBJECT if value is not None:
                self._delete_subject(value)
            case records.CLEAR_SUBJECT if value is not None:
                self._clear(subject)
            case records.CONTEXT:
                self._apply_context(key, value)
            case records.NOOP | records.DELETE_SUBJECT | records.CLEAR_SUBJECT:
                pass
            case _:
                raise Unreadable(f"a key of type {kind!r}")

    def _apply_context(self, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
        name = key.get("context")
        if not isinstance(name, str) or key.get("tenant", records.TENANT) != records.TENANT:
            raise Unreadable("a CONTEXT key lacks its parts, or is another tenant's")
        if value is None:
            self._contexts.discard(name)
        else:
            self._contexts.add(name)

    def _apply_schema(self, key: Mapping[str, Any], value: Mapping[str, Any] | None, timestamp: int | None) -> None:
        subject, number = key.get("subject"), key.get("version")
        if not isinstance(subject, str) or not isinstance(number, int):
            raise Unreadable("a SCHEMA key lacks its parts")
        if value is None:
            self._forget((subject, number))
            return
        version = records.parsed_version(value)
        ids = self._ids.get(contexts.of(subject), NONE)
        holder = ids.definitions.get(version.id)
        if holder is not None and holder != version.definition and ids.places[version.id] != {(subject, number)}:
            raise Unreadable(f"schema {version.id} is another one")
        self._forget((subject, number))
        self._keep(version._replace(subject=subject, version=number, timestamp=timestamp))

    def _keep(self, version: Version) -> None:
        place = (version.subject, version.version)
        context = contexts.of(version.subject)
        self._versions.setdefault(version.subject, {})[version.version] = version
        ids = self._ids.setdefault(context, _Ids())
        ids.definitions[version.id] = version.definition
        ids.by_definition.setdefault(version.definition, version.id)
        ids.places.setdefault(version.id, set()).add(place)
        ids.users.pop(version.id, None)
        ids.highest = max(ids.highest, version.id)
        for target in _targets(version):
            self._referrers.setdefault(target, set()).add(place)

    def _forget(self, place: Place) -> None:
        subject, number = place
        version = self._versions.get(subject, {}).pop(number, None)
        if version is None:
            return
        if not self._versions[subject]:
            del self._versions[subject]
        for target in _targets(version):
            self._referrers[target].discard(place)
        ids = self._ids[contexts.of(subject)]
        ids.users.pop(version.id, None)
        places = ids.places[version.id]
        places.discard(place)
        if not places:
            del ids.places[version.id], ids.definitions[version.id]
            if ids.by_definition.get(version.definition) == version.id:
                del ids.by_definition[version.definition]

    def _delete_subject(self, value: Mapping[str, Any]) -> None:
        subject, version_max = value.get("subject"), value.get("version")
        if not isinstance(subject, str) or not isinstance(version_max, int):
            raise Unreadable("a DELETE_SUBJECT record lacks its parts")
        versions = self._versions.get(subject, {})
        for number, version in list(versions.items()):
            if number <= version_max:
                versions[number] = version._replace(is_deleted=True)
                self._ids[contexts.of(subject)].users.pop(version.id, None)

    def _clear(self, subject: str | None) -> None:
        for name in [one for one in self._versions if contexts.contains(subject, one)]:
            for number in list(self._versions[name]):
                self._forget((name, number))

    @staticmethod
    def _set(table: dict[str | None, Any], subject: str | None, value: Any) -> None:
        if value is None:
            table.pop(subject, None)
        else:
            table[subject] = value

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Sorted names; with `deleted` also those of which all versions are deleted softly."""
        return sorted(name for name in self._versions if deleted or any(self.versions(name)))

    def versions(self, subject: str, *, deleted: bool = False) -> Iterator[Version]:
        """In ascending order."""
        for _, version in sorted(self._versions.get(subject, {}).items()):
            if deleted or not version.is_deleted:
                yield version

    def version(self, subject: str, number: int) -> Version | None:
        """Deleted softly or not."""
        return self._versions.get(subject, {}).get(number)

    def context_names(self) -> list[str]:
        """The default one, then those that were made, sorted."""
        return [contexts.DEFAULT, *sorted(self._contexts - {contexts.DEFAULT})]

    def id_max(self, context: str = contexts.DEFAULT) -> int:
        """The highest id that was given away; 0 for none."""
        return self._ids.get(context, NONE).highest

    def definition(self, identifier: int, context: str = contexts.DEFAULT) -> Definition | None:
        """Of an id."""
        return self._ids.get(context, NONE).definitions.get(identifier)

    def id_of(self, definition: Definition, context: str = contexts.DEFAULT) -> int | None:
        """The id that a schema has already, under whichever subject of the context."""
        return self._ids.get(context, NONE).by_definition.get(definition)

    def of_guid(self, wanted: str) -> list[tuple[str, int, Definition]]:
        """The contexts that have the schema with this guid, its id there, and the schema."""
        return [
            (context, number, one)
            for context in self.context_names()
            for number, one in self._ids.get(context, NONE).definitions.items()
            if one.guid == wanted.lower()
        ]

    def places(self, identifier: int, context: str = contexts.DEFAULT) -> Iterable[Version]:
        """The versions with this id, deleted softly or not, by subject and version."""
        found = self._ids.get(context, NONE).places.get(identifier, ())
        return [self._versions[subject][number] for subject, number in sorted(found)]

    def user(self, identifier: int, context: str = contexts.DEFAULT) -> Version:
        """The version that stands for an id that there is: the oldest one that is not deleted, if one is not."""
        users = self._ids[context].users
        found = users.get(identifier)
        if found is None:
            places = self.places(identifier, context)
            found = users[identifier] = min(places, key=lambda one: (one.is_deleted, one.timestamp or 0))
        return found

    def referrers(self, subject: str, number: int, *, deleted: bool = False) -> list[Version]:
        """The versions that refer to one."""
        found = [self._versions[name][at] for name, at in sorted(self._referrers.get((subject, number), ()))]
        return [version for version in found if deleted or not version.is_deleted]

    def config(self, subject: str | None) -> Mapping[str, Any] | None:
        """As it was set, with `compatibilityLevel` and the like; None where it was not."""
        return self._configs.get(subject)

    def aliases_of(self, subject: str) -> list[str]:
        """The names that stand for a subject by their configuration, sorted."""
        return sorted(
            name
            for name, config in self._configs.items()
            if name is not None
            and config.get("alias")
            and contexts.resolved(contexts.of(name), str(config["alias"])) == subject
        )

    def mode(self, subject: str | None) -> str | None:
        """As it was set; None where it was not."""
        return self._modes.get(subject)

    def subjects_with_mode(self, whole: str | None) -> list[str]:
        """The subjects of a context (`:.context:`, None for the default one) that have a mode of their own, sorted."""
        outer = contexts.split(whole or "")
        if outer.name:
            return []
        inner = (name for name in self._modes if name is not None and contexts.of(name) == outer.context)
        return sorted(name for name in inner if name != whole)


def _targets(version: Version) -> list[Place]:
    """What a version refers to."""
    context = contexts.of(version.subject)
    return [(contexts.resolved(context, one.subject), one.version) for one in version.definition.references]


def _config_of(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key != "subject" and one is not None}
