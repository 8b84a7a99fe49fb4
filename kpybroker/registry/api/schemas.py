"""`/schemas`: what an id is, where it is used, and all schemas."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.registry.api.call import Call, Result, Text
from kpybroker.registry.errors import RegistryError, schema_not_found
from kpybroker.registry.rules import entities, look_up, scope
from kpybroker.registry.rules.library import Library
from kpybroker.registry.schemas.model import KINDS, Definition
from kpybroker.registry.store import contexts
from kpybroker.registry.store.records import Version
from kpybroker.registry.store.state import State

NOT_FOUND = 404
ID_MAX = 2**31 - 1


def get_types(call: Call) -> Result:
    """GET /schemas/types: the types of schemas"""
    return list(KINDS)


def list_schemas(call: Call) -> Result:
    """GET /schemas: all versions of subjects with a prefix, or the latest of each"""
    prefix = call.parameter("subjectPrefix", "")
    is_deleted, is_latest = call.flag("deleted"), call.flag("latestOnly")
    rule = call.parameter("ruleType")

    def query(state: State, _: Library) -> list[Result]:
        found: list[Version] = []
        for name in sorted(state.subjects(deleted=is_deleted), key=contexts.split):
            if contexts.matches(prefix, name):
                versions = list(state.versions(name, deleted=is_deleted))
                found += versions[-1:] if is_latest else versions
        shown = call.page([version for version in found if not rule or look_up.has_rule(version.definition, rule)])
        return [_listed(call, state, version) for version in shown]

    return call.service.read(query)


def _listed(call: Call, state: State, version: Version) -> Result:
    aliases = state.aliases_of(version.subject) if call.flag("aliases") else []
    return {**entities.listed(version), **({"aliases": aliases} if aliases else {})}


def get_schema(call: Call) -> Result:
    """GET /schemas/ids/{id}: the schema of an id"""
    identifier = _id(call)

    def query(state: State, library: Library) -> Result:
        context, definition = _found(call, state, identifier)
        form = call.parameter("format")
        text = library.parsed(definition, context).formatted(form) if form else None
        more = {"maxId": state.id_max(context)} if call.flag("fetchMaxId") else {}
        version = state.user(identifier, context)
        return call.qualified(entities.by_id(version, text, **more), version.subject)

    return call.service.read(query)


def get_text(call: Call) -> Result:
    """GET /schemas/ids/{id}/schema: its text alone"""
    return Text(get_schema(call)["schema"])


def get_subjects(call: Call) -> Result:
    """GET /schemas/ids/{id}/subjects: the subjects that have it"""
    return call.page(list(dict.fromkeys(version.subject for version in _places(call))))


def get_versions(call: Call) -> Result:
    """GET /schemas/ids/{id}/versions: the subjects and versions that have it"""
    return call.page([{"subject": version.subject, "version": version.version} for version in _places(call)])


def get_by_guid(call: Call) -> Result:
    """GET /schemas/guids/{guid}: the schema of a guid"""

    def query(state: State, library: Library) -> Result:
        found = state.of_guid(call.path["guid"])
        if not found:
            raise schema_not_found(call.path["guid"])
        context, identifier, definition = found[0]
        form = call.parameter("format")
        text = library.parsed(definition, context).formatted(form) if form else None
        record = entities.record_of(state.user(identifier, context))
        return {**entities.of_definition(definition, text), **record}

    return call.service.read(query)


def get_ids_of_guid(call: Call) -> Result:
    """GET /schemas/guids/{guid}/ids: its id in each context"""
    found = call.service.read(lambda state, _: state.of_guid(call.path["guid"]))
    return [{"context": context, "id": identifier} for context, identifier, _ in found]


def _places(call: Call) -> Iterable[Version]:
    identifier = _id(call)

    def query(state: State, _: Library) -> list[Version]:
        subject = scope.unaliased(state, contexts.normal(call.parameter("subject")))
        context = look_up.context_with_id(state, identifier, subject)
        if context is None:
            raise schema_not_found()
        return [
            version for version in state.places(identifier, context) if call.flag("deleted") or not version.is_deleted
        ]

    return call.service.read(query)


def _id(call: Call) -> int:
    text = call.path["id"]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= look_up.DIGITS_MAX and int(digits) <= ID_MAX):
        raise RegistryError(NOT_FOUND, "HTTP 404 Not Found")
    return int(text)


def _found(call: Call, state: State, identifier: int) -> tuple[str, Definition]:
    """The context and the schema that an id means; the parameter `subject` says in which context."""
    subject = scope.unaliased(state, contexts.normal(call.parameter("subject")))
    context = look_up.context_with_id(state, identifier, subject)
    definition = None if context is None else state.definition(identifier, context)
    if context is None or definition is None:
        raise schema_not_found(identifier)
    return context, definition
