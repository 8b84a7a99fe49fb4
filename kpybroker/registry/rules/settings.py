"""Configuration and mode, of a subject (a name), of a context (`:.context:`) or of the registry (None).

Of Confluent's configuration, `validateFields` and `validateRules` are kept and have no effect here.
"""

from __future__ import annotations

from typing import Any

from kpybroker.registry.compatibility import levels
from kpybroker.registry.errors import (
    INVALID_COMPATIBILITY_LEVEL,
    INVALID_MODE,
    SUBJECT_CONFIG_NOT_FOUND,
    SUBJECT_MODE_NOT_FOUND,
    RegistryError,
    not_permitted,
    reference_exists,
    subject_not_found,
)
from kpybroker.registry.rules import scope
from kpybroker.registry.rules.change import Change
from kpybroker.registry.store import contexts, records
from kpybroker.registry.store.records import Record
from kpybroker.registry.store.state import READ_WRITE, State


def get_config(state: State, subject: str | None, *, is_effective: bool) -> dict[str, Any]:
    """Raises RegistryError 40408 where a subject has none of its own, unless the effective one is wanted."""
    if is_effective:
        return dict(scope.config_in_scope(state, subject))
    own = state.config(subject)
    if own is None and subject not in (None, scope.EVERYWHERE):
        shown = f"Subject '{subject}' does not have subject-level compatibility configured"
        raise RegistryError(SUBJECT_CONFIG_NOT_FOUND, shown)
    return {"compatibilityLevel": levels.DEFAULT, **{key: value for key, value in (own or {}).items() if value != ""}}


def put_config(state: State, subject: str | None, body: dict[str, Any]) -> Change:
    """What the body leaves out stays as it is, null removes it."""
    changed = dict(body)
    if "compatibility" in changed:
        changed["compatibilityLevel"] = _level(changed.pop("compatibility"))
    if subject is not None:
        scope.check_scope(subject)
    scope.check_writable(state, subject)
    merged = {**(state.config(subject) or {}), **changed}
    merged = {key: value for key, value in merged.items() if value is not None}
    shown = {"compatibility" if key == "compatibilityLevel" else key: value for key, value in merged.items()}
    kept = {key: value for key, value in merged.items() if value != ""}
    return Change([records.config(subject, kept)], shown)


def _level(name: str | None) -> str | None:
    if name is None or name.upper() in levels.LEVELS:
        return None if name is None else name.upper()
    text = "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
    raise RegistryError(INVALID_COMPATIBILITY_LEVEL, f"{text}forward_transitive, and full_transitive")


def delete_config(state: State, subject: str | None) -> Change:
    """The result is what was set. Raises RegistryError 40401 where nothing was."""
    own = state.config(subject)
    if own is None and subject is not None:
        raise subject_not_found(subject)
    scope.check_writable(state, subject)
    return Change([records.config(subject, None)], {"compatibilityLevel": levels.DEFAULT, **(own or {})})


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
        raise RegistryError(INVALID_MODE, "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.")
    if mode == scope.FORWARD and subject != scope.EVERYWHERE:
        raise RegistryError(INVALID_MODE, "Forward mode only supported on global level")
    written: list[Record] = []
    if mode == scope.IMPORT and scope.mode_in_scope(state, subject) != scope.IMPORT and not force:
        written = _emptied(state, subject)
    return Change([*written, records.mode(subject, mode)], {"mode": body["mode"]})


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
            raise reference_exists(version.subject, version.version)
    removed = [records.schema_removed(version.subject, version.version) for version in versions]
    return [*removed, records.subject_cleared(subject)]


def delete_mode(state: State, subject: str | None, *, recursive: bool) -> Change:
    """The result is what was set; with `recursive`, the modes of a context's subjects are removed with its own.

    Raises RegistryError 40401 where nothing was, unless it is `recursive`. The registry always has a mode.
    """
    if subject is not None:
        scope.check_scope(subject)
    own = state.mode(subject)
    if own is None and subject not in (None, scope.EVERYWHERE):
        if not recursive:
            raise subject_not_found(str(subject))
        result: dict[str, Any] = {}
    else:
        result = {"mode": own or READ_WRITE}
    inner = state.subjects_with_mode(subject) if recursive else []
    return Change([records.mode(one, None) for one in (subject, *inner)], result)
