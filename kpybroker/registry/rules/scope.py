"""What holds for a subject: its own configuration and mode, else the global ones; and which names are subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kpybroker.registry.compatibility import levels
from kpybroker.registry.errors import INVALID_SUBJECT, RegistryError, not_permitted
from kpybroker.registry.store import contexts
from kpybroker.registry.store.state import READ_WRITE, State

READ_ONLY: Final = "READONLY"
OVERRIDE: Final = "READONLY_OVERRIDE"
IMPORT: Final = "IMPORT"
FORWARD: Final = "FORWARD"
MODES: Final = (READ_WRITE, READ_ONLY, OVERRIDE, IMPORT, FORWARD)
SUBJECT_CHARACTERS_MAX: Final = 1024
EVERYWHERE: Final = contexts.mark(contexts.GLOBAL)


def check_subject(subject: str) -> None:
    """Raises RegistryError 42208 for a name that is none."""
    context = contexts.of(subject)
    if subject == "" or context == contexts.GLOBAL:
        raise _invalid(subject)
    check_scope(subject)


def check_scope(subject: str) -> None:
    """For configurations and modes, which contexts have too. Raises RegistryError 42208."""
    context, name = contexts.split(subject)
    is_bad = len(subject) > SUBJECT_CHARACTERS_MAX or subject.startswith(contexts.ALL) or not subject
    if is_bad or name in ("__GLOBAL", "__EMPTY") or not context.startswith("."):
        raise _invalid(subject)
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in subject):
        raise _invalid(subject)


def _invalid(subject: str) -> RegistryError:
    return RegistryError(INVALID_SUBJECT, f"The specified subject '{subject[:200]}' is not a valid.")


def config_in_scope(state: State, subject: str | None) -> Mapping[str, Any]:
    """The subject's own configuration; else that of its context, else the one of all contexts.

    The default context's configuration is the global one.
    """
    default = {"compatibilityLevel": levels.DEFAULT}
    own = None if subject is None else state.config(subject)
    if own is not None:
        return {**default, **own}
    return {**default, **(state.config(_context(subject)) or state.config(EVERYWHERE) or {})}


def _context(subject: str | None) -> str | None:
    """What the context's own settings are kept under."""
    return None if subject is None else contexts.mark(contexts.of(subject)) or None


def unaliased(state: State, subject: str) -> str:
    """The subject that another name stands for; an alias of an alias is none."""
    alias = (state.config(subject) or {}).get("alias")
    return contexts.resolved(contexts.of(subject), str(alias)) if alias else subject


def level_of(config: Mapping[str, Any]) -> str:
    """A level that is known here; a newer registry may have written another."""
    name = str(config.get("compatibilityLevel"))
    return name if name in levels.LEVELS else levels.DEFAULT


def mode_in_scope(state: State, subject: str | None) -> str:
    """READONLY_OVERRIDE of the registry holds for all subjects."""
    if state.mode(None) == OVERRIDE:
        return OVERRIDE
    own = None if subject is None else state.mode(subject)
    return own or state.mode(_context(subject)) or state.mode(EVERYWHERE) or READ_WRITE


def check_writable(state: State, subject: str | None) -> None:
    """Raises RegistryError 42205 in a read-only mode."""
    if mode_in_scope(state, subject) in (READ_ONLY, OVERRIDE):
        raise wrong_mode(subject, "is in read-only mode")


def wrong_mode(subject: str | None, why: str) -> RegistryError:
    """42205, with the subject and its context."""
    context = "" if subject is None else contexts.mark(contexts.of(subject))
    return not_permitted(f"Subject {'null' if subject is None else subject} in context {context} {why}")
