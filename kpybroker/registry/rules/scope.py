"""What holds for a subject: its own configuration and mode, else the global ones; and which names are subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kpybroker.registry.compatibility import levels
from kpybroker.registry.errors import INVALID_SUBJECT, RegistryError, not_permitted
from kpybroker.registry.store.state import READ_WRITE, State

READ_ONLY: Final = "READONLY"
OVERRIDE: Final = "READONLY_OVERRIDE"
IMPORT: Final = "IMPORT"
MODES: Final = (READ_WRITE, READ_ONLY, OVERRIDE, IMPORT)
SUBJECT_CHARACTERS_MAX: Final = 1024


def check_subject(subject: str) -> None:
    """Raises RegistryError 42208 for a name that is none, or is in a context."""
    if subject.startswith((":.", ":*:")):
        text = f"The specified subject '{subject}' is in a context, and this registry has the default context only."
        raise RegistryError(INVALID_SUBJECT, text)
    is_bad = not subject or len(subject) > SUBJECT_CHARACTERS_MAX or subject in ("__GLOBAL", "__EMPTY")
    if is_bad or any(ord(character) < 32 or 127 <= ord(character) < 160 for character in subject):
        raise RegistryError(INVALID_SUBJECT, f"The specified subject '{subject[:200]}' is not a valid subject name.")


def config_in_scope(state: State, subject: str | None) -> Mapping[str, Any]:
    """The subject's configuration over the global one over the default."""
    own = None if subject is None else state.config(subject)
    return {"compatibilityLevel": levels.DEFAULT, **(state.config(None) or {}), **(own or {})}


def level_of(config: Mapping[str, Any]) -> str:
    """A level that is known here; a newer registry may have written another."""
    name = str(config.get("compatibilityLevel"))
    return name if name in levels.LEVELS else levels.DEFAULT


def mode_in_scope(state: State, subject: str | None) -> str:
    """READONLY_OVERRIDE of the registry holds for all subjects."""
    general = state.mode(None) or READ_WRITE
    if general == OVERRIDE or subject is None:
        return general
    return state.mode(subject) or general


def check_writable(state: State, subject: str | None) -> None:
    """Raises RegistryError 42205 in a read-only mode."""
    if mode_in_scope(state, subject) in (READ_ONLY, OVERRIDE):
        raise not_permitted(f"Subject {subject or 'of the registry'} is in read-only mode")
