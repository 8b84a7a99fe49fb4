"""`/config` and `/mode`, of a subject or of the registry; `/contexts`, of which there is one."""

from __future__ import annotations

from kpybroker.registry.api.call import Answer, Call
from kpybroker.registry.rules import settings


def _subject(call: Call) -> str | None:
    """None for the registry, which the name of the default context is too."""
    return (call.subject or None) if "subject" in call.path else None


def get_config(call: Call) -> Answer:
    """GET /config, /config/{subject}"""
    is_effective = call.flag("defaultToGlobal")
    return call.service.read(lambda state, _: settings.get_config(state, _subject(call), is_effective=is_effective))


def put_config(call: Call) -> Answer:
    """PUT /config, /config/{subject}"""
    return call.service.write(lambda state, _: settings.put_config(state, _subject(call), call.body))


def delete_config(call: Call) -> Answer:
    """DELETE /config, /config/{subject}"""
    return call.service.write(lambda state, _: settings.delete_config(state, _subject(call)))


def get_mode(call: Call) -> Answer:
    """GET /mode, /mode/{subject}"""
    is_effective = call.flag("defaultToGlobal")
    return call.service.read(lambda state, _: settings.get_mode(state, _subject(call), is_effective=is_effective))


def put_mode(call: Call) -> Answer:
    """PUT /mode, /mode/{subject}"""
    force = call.flag("force")
    return call.service.write(lambda state, _: settings.put_mode(state, _subject(call), call.body, force=force))


def delete_mode(call: Call) -> Answer:
    """DELETE /mode, /mode/{subject}"""
    return call.service.write(lambda state, _: settings.delete_mode(state, _subject(call)))


def get_contexts(call: Call) -> Answer:
    """GET /contexts: the default one alone."""
    return ["."]
