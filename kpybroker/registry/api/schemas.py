"""`/schemas`: what an id is, where it is used, and all schemas."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.registry.api.call import Answer, Call, Text
from kpybroker.registry.errors import RegistryError, schema_not_found
from kpybroker.registry.rules import look_up
from kpybroker.registry.rules.library import Library
from kpybroker.registry.schemas.model import KINDS, Definition
from kpybroker.registry.store.records import Version
from kpybroker.registry.store.state import State

NOT_FOUND = 404
ID_MAX = 2**31 - 1


def get_types(call: Call) -> Answer:
    """GET /schemas/types"""
    return list(KINDS)


def list_schemas(call: Call) -> Answer:
    """GET /schemas"""
    prefix = call.query.get("subjectPrefix", "").removeprefix(":*:").removeprefix(":.:")
    is_deleted, is_latest = call.flag("deleted"), call.flag("latestOnly")

    def query(state: State, _: Library) -> list[Version]:
        found: list[Version] = []
        for name in state.subjects(deleted=is_deleted):
            if name.startswith(prefix):
                versions = list(state.versions(name, deleted=is_deleted))
                found += versions[-1:] if is_latest else versions
        return found

    return [look_up.version_entity(version) for version in call.page(call.service.read(query))]


def get_schema(call: Call) -> Answer:
    """GET /schemas/ids/{id}"""
    identifier = _id(call)

    def query(state: State, library: Library) -> Answer:
        definition = _definition(state, identifier)
        form = call.query.get("format")
        text = library.parsed(definition).formatted(form) if form else None
        made = look_up.entity(definition, text)
        return {**made, "maxId": state.id_max} if call.flag("fetchMaxId") else made

    return call.service.read(query)


def get_text(call: Call) -> Answer:
    """GET /schemas/ids/{id}/schema"""
    return Text(get_schema(call)["schema"])


def get_subjects(call: Call) -> Answer:
    """GET /schemas/ids/{id}/subjects"""
    return call.page(list(dict.fromkeys(version.subject for version in _places(call))))


def get_versions(call: Call) -> Answer:
    """GET /schemas/ids/{id}/versions"""
    return call.page([{"subject": version.subject, "version": version.version} for version in _places(call)])


def get_by_guid(call: Call) -> Answer:
    """GET /schemas/guids/{guid}"""

    def query(state: State, library: Library) -> Answer:
        _, definition = _of_guid(state, call.path["guid"])
        form = call.query.get("format")
        return look_up.entity(definition, library.parsed(definition).formatted(form) if form else None)

    return call.service.read(query)


def get_ids_of_guid(call: Call) -> Answer:
    """GET /schemas/guids/{guid}/ids"""
    identifier, _ = call.service.read(lambda state, _: _of_guid(state, call.path["guid"]))
    return [{"context": ".", "id": identifier}]


def _places(call: Call) -> Iterable[Version]:
    identifier, subject = _id(call), call.query.get("subject")

    def query(state: State, _: Library) -> list[Version]:
        _definition(state, identifier)
        return [
            version
            for version in state.places(identifier)
            if (call.flag("deleted") or not version.is_deleted) and subject in (None, "", version.subject)
        ]

    return call.service.read(query)


def _id(call: Call) -> int:
    text = call.path["id"]
    if not (text.isascii() and text.isdigit() and int(text) <= ID_MAX):
        raise RegistryError(NOT_FOUND, "HTTP 404 Not Found")
    return int(text)


def _definition(state: State, identifier: int) -> Definition:
    found = state.definition(identifier)
    if found is None:
        raise schema_not_found(identifier)
    return found


def _of_guid(state: State, guid: str) -> tuple[int, Definition]:
    found = state.of_guid(guid)
    if found is None:
        raise schema_not_found(guid)
    return found
