"""`/config` and `/mode`, of a subject, of a context or of the registry; `/contexts`."""

from __future__ import annotations

from kpybroker.registry.api.call import Call, Empty, Result
from kpybroker.registry.rules import delete, settings
from kpybroker.registry.store import contexts


def _subject(call: Call) -> str | None:
    """None for the registry, which the name of the default context is too."""
    return (call.subject or None) if "subject" in call.path else None


def get_config(call: Call) -> Result:
    """GET /config, /config/{subject}: the configuration, of the registry, a context or a subject"""
    is_effective = call.flag("defaultToGlobal")
    return call.service.read(lambda state, _: settings.get_config(state, _subject(call), is_effective=is_effective))


def put_config(call: Call) -> Result:
    """PUT /config, /config/{subject}: sets what the body names; null removes it"""
    return call.service.write(lambda state, _: settings.put_config(state, _subject(call), call.body))


def delete_config(call: Call) -> Result:
    """DELETE /config, /config/{subject}: removes it"""
    return call.service.write(lambda state, _: settings.delete_config(state, _subject(call)))


def get_mode(call: Call) -> Result:
    """GET /mode, /mode/{subject}: the mode, of the registry, a context or a subject"""
    is_effective = call.flag("defaultToGlobal")
    return call.service.read(lambda state, _: settings.get_mode(state, _subject(call), is_effective=is_effective))


def put_mode(call: Call) -> Result:
    """PUT /mode, /mode/{subject}: sets it"""
    force = call.flag("force")
    return call.service.write(lambda state, _: settings.put_mode(state, _subject(call), call.body, force=force))


def delete_mode(call: Call) -> Result:
    """DELETE /mode, /mode/{subject}: removes it"""
    recursive = call.flag("recursive")
    return call.service.write(lambda state, _: settings.delete_mode(state, _subject(call), recursive=recursive))


def get_contexts(call: Call) -> Result:
    """GET /contexts: the default one, and those that were made."""
    prefix = call.parameter("contextPrefix", "")
    found = call.service.read(lambda state, _: state.context_names())
    return call.page([context for context in found if context.startswith(prefix)])


def delete_context(call: Call) -> Result:
    """DELETE /contexts/{context}: removes an empty one"""
    name = contexts.of(call.path["context"])
    call.service.write(lambda state, _: delete.context(state, name))
    return Empty()
