"""Questions about the state that several requests ask."""

from __future__ import annotations

import json
from typing import Any

from kpybroker.registry.errors import (
    INVALID_VERSION,
    RegistryError,
    invalid_schema,
    subject_not_found,
    version_not_found,
)
from kpybroker.registry.rules.library import Library
from kpybroker.registry.schemas.model import AVRO, KINDS, Definition, Parsed, Reference
from kpybroker.registry.store.records import Version, attached
from kpybroker.registry.store.state import State

VERSION_MAX = 2**31 - 1


def version_number(text: str) -> int | None:
    """Of a path; None for `latest` and -1. Raises RegistryError 42202."""
    if text in ("latest", "-1"):
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) <= VERSION_MAX:
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


def definition_of(state: State, body: dict[str, Any]) -> Definition:
    """As the body of a request says it. Raises RegistryError 42201."""
    text, kind = body.get("schema"), body.get("schemaType") or AVRO
    if not isinstance(text, str) or not text.strip():
        raise invalid_schema("it is empty")
    if kind not in KINDS:
        raise invalid_schema(f"the type {str(kind)[:50]} is not known; {', '.join(sorted(KINDS))} are")
    references = []
    for one in body.get("references") or ():
        try:
            reference = Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
        except (KeyError, TypeError, ValueError):
            raise invalid_schema("a reference needs name, subject and version") from None
        if reference.version == -1:
            latest = max((version.version for version in state.versions(reference.subject)), default=-1)
            reference = reference._replace(version=latest)
        references.append(reference)
    return Definition(kind, text, tuple(references), attached(body.get("metadata")), attached(body.get("ruleSet")))


def canonical(
    library: Library, definition: Definition, *, normalize: bool, is_new: bool = False
) -> tuple[Definition, Parsed]:
    """With the text that is stored and compared, and the parsed schema."""
    parsed = library.parsed(definition, is_new=is_new)
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
