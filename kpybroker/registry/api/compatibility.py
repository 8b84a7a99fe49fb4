"""`/compatibility`: whether a schema could be registered, without doing it."""

from __future__ import annotations

from kpybroker.registry.api.call import Call, Result
from kpybroker.registry.errors import RegistryError, version_not_found
from kpybroker.registry.rules import look_up, register
from kpybroker.registry.rules.library import Library
from kpybroker.registry.store.state import State


def with_version(call: Call) -> Result:
    """POST /compatibility/subjects/{subject}/versions/{version}: whether a schema may follow a version"""
    number = look_up.version_number(call.path["version"])

    def query(state: State, library: Library) -> list[str]:
        versions = list(state.versions(call.subject))
        compared = versions[-1:] if number is None else [one for one in versions if one.version == number]
        if number is not None and not compared:
            raise version_not_found(number)
        return register.reasons(state, library, call.subject, call.body, compared, call.flag("normalize"))

    return _result(call, query)


def with_subject(call: Call) -> Result:
    """POST /compatibility/subjects/{subject}/versions: whether it may follow the versions of a subject"""

    def query(state: State, library: Library) -> list[str]:
        versions = list(state.versions(call.subject))
        return register.reasons(state, library, call.subject, call.body, versions, call.flag("normalize"))

    return _result(call, query)


def _result(call: Call, query: register.Reasons) -> Result:
    is_verbose = call.flag("verbose")
    try:
        messages = call.service.read(query)
    except RegistryError as error:
        if not (is_verbose and error.status == 422):
            raise
        messages = [error.message]
    return {"is_compatible": not messages, **({"messages": messages} if is_verbose else {})}
