"""Schemas and versions as members of responses, in the order and with the names of Confluent's registry."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kpybroker.registry.schemas.model import PROTOBUF, Definition, Reference
from kpybroker.registry.store import contexts
from kpybroker.registry.store.records import Version

BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]+")
"""No .proto file: that has semicolons or braces."""


def of_definition(definition: Definition, text: str | None = None) -> dict[str, Any]:
    """A schema; `text` stands for its own in another format."""
    made: dict[str, Any] = {"guid": definition.guid, "schemaType": definition.kind}
    if definition.references:
        made["references"] = [_reference(one) for one in definition.references]
    if definition.metadata is not None:
        made["metadata"] = json.loads(definition.metadata)
    if definition.rule_set is not None:
        made["ruleSet"] = json.loads(definition.rule_set)
    made["schema"] = definition.text if text is None else text
    return made


def qualified(made: dict[str, Any], subject: str) -> dict[str, Any]:
    """The same, with the subjects of its references as they are outside of the context of `subject`."""
    context = contexts.of(subject)
    if context == contexts.DEFAULT or "references" not in made:
        return made
    references = [{**one, "subject": contexts.resolved(context, one.get("subject", ""))} for one in made["references"]]
    return {**made, "references": references}


def _reference(one: Reference) -> dict[str, Any]:
    """Without what is empty."""
    return {name: value for name, value in one._asdict().items() if value != ""}


def registered(version: Version, sent: str) -> dict[str, Any]:
    """The response to a registration of the text `sent`.

    A descriptor in base64 gets no text: Confluent's Python client would keep it, and read it as a descriptor later.
    """
    made = {"id": version.id, "version": version.version, **of_definition(version.definition)}
    if version.definition.kind == PROTOBUF and BASE64.fullmatch(sent):
        del made["schema"]
    return made


def listed(version: Version, text: str | None = None) -> dict[str, Any]:
    """A version among others, or one that was looked up."""
    own = {"subject": version.subject, "version": version.version, "id": version.id}
    return {**own, **of_definition(version.definition, text)}


def whole(version: Version, text: str | None = None) -> dict[str, Any]:
    """A version that was asked for by its number."""
    return {**listed(version, text), **record_of(version)}


def by_id(version: Version, text: str | None = None, **more: Any) -> dict[str, Any]:
    """The schema of an id, with a version that has it."""
    made = {"subject": version.subject, "version": version.version, **of_definition(version.definition, text)}
    return {**made, **more, **record_of(version)}


def record_of(version: Version) -> dict[str, Any]:
    """When the record of a version was written, where that is known, and whether it says deleted."""
    written = {} if version.timestamp is None else {"ts": version.timestamp}
    return {**written, "deleted": version.is_deleted}
