"""Questions about the state that several requests ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kpybroker.registry.errors import (
    INVALID_VERSION,
    RegistryError,
    invalid_schema,
    subject_not_found,
    version_not_found,
)
from kpybroker.registry.rules.library import Library, Schema
from kpybroker.registry.schemas.model import AVRO, KINDS, Definition, Reference
from kpybroker.registry.store import contexts
from kpybroker.registry.store.records import Version, attached
from kpybroker.registry.store.state import State

VERSION_MAX = 2**31 - 1
DIGITS_MAX = 10


def version_number(text: str) -> int | None:
    """Of a path; None for `latest` and -1. Raises RegistryError 42202."""
    if text in ("latest", "-1"):
        return None
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX and 0 < int(text) <= VERSION_MAX:
        return int(text)
    raise RegistryError(
        INVALID_VERSION,
        f"The specified version '{text[:100]}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def find_version(state: State, subject: str, text: str, *, deleted: bool = False) -> Version:
    """Raises RegistryError 40401, 40402 or 42202."""
    number = version_number(text)
    versions = list(state.versions(subject, deleted=deleted))
    if not versions:
        raise subject_not_found(subject)
    if number is None:
        return versions[-1]
    found = next((version for version in versions if version.version == number), None)
    if found is None:
        raise version_not_found(number)
    return found


def find_anywhere(state: State, subject: str, text: str, *, deleted: bool = False) -> Version:
    """The same; of a subject without a context, and not in the default one, the first context that has it."""
    version_number(text)
    for name in _candidates(state, subject):
        try:
            return find_version(state, name, text, deleted=deleted)
        except RegistryError:
            continue
    return find_version(state, subject, text, deleted=deleted)


def same_anywhere(state: State, subject: str, look: Callable[[str], Version | None]) -> Version | None:
    """What `look` finds for the subject, or for the subject of this name in another context."""
    own, *others = _candidates(state, subject)
    found = look(own)
    for name in others:
        with suppress(RegistryError):  # a schema that refers to what this context does not have
            found = found or look(name)
    return found


def context_with_id(state: State, identifier: int, subject: str) -> str | None:
    """The context whose schema an id means. None where no such schema is.

    A subject with a context says it. Without one it is the default context, unless the subject is in another one, and
    has the id there.
    """
    own = contexts.split(subject)
    if own.name:
        for name in _candidates(state, subject):
            context = contexts.of(name)
            if any(version.subject == name for version in state.places(identifier, context)):
                return context
        if own.context != contexts.DEFAULT:
            return None
    return own.context if state.definition(identifier, own.context) is not None else None


def _candidates(state: State, subject: str) -> list[str]:
    own = contexts.split(subject)
    if own.context != contexts.DEFAULT:
        return [subject]
    return [contexts.Qualified(context, own.name).subject for context in state.context_names()]


def definition_of(state: State, subject: str, body: dict[str, Any]) -> Definition:
    """As the body of a request for a subject says it. Raises RegistryError 42201."""
    text, kind = body.get("schema"), body.get("schemaType") or AVRO
    if not isinstance(text, str) or not text.strip():
        raise invalid_schema("it is empty")
    if kind not in KINDS:
        raise invalid_schema(f"the type {str(kind)[:50]} is not known; {', '.join(sorted(KINDS))} are")
    references = []
    for one in _list(body, "references"):
        try:
            reference = Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise invalid_schema("a reference needs name, subject and version") from None
        if reference.version == -1:
            target = contexts.resolved(contexts.of(subject), reference.subject)
            latest = max((version.version for version in state.versions(target)), default=-1)
            reference = reference._replace(version=latest)
        references.append(reference)
    metadata, rule_set = (attached(_object(body, key)) for key in ("metadata", "ruleSet"))
    return Definition(kind, text, tuple(references), metadata, rule_set)


def _list(body: dict[str, Any], key: str) -> list[Any]:
    value = body.get(key) or []
    if not isinstance(value, list):
        raise invalid_schema(f"{key} is no list")
    return value


def _object(body: dict[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key) or {}
    if not isinstance(value, dict):
        raise invalid_schema(f"{key} is no object")
    return value


def canonical(
    library: Library, subject: str, definition: Definition, *, normalize: bool, is_new: bool = False
) -> tuple[Definition, Schema]:
    """With the text that is stored and compared, and what is known of it."""
    parsed = library.parsed(definition, contexts.of(subject), is_new=is_new)
    return definition._replace(text=parsed.normalized if normalize else parsed.canonical), parsed


def same_version(state: State, subject: str, wanted: Definition, *, deleted: bool = False) -> Version | None:
    """The newest version that is this schema. Metadata and rules count where the request has some."""
    versions = sorted(state.versions(subject, deleted=deleted), key=lambda version: -version.version)
    for version in versions:
        if version.definition == wanted:
            return version
    for version in versions:
        own = version.definition
        metadata = own.metadata if wanted.metadata is None else wanted.metadata
        rule_set = own.rule_set if wanted.rule_set is None else wanted.rule_set
        if own == wanted._replace(metadata=metadata, rule_set=rule_set):
            return version
    return None


def entity(definition: Definition, text: str | None = None) -> dict[str, Any]:
    """The members of a schema in a response; `text` stands for its own in another format."""
    made: dict[str, Any] = {} if definition.kind == AVRO else {"schemaType": definition.kind}
    made["schema"] = definition.text if text is None else text
    if definition.references:
        made["references"] = [one._asdict() for one in definition.references]
    if definition.metadata is not None:
        made["metadata"] = json.loads(definition.metadata)
    if definition.rule_set is not None:
        made["ruleSet"] = json.loads(definition.rule_set)
    made["guid"] = definition.guid
    return made


def version_entity(version: Version, text: str | None = None) -> dict[str, Any]:
    """A version in a response."""
    made = {"subject": version.subject, "version": version.version, "id": version.id}
    made |= entity(version.definition, text)
    return {**made, "deleted": True} if version.is_deleted else made


def property_of(definition: Definition, name: str) -> str | None:
    """A property of a schema's metadata; None where it has none."""
    if definition.metadata is None:
        return None
    properties = json.loads(definition.metadata).get("properties")
    return properties.get(name) if isinstance(properties, dict) else None
