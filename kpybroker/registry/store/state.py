"""`State`: what the records of `_schemas` add up to. Only `apply` changes it; it does no I/O.

Rules
- The last record of a key holds, as in compaction.
- A schema whose id belongs to another schema is ignored, on every instance alike: two leaders that took one id, each
  believing to be alone, do not make an id ambiguous. The one that wrote later finds its version missing.
- A record that cannot be read is skipped and counted: a newer registry may have written it.
- An id resolves as long as a version has it, deleted softly or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Unreadable, Version

Place = tuple[str, int]
"""A subject and a version."""

READ_WRITE: Final = "READWRITE"


class State:
    """All versions, ids, configurations and modes. Not of several threads: its owner has a lock."""

    def __init__(self) -> None:
        self.skipped = 0
        """Records that were not understood."""
        self.id_max = 0
        self._versions: dict[str, dict[int, Version]] = {}
        self._ids: dict[int, Definition] = {}
        self._by_definition: dict[Definition, int] = {}
        self._places: dict[int, set[Place]] = {}
        self._referrers: dict[Place, set[Place]] = {}
        self._configs: dict[str | None, dict[str, Any]] = {}
        self._modes: dict[str | None, str] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """One record, in the order of the log."""
        try:
            if key is None:
                raise Unreadable("no key")
            self._apply(records.parsed_object(key), None if value is None else records.parsed_object(value))
        except Unreadable:
            self.skipped += 1

    def _apply(self, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
        kind, subject = key.get("keytype"), key.get("subject")
        if subject is not None and not isinstance(subject, str):
            raise Unreadable("a subject that is no text")
        match kind:
            case records.SCHEMA:
                self._apply_schema(key, value)
            case records.CONFIG:
                self._set(self._configs, subject, None if value is None else _config_of(value))
            case records.MODE:
                self._set(self._modes, subject, None if value is None else str(value.get("mode", READ_WRITE)))
            case records.DELETE_SUBJECT if value is not None:
                self._delete_subject(value)
            case records.CLEAR_SUBJECT if value is not None:
                self._clear(subject)
            case records.NOOP | records.DELETE_SUBJECT | records.CLEAR_SUBJECT:
                pass
            case _:
                raise Unreadable(f"a key of type {kind!r}")

    def _apply_schema(self, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
        subject, number = key.get("subject"), key.get("version")
        if not isinstance(subject, str) or not isinstance(number, int):
            raise Unreadable("a SCHEMA key lacks its parts")
        if value is None:
            self._forget((subject, number))
            return
        version = records.parsed_version(value)
        holder = self._ids.get(version.id)
        if holder is not None and holder != version.definition and self._places[version.id] != {(subject, number)}:
            raise Unreadable(f"schema {version.id} is another one")
        self._forget((subject, number))
        self._keep(version._replace(subject=subject, version=number))

    def _keep(self, version: Version) -> None:
        place = (version.subject, version.version)
        self._versions.setdefault(version.subject, {})[version.version] = version
        self._ids[version.id] = version.definition
        self._by_definition.setdefault(version.definition, version.id)
        self._places.setdefault(version.id, set()).add(place)
        self.id_max = max(self.id_max, version.id)
        for one in version.definition.references:
            self._referrers.setdefault((one.subject, one.version), set()).add(place)

    def _forget(self, place: Place) -> None:
        subject, number = place
        version = self._versions.get(subject, {}).pop(number, None)
        if version is None:
            return
        if not self._versions[subject]:
            del self._versions[subject]
        for one in version.definition.references:
            self._referrers[one.subject, one.version].discard(place)
        places = self._places[version.id]
        places.discard(place)
        if not places:
            del self._places[version.id], self._ids[version.id]
            if self._by_definition.get(version.definition) == version.id:
                del self._by_definition[version.definition]

    def _delete_subject(self, value: Mapping[str, Any]) -> None:
        subject, version_max = value.get("subject"), value.get("version")
        if not isinstance(subject, str) or not isinstance(version_max, int):
            raise Unreadable("a DELETE_SUBJECT record lacks its parts")
        versions = self._versions.get(subject, {})
        for number, version in list(versions.items()):
            if number <= version_max:
                versions[number] = version._replace(is_deleted=True)

    def _clear(self, subject: str | None) -> None:
        for name in list(self._versions) if subject is None else [subject]:
            for number in list(self._versions.get(name, ())):
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

    def definition(self, identifier: int) -> Definition | None:
        """Of an id."""
        return self._ids.get(identifier)

    def id_of(self, definition: Definition) -> int | None:
        """The id that a schema has already, under whichever subject."""
        return self._by_definition.get(definition)

    def of_guid(self, wanted: str) -> tuple[int, Definition] | None:
        """The schema with this guid, and its id."""
        return next(((number, one) for number, one in self._ids.items() if one.guid == wanted.lower()), None)

    def places(self, identifier: int) -> Iterable[Version]:
        """The versions with this id, deleted softly or not, by subject and version."""
        return [self._versions[subject][number] for subject, number in sorted(self._places.get(identifier, ()))]

    def referrers(self, subject: str, number: int, *, deleted: bool = False) -> list[Version]:
        """The versions that refer to one."""
        found = [self._versions[name][at] for name, at in sorted(self._referrers.get((subject, number), ()))]
        return [version for version in found if deleted or not version.is_deleted]

    def config(self, subject: str | None) -> Mapping[str, Any] | None:
        """As it was set, with `compatibilityLevel` and the like; None where it was not."""
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> str | None:
        """As it was set; None where it was not."""
        return self._modes.get(subject)


def _config_of(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key != "subject" and one is not None}
