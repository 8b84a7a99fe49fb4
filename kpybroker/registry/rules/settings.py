"""Configuration and mode, of a subject (a name), of a context (`:.context:`) or of the registry (None).

Of Confluent's configuration, `compatibility`, `normalize` and `compatibilityGroup` have an effect here. Others are
refused when set, and kept when another registry has written them.
"""

from __future__ import annotations

from typing import Any, Final

from kpybroker.registry.compatibility import levels
from kpybroker.registry.errors import (
    INVALID_COMPATIBILITY_LEVEL,
    INVALID_MODE,
    REFERENCE_EXISTS,
    SUBJECT_CONFIG_NOT_FOUND,
    SUBJECT_MODE_NOT_FOUND,
    RegistryError,
    not_permitted,
    subject_not_found,
)
from kpybroker.registry.rules import scope
from kpybroker.registry.rules.change import Change
from kpybroker.registry.store import contexts, records
from kpybroker.registry.store.records import Record
from kpybroker.registry.store.state import READ_WRITE, State

UNPROCESSABLE: Final = 422
IGNORED: Final = ("validateFields", "validateNewSchemas", "validateRules")
"""False is what happens anyway."""


def get_config(state: State, subject: str | None, *, is_effective: bool) -> dict[str, Any]:
    """Raises RegistryError 40408 where a subject has none of its own, unless the effective one is wanted."""
    if is_effective:
        return dict(scope.config_in_scope(state, subject))
    own = state.config(subject)
    if subject in (None, scope.EVERYWHERE):
        return {"compatibilityLevel": levels.DEFAULT, **(own or {})}
    if own is None:
        shown = f"Subject '{subject}' does not have subject-level compatibility configured"
        raise RegistryError(SUBJECT_CONFIG_NOT_FOUND, shown)
    return dict(own)


def put_config(state: State, subject: str | None, body: dict[str, Any]) -> Change:
    """What the body leaves out stays as it is, null removes it."""
    if subject is not None:
        scope.check_scope(subject)
    changed = {key: value for key, value in body.items() if not (key in IGNORED and not value)}
    level = changed.pop("compatibility", changed.pop("compatibilityLevel", None))
    if level is not None:
        level = str(level).upper()
        if level not in levels.LEVELS:
            text = "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
            raise RegistryError(INVALID_COMPATIBILITY_LEVEL, f"{text}forward_transitive, and full_transitive")
        changed["compatibilityLevel"] = level
    _check_keys(changed)
    scope.check_writable(state, subject)
    merged = {**(state.config(subject) or {}), **changed}
    merged = {key: value for key, value in merged.items() if value is not None}
    shown = {"compatibility" if key == "compatibilityLevel" else key: value for key, value in merged.items()}
    return Change([records.config(subject, merged)], shown)


def _check_keys(changed: dict[str, Any]) -> None:
    kinds = {"compatibilityLevel": str, "normalize": bool, "compatibilityGroup": str}
    for key, value in changed.items():
        if value is None:
            continue
        if key not in kinds:
            raise RegistryError(UNPROCESSABLE, f"{key} has no effect in this registry; {', '.join(kinds)} have")
        if not isinstance(value, kinds[key]):
            raise RegistryError(UNPROCESSABLE, f"{key} cannot be {value!r}")


def delete_config(state: State, subject: str | None) -> Change:
    """The result is what was set. Raises RegistryError 40401 where nothing was."""
    scope.check_writable(state, subject)
    own = state.config(subject)
    if own is None and subject is not None:
        raise subject_not_found(subject)
    return Change([records.config(subject, None)], own or get_config(state, None, is_effective=True))


def get_mode(state: State, subject: str | None, *, is_effective: bool) -> dict[str, Any]:
    """Raises RegistryError 40409 where a subject has none of its own, unless the effective one is wanted."""
    if is_effective:
        return {"mode": scope.mode_in_scope(state, subject)}
    own = state.mode(subject)
    if subject in (None, scope.EVERYWHERE):
        return {"mode": own or READ_WRITE}
    if own is None:
        shown = f"Subject '{subject}' does not have subject-level mode configured"
        raise RegistryError(SUBJECT_MODE_NOT_FOUND, shown)
    return {"mode": own}


def put_mode(state: State, subject: str | None, body: dict[str, Any], *, force: bool) -> Change:
    """Raises RegistryError 42204 for no mode, 42205 for an import into a registry or subject that is not empty."""
    if subject is not None:
        scope.check_scope(subject)
    mode = str(body.get("mode")).upper()
    if mode not in scope.MODES:
        known = ", ".join(scope.MODES)
        raise RegistryError(INVALID_MODE, f"Invalid mode. Valid values are {known}")
    written: list[Record] = []
    if mode == scope.IMPORT and scope.mode_in_scope(state, subject) != scope.IMPORT and not force:
        written = _emptied(state, subject)
    return Change([*written, records.mode(subject, mode)], {"mode": mode})


def _emptied(state: State, subject: str | None) -> list[Record]:
    """Removes what is deleted softly: imported schemas may have those ids."""
    subjects = [name for name in state.subjects(deleted=True) if contexts.contains(subject, name)]
    versions = [version for name in subjects for version in state.versions(name, deleted=True)]
    if any(not version.is_deleted for version in versions):
        raise not_permitted("Cannot import since found existing subjects")
    for version in versions:
        if any(
            user.subject not in subjects for user in state.referrers(version.subject, version.version, deleted=True)
        ):
            shown = f"{{subject={version.subject},version={version.version}}}"
            raise RegistryError(REFERENCE_EXISTS, f"One or more references exist to the schema {shown}.")
    removed = [records.schema_removed(version.subject, version.version) for version in versions]
    return [*removed, records.subject_cleared(subject)]


def delete_mode(state: State, subject: str | None) -> Change:
    """The result is what was set. Raises RegistryError 40401 where nothing was."""
    own = state.mode(subject)
    if own is None and subject is not None:
        raise subject_not_found(subject)
    return Change([records.mode(subject, None)], {"mode": own or READ_WRITE})
