"""Deleting: first softly, which hides a version and keeps its id; then for good, with `permanent`."""

from __future__ import annotations

from kpybroker.registry.errors import (
    CONTEXT_NOT_EMPTY,
    SUBJECT_NOT_SOFT_DELETED,
    SUBJECT_SOFT_DELETED,
    VERSION_NOT_SOFT_DELETED,
    VERSION_SOFT_DELETED,
    RegistryError,
    reference_exists,
    subject_not_found,
)
from kpybroker.registry.rules import look_up, scope
from kpybroker.registry.rules.change import Change
from kpybroker.registry.store import contexts, records
from kpybroker.registry.store.records import Record, Version
from kpybroker.registry.store.state import State


def version(state: State, subject: str, text: str, *, permanent: bool) -> Change:
    """The result is the number of the version."""
    found = look_up.find_version(state, subject, text, deleted=True)
    scope.check_writable(state, subject)
    if not permanent and found.is_deleted:
        shown = f"Subject '{subject}' Version {found.version} was soft deleted."
        raise RegistryError(VERSION_SOFT_DELETED, f"{shown}Set permanent=true to delete permanently")
    if permanent and not found.is_deleted:
        shown = f"Subject '{subject}' Version {found.version} was not deleted first before being permanently deleted"
        raise RegistryError(VERSION_NOT_SOFT_DELETED, shown)
    _check_unused(state, found, state.referrers(subject, found.version, deleted=permanent))
    if not permanent:
        return Change([records.schema(found._replace(is_deleted=True))], found.version)
    left = [one for one in state.versions(subject, deleted=True) if one.version != found.version]
    settings = [] if left else _settings(state, subject)
    return Change([records.schema_removed(subject, found.version), *settings], found.version)


def subject(state: State, name: str, *, permanent: bool) -> Change:
    """The result is the list of versions that were deleted."""
    versions = list(state.versions(name, deleted=permanent))
    if not versions:
        if any(state.versions(name, deleted=True)):
            shown = f"Subject '{name}' was soft deleted.Set permanent=true to delete permanently"
            raise RegistryError(SUBJECT_SOFT_DELETED, shown)
        raise subject_not_found(name)
    scope.check_writable(state, name)
    for one in versions:
        others = [user for user in state.referrers(name, one.version, deleted=permanent) if user.subject != name]
        _check_unused(state, one, others)
        if permanent and not one.is_deleted:
            shown = f"Subject '{name}' was not deleted first before being permanently deleted"
            raise RegistryError(SUBJECT_NOT_SOFT_DELETED, shown)
    numbers = [one.version for one in versions]
    if not permanent:
        return Change([records.subject_deleted(name, numbers[-1])], numbers)
    removed = [records.schema_removed(name, number) for number in reversed(numbers)]
    return Change([*removed, *_settings(state, name)], numbers)


def context(state: State, name: str) -> Change:
    """Removes one without subjects. Raises RegistryError 42211 for one that has some, deleted softly or not."""
    if any(contexts.of(subject) == name for subject in state.subjects(deleted=True)):
        raise RegistryError(CONTEXT_NOT_EMPTY, f"The specified context '{contexts.mark(name)}' is not empty.")
    return Change([records.context(name, exists=False)] if name in state.context_names()[1:] else [], None)


def _check_unused(state: State, version: Version, users: list[Version]) -> None:
    if users:
        raise reference_exists(version.subject, version.version)


def _settings(state: State, subject: str) -> list[Record]:
    """The removal of what was set for a subject that has no version any more."""
    removed = []
    if state.mode(subject) is not None:
        removed.append(records.mode(subject, None))
    if state.config(subject) is not None:
        removed.append(records.config(subject, None))
    return removed
