"""Registering a schema under a subject, and asking whether it could be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kpybroker.registry.compatibility import levels
from kpybroker.registry.errors import (
    INCOMPATIBLE_SCHEMA,
    INVALID_SCHEMA,
    RegistryError,
    invalid_schema,
    not_permitted,
)
from kpybroker.registry.rules import attachments, entities, look_up, scope
from kpybroker.registry.rules.change import Change
from kpybroker.registry.rules.library import Library, Schema
from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store import contexts, records
from kpybroker.registry.store.records import Version
from kpybroker.registry.store.state import READ_WRITE, State

Reasons = Callable[[State, Library], list[str]]


def known(state: State, library: Library, subject: str, body: dict[str, Any], normalize: bool) -> dict[str, Any] | None:
    """The response for a schema that the subject has already: such a request writes nothing, so any instance responds.

    None where a leader has to decide. Raises RegistryError for what is not a schema.
    """
    scope.check_subject(subject)
    has_tags = bool(body.get("schemaTagsToAdd") or body.get("schemaTagsToRemove"))
    if look_up.is_empty(body) or has_tags or attachments.has_defaults(scope.config_in_scope(state, subject)):
        return None
    with suppress(RegistryError):  # one that is refused as a new schema may be there already
        _wanted(state, library, subject, body, normalize, is_new=True)
    version, _ = _same(state, library, subject, body, normalize, deleted=False)
    identifier, asked = _asked(body)
    if version is None or identifier not in (None, version.id):
        return None
    is_latest = version == max(state.versions(subject), key=lambda one: one.version)
    is_it = asked == 0 or (asked == -1 and is_latest) or (identifier is not None and asked == version.version)
    if not is_it:
        return None
    return {**entities.registered(version, body["schema"]), **(entities.record_of(version) if asked == -1 else {})}


def find(
    state: State, library: Library, subject: str, body: dict[str, Any], normalize: bool, *, deleted: bool
) -> Version | None:
    """The version of a subject that is this schema, as it is or with what a registration would add to it.

    Raises RegistryError 42201 for what is not a schema.
    """
    if look_up.is_empty(body):
        return None
    found, parsed = _same(state, library, subject, body, normalize, deleted=deleted)
    last = max(state.versions(subject), key=lambda one: one.version, default=None)
    if found is None and parsed is not None and last is not None:
        normalize = _normalizes(state, subject, normalize)
        wanted, _ = _wanted(state, library, subject, body, normalize)
        full = attachments.completed(wanted, last.definition, scope.config_in_scope(state, subject))
        found = look_up.same_version(state, library, subject, full, normalize=normalize, deleted=deleted)
    if found is None and parsed is not None:
        parsed.check_names()
    return found


def _same(
    state: State, library: Library, subject: str, body: dict[str, Any], normalize: bool, *, deleted: bool
) -> tuple[Version | None, Schema | None]:
    """The version that is the schema of a request, and the schema, if it can be read."""
    normalize = _normalizes(state, subject, normalize)
    try:
        wanted, parsed = _wanted(state, library, subject, body, normalize)
    except RegistryError:
        found = look_up.same_text(state, subject, look_up.definition_of(state, subject, body), deleted=deleted)
        if found is None:
            raise
        return found, None
    return look_up.same_version(state, library, subject, wanted, normalize=normalize, deleted=deleted), parsed


def plan(state: State, library: Library, subject: str, body: dict[str, Any], *, normalize: bool, force: bool) -> Change:
    """Raises RegistryError: 42201 for no schema, 409 for an incompatible one, 42205 for one that the mode forbids.

    A request without a schema means the latest one's, so that metadata can be set alone.
    """
    scope.check_subject(subject)
    if body.get("schemaTagsToAdd") or body.get("schemaTagsToRemove"):
        raise RegistryError(
            INVALID_SCHEMA, "Tags in the text of a schema cannot be changed here: send the text with them."
        )
    identifier, asked = _asked(body)
    is_import = _check_mode(state, subject, identifier)
    versions = list(state.versions(subject, deleted=True))
    following = max((version.version for version in versions), default=0) + 1
    current = [version for version in versions if not version.is_deleted]
    last = current[-1].definition if current and not is_import else None
    if look_up.is_empty(body) and last is not None:
        body = {**body, "schema": last.text, "schemaType": last.kind}
        body["references"] = [one._asdict() for one in last.references]
    normalize = _normalizes(state, subject, normalize)
    wanted, parsed = _wanted(state, library, subject, body, normalize, is_new=not is_import)
    if not is_import:
        wanted = attachments.completed(wanted, last, scope.config_in_scope(state, subject), asked, following)
    same = look_up.same_version(state, library, subject, wanted, normalize=normalize)
    if same is not None and asked == 0 and identifier in (None, same.id):
        return Change([], entities.registered(same, body["schema"]))
    _check_encodable(wanted.text)
    if not is_import and not force:
        _check_compatible(state, library, subject, wanted, parsed, current)
    if asked > 0 and asked != following and not is_import:
        raise RegistryError(INVALID_SCHEMA, "Version is not one more than previous version")
    number = asked if asked > 0 else following
    version = Version(subject, number, _id(state, subject, wanted, identifier), wanted)
    context = contexts.of(subject)
    written = [] if context in state.context_names() else [records.context(context)]
    written += [
        records.schema_removed(subject, old.version)
        for old in versions
        if old.is_deleted
        and old.id == version.id
        and old.version < version.version
        and not state.referrers(subject, old.version, deleted=True)
    ]
    return Change([*written, records.schema(version)], entities.registered(version, body["schema"]), version)


def reasons(
    state: State, library: Library, subject: str, body: dict[str, Any], earlier: Sequence[Version], normalize: bool
) -> list[str]:
    """Why a schema may not follow `earlier`, by the level of the subject. Raises RegistryError 42201."""
    normalize = _normalizes(state, subject, normalize)
    definition, parsed = _wanted(state, library, subject, body, normalize, is_new=True)
    return _reasons(state, library, subject, definition, parsed, earlier)


def _normalizes(state: State, subject: str, asked: bool) -> bool:
    return asked or scope.config_in_scope(state, subject).get("normalize") is True


def _wanted(
    state: State, library: Library, subject: str, body: dict[str, Any], normalize: bool, *, is_new: bool = False
) -> tuple[Definition, Schema]:
    definition = look_up.definition_of(state, subject, body)
    return look_up.canonical(library, subject, definition, normalize=normalize, is_new=is_new)


def _asked(body: dict[str, Any]) -> tuple[int | None, int]:
    """The id and the version that a request names, as for an import; version -1 is the next one, and 0 none."""
    identifier, version = body.get("id"), body.get("version") or 0
    return (None if identifier is None or identifier < 0 else identifier), max(-1, version)


def _check_mode(state: State, subject: str, identifier: int | None) -> bool:
    """Whether this is an import. Raises RegistryError 42205."""
    scope.check_writable(state, subject)
    mode = scope.mode_in_scope(state, subject)
    is_import = mode in (scope.IMPORT, scope.FORWARD)
    if identifier is not None and not is_import:
        raise scope.wrong_mode(subject, "is not in import or forward mode")
    if identifier is None and mode != READ_WRITE:
        raise scope.wrong_mode(subject, "is not in read-write mode")
    return is_import


def _id(state: State, subject: str, wanted: Definition, identifier: int | None) -> int:
    context = contexts.of(subject)
    if identifier is None:
        return state.id_of(wanted, context) or state.id_max(context) + 1
    holder = state.definition(identifier, context)
    if holder is not None and holder != wanted:
        place = contexts.mark(context)
        raise not_permitted(f"Overwrite new schema with id {identifier} in context {place} is not permitted.")
    return identifier


def _check_encodable(text: str) -> None:
    """An escape in JSON can be half a pair, as in `"\\ud83d"`: no record of the topic and no response can hold that."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid_schema("it has half a surrogate pair, which is no text") from None


def _check_compatible(
    state: State, library: Library, subject: str, wanted: Definition, parsed: Schema, current: list[Version]
) -> None:
    found = _reasons(state, library, subject, wanted, parsed, current)
    if found:
        raise RegistryError(
            INCOMPATIBLE_SCHEMA,
            "Schema being registered is incompatible with an earlier schema for subject "
            f'"{subject}", details: [{", ".join(found)}]',
        )


def _reasons(
    state: State, library: Library, subject: str, wanted: Definition, parsed: Schema, earlier: Sequence[Version]
) -> list[str]:
    config = scope.config_in_scope(state, subject)
    group = config.get("compatibilityGroup")
    if group is not None:
        own = look_up.property_of(wanted, group)
        earlier = [version for version in earlier if look_up.property_of(version.definition, group) == own]
    level = scope.level_of(config)
    if not levels.LEVELS[level].transitive:
        earlier = earlier[-1:]
    if level == "NONE":
        return []
    return library.reasons(level, parsed.source, earlier)
