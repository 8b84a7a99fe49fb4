"""Questions about the state that several requests ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kpybroker.registry.errors import (
    INVALID_SCHEMA,
    INVALID_VERSION,
    RegistryError,
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
VERSION_PROPERTY = "confluent:version"
"""Of metadata: the number of the version, in schemas that were registered with one."""


def version_number(text: str) -> int | None:
    """Of a path; None for `latest` and -1. Raises RegistryError 42202."""
    if text.lower() == "latest" or text == "-1":
        return None
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX and 0 < int(text) <= VERSION_MAX:
        return int(text)
    raise RegistryError(
        INVALID_VERSION,
        f"The specified version '{text[:100]}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def find_version(state: State, subject: str, text: str, *, deleted: bool = False) -> Version:
    """Raises RegistryError 40401, 40402 or 42202. The latest version is never a deleted one."""
    number = version_number(text)
    versions = list(state.versions(subject, deleted=deleted))
    if not versions:
        raise subject_not_found(subject)
    if number is None:
        found = next((version for version in reversed(versions) if not version.is_deleted), None)
    else:
        found = next((version for version in versions if version.version == number), None)
    if found is None:
        raise version_not_found(-1 if number is None else number)
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
    text, kind = body.get("schema") or "", AVRO if body.get("schemaType") is None else body["schemaType"]
    if not text.strip():
        raise RegistryError(INVALID_SCHEMA, "Empty schema")
    if kind not in KINDS:
        raise RegistryError(INVALID_SCHEMA, f"Invalid schema type {kind[:50]}")
    references = tuple(_reference(state, subject, one or {}) for one in body.get("references") or ())
    return Definition(kind, text, references, attached(body.get("metadata")), attached(body.get("ruleSet")))


def is_empty(body: dict[str, Any]) -> bool:
    """Whether a request has no schema: it may mean the latest one of its subject."""
    return not (body.get("schema") or "").strip()


def _reference(state: State, subject: str, one: dict[str, Any]) -> Reference:
    """Version -1 is the latest one."""
    reference = Reference(one.get("name") or "", one.get("subject") or "", one.get("version") or 0)
    if reference.version != -1:
        return reference
    target = contexts.resolved(contexts.of(subject), reference.subject)
    return reference._replace(version=max((version.version for version in state.versions(target)), default=-1))


def canonical(
    library: Library, subject: str, definition: Definition, *, normalize: bool, is_new: bool = False
) -> tuple[Definition, Schema]:
    """With the text that is stored and compared, and what is known of it."""
    parsed = library.parsed(definition, contexts.of(subject), is_new=is_new)
    if not normalize:
        return definition._replace(text=parsed.canonical), parsed
    references = sorted(set(definition.references), key=lambda one: (one.subject, one.version, one.name))
    return definition._replace(text=parsed.normalized, references=tuple(references)), parsed


def same_version(
    state: State, library: Library, subject: str, wanted: Definition, *, normalize: bool, deleted: bool = False
) -> Version | None:
    """The newest version that is this schema, with the same metadata and rules.

    Texts are compared first. Other registries, and earlier versions of this one, write the same schema in another way,
    so the schemas of all versions are compared afterwards. With `normalize` normalized texts are, of both.
    """
    found = same_text(state, subject, wanted, deleted=deleted)
    if found is not None:
        return found
    versions = sorted(state.versions(subject, deleted=deleted), key=lambda version: -version.version)
    candidates = [version for version in versions if _may_be(version.definition, wanted, normalize=normalize)]
    for version in candidates:
        if (version.definition.text, version.definition.references) == (wanted.text, wanted.references):
            return version
    if not candidates:
        return None
    definitions = [version.definition for version in candidates]
    same = library.same(wanted, definitions, contexts.of(subject), normalize=normalize)
    return None if same is None else candidates[definitions.index(same)]


def same_text(state: State, subject: str, wanted: Definition, *, deleted: bool = False) -> Version | None:
    """The newest version with this text as it was sent: earlier versions kept some that cannot be read any more."""
    versions = sorted(state.versions(subject, deleted=deleted), key=lambda version: -version.version)
    return next((version for version in versions if version.definition == wanted), None)


def _may_be(own: Definition, wanted: Definition, *, normalize: bool) -> bool:
    """Whether all but the texts agree. A schema without references may have the types of another's in its text."""
    has_same_references = own.references == wanted.references or not wanted.references
    if normalize and not has_same_references:
        has_same_references = set(own.references) == set(wanted.references)
    return (
        own.kind == wanted.kind
        and own.rule_set == wanted.rule_set
        and _has_same_metadata(own, wanted)
        and has_same_references
    )


def _has_same_metadata(own: Definition, wanted: Definition) -> bool:
    """The property that names the version does not count where only one of both has it."""
    if own.metadata == wanted.metadata:
        return True
    (mine, is_mine_numbered), (other, is_other_numbered) = map(_without_version, (own.metadata, wanted.metadata))
    return is_mine_numbered != is_other_numbered and mine == other


def _without_version(metadata: str | None) -> tuple[Any, bool]:
    """Metadata without the property that names the version, and whether it had it."""
    found = json.loads(metadata or "{}")
    properties = found.get("properties") if isinstance(found, dict) else None
    if not isinstance(properties, dict) or VERSION_PROPERTY not in properties:
        return found, False
    left = {key: value for key, value in properties.items() if key != VERSION_PROPERTY}
    others = {key: value for key, value in found.items() if key != "properties"}
    return {**others, **({"properties": left} if left else {})}, True


def property_of(definition: Definition, name: str) -> str | None:
    """A property of a schema's metadata; None where it has none."""
    if definition.metadata is None:
        return None
    properties = json.loads(definition.metadata).get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def has_rule(definition: Definition, kind: str) -> bool:
    """Whether a schema has a rule of this type."""
    sets = json.loads(definition.rule_set or "{}")
    rules = [rule for one in sets.values() if isinstance(one, list) for rule in one if isinstance(rule, dict)]
    return any(rule.get("type") == kind for rule in rules)
