"""Registering a schema under a subject, and asking whether it could be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpybroker.registry.compatibility import levels
from kpybroker.registry.errors import INCOMPATIBLE_SCHEMA, RegistryError, invalid_schema, not_permitted
from kpybroker.registry.rules import look_up, scope
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
    wanted, _ = _wanted(state, library, subject, body, normalize)
    version = look_up.same_version(state, subject, wanted)
    identifier, number = _asked(body)
    if version is None or (identifier is not None and identifier != version.id):
        return None
    return _registered(version) if number is None or number == version.version else None


def find(
    state: State, library: Library, subject: str, body: dict[str, Any], normalize: bool, *, deleted: bool
) -> Version | None:
    """The version of a subject that is this schema. Raises RegistryError 42201 for what is not a schema."""
    wanted, _ = _wanted(state, library, subject, body, normalize)
    return look_up.same_version(state, subject, wanted, deleted=deleted)


def plan(state: State, library: Library, subject: str, body: dict[str, Any], *, normalize: bool, force: bool) -> Change:
    """Raises RegistryError: 42201 for no schema, 409 for an incompatible one, 42205 for one that the mode forbids."""
    scope.check_subject(subject)
    identifier, number = _asked(body)
    is_import = _check_mode(state, subject, identifier)
    wanted, parsed = _wanted(state, library, subject, body, normalize, is_new=not is_import)
    versions = list(state.versions(subject, deleted=True))
    current = [version for version in versions if not version.is_deleted]
    if current and not is_import:
        last = current[-1].definition
        wanted = wanted._replace(
            metadata=last.metadata if wanted.metadata is None else wanted.metadata,
            rule_set=last.rule_set if wanted.rule_set is None else wanted.rule_set,
        )
    same = look_up.same_version(state, subject, wanted)
    if same is not None and number is None and identifier in (None, same.id):
        return Change([], _registered(same))
    if not is_import and not force:
        _check_compatible(state, library, subject, wanted, parsed, current)
    following = max((version.version for version in versions), default=0) + 1
    if number is not None and number != following and not is_import:
        raise invalid_schema("Version is not one more than previous version")
    version = Version(subject, number or following, _id(state, subject, wanted, identifier), wanted)
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
    return Change([*written, records.schema(version)], _registered(version), version)


def reasons(
    state: State, library: Library, subject: str, body: dict[str, Any], earlier: Sequence[Version], normalize: bool
) -> list[str]:
    """Why a schema may not follow `earlier`, by the level of the subject. Raises RegistryError 42201."""
    definition, parsed = _wanted(state, library, subject, body, normalize)
    return _reasons(state, library, subject, definition, parsed, earlier)


def _registered(version: Version) -> dict[str, Any]:
    """The response. Without the text: a client of Protobuf takes the one that it sent to be the one that is kept."""
    return {"id": version.id, "version": version.version, "guid": version.definition.guid}


def _wanted(
    state: State, library: Library, subject: str, body: dict[str, Any], normalize: bool, *, is_new: bool = False
) -> tuple[Definition, Schema]:
    normalize = normalize or scope.config_in_scope(state, subject).get("normalize") is True
    definition = look_up.definition_of(state, subject, body)
    return look_up.canonical(library, subject, definition, normalize=normalize, is_new=is_new)


def _asked(body: dict[str, Any]) -> tuple[int | None, int | None]:
    """The id and the version that a request names, as for an import. Raises RegistryError 42201."""
    found: list[int | None] = []
    for key in ("id", "version"):
        value = body.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value >= 2**31):
            raise invalid_schema(f"{key} is no number")
        found.append(value if value is not None and value > 0 else None)
    return found[0], found[1]


def _check_mode(state: State, subject: str, identifier: int | None) -> bool:
    """Whether this is an import. Raises RegistryError 42205."""
    scope.check_writable(state, subject)
    mode = scope.mode_in_scope(state, subject)
    if identifier is not None and mode != scope.IMPORT:
        raise not_permitted(f"Subject {subject} is not in import mode")
    if identifier is None and mode != READ_WRITE:
        raise not_permitted(f"Subject {subject} is not in read-write mode")
    return mode == scope.IMPORT


def _id(state: State, subject: str, wanted: Definition, identifier: int | None) -> int:
    context = contexts.of(subject)
    if identifier is None:
        return state.id_of(wanted, context) or state.id_max(context) + 1
    holder = state.definition(identifier, context)
    if holder is not None and holder != wanted:
        raise not_permitted(f"Overwrite new schema with id {identifier} is not permitted.")
    return identifier


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
