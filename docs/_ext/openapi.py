"""The registry's REST API as an OpenAPI document, built from its routes: `reference/registry-openapi.json` of the site.

Paths, methods and query parameters are those that the code has; what they mean is in the tables below, and a test fails
for a route or a parameter that is not there.

`{registry-routes}`  every request of Confluent's registries, and what becomes of it here
`{registry-api}`     every request that is served, with its parameters, its body and its responses
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from generated import Generated

import kpybroker
from kpybroker.registry import errors
from kpybroker.registry.api.absent import ABSENT
from kpybroker.registry.api.call import Call
from kpybroker.registry.api.routes import ENTRIES, Entry

PLACE = "reference/registry-openapi.json"
Json = dict[str, Any]
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer"}
FLAG: Json = {"type": "boolean", "default": False}


def listed(of: Json) -> Json:
    """A list."""
    return {"type": "array", "items": of}


def named(name: str) -> Json:
    """One of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def with_members(required: tuple[str, ...] = (), **properties: Json) -> Json:
    """An object."""
    return {"type": "object", "required": list(required), "properties": properties}


REFERENCES = listed(with_members(("name", "subject", "version"), name=TEXT, subject=TEXT, version=NUMBER))
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
SCHEMA_MEMBERS: Json = {
    "schema": {**TEXT, "description": "The text of the schema, as one JSON string."},
    "schemaType": {"enum": ["AVRO", "JSON", "PROTOBUF"], "description": "AVRO where it is left out."},
    "references": REFERENCES,
    "metadata": {"type": "object"},
    "ruleSet": {"type": "object"},
}
CONFIG_MEMBERS: Json = {
    "compatibilityGroup": TEXT,
    "alias": TEXT,
    "normalize": {"type": "boolean"},
    "validateFields": {"type": "boolean"},
    "validateRules": {"type": "boolean"},
    "defaultMetadata": {"type": "object"},
    "overrideMetadata": {"type": "object"},
    "defaultRuleSet": {"type": "object"},
    "overrideRuleSet": {"type": "object"},
}
TAGS = listed(with_members(schemaEntity=with_members(entityPath=TEXT, entityType=TEXT), tags=listed(TEXT)))
SCHEMAS: dict[str, Json] = {
    "Error": with_members(("error_code", "message"), error_code=NUMBER, message=TEXT),
    "Schema": with_members(
        ("schema",),
        **SCHEMA_MEMBERS,
        guid=TEXT,
        subject=TEXT,
        version=NUMBER,
        deleted={"type": "boolean"},
        maxId=NUMBER,
    ),
    "NewSchema": with_members(
        ("schema",),
        **SCHEMA_MEMBERS,
        id=NUMBER,
        version=NUMBER,
        schemaTagsToAdd=TAGS,
        schemaTagsToRemove=TAGS,
        propagateSchemaTags={"type": "boolean"},
    ),
    "Version": with_members(
        ("subject", "version", "id", "schema"),
        subject=TEXT,
        version=NUMBER,
        id=NUMBER,
        **SCHEMA_MEMBERS,
        guid=TEXT,
        deleted={"type": "boolean"},
    ),
    "Registered": with_members(("id",), id=NUMBER, version=NUMBER, **SCHEMA_MEMBERS, guid=TEXT),
    "Place": with_members(("subject", "version"), subject=TEXT, version=NUMBER),
    "Config": with_members(compatibilityLevel={"enum": list(LEVELS)}, **CONFIG_MEMBERS),
    "NewConfig": with_members(compatibility={"enum": list(LEVELS)}, **CONFIG_MEMBERS),
    "Mode": with_members(("mode",), mode={"enum": list(MODES)}),
    "Compatibility": with_members(("is_compatible",), is_compatible={"type": "boolean"}, messages=listed(TEXT)),
}
PARAMETERS: dict[str, tuple[Json, str]] = {
    "aliases": (FLAG, "Also the subjects that are aliases."),
    "contextPrefix": (TEXT, "Only contexts whose name starts with it."),
    "defaultToGlobal": (FLAG, "What holds for the subject, where it has none of its own."),
    "deleted": (FLAG, "Also what was deleted softly."),
    "deletedAsNegative": (FLAG, "Also what was deleted softly, as negative numbers."),
    "deletedOnly": (FLAG, "Only what was deleted softly."),
    "fetchMaxId": (FLAG, "Also the highest id of the context."),
    "force": (FLAG, "Even where versions or schemas are there."),
    "format": (TEXT, "The schema's text in another form: `resolved` for Avro, `serialized` for Protobuf."),
    "key": (listed(TEXT), "A property of the metadata; together with `value`, and may be repeated."),
    "latestOnly": (FLAG, "Only the latest version of each subject."),
    "limit": ({**NUMBER, "default": -1}, "At most so many; -1 is all."),
    "normalize": (FLAG, "Compare schemas without what does not matter: the order of attributes, comments."),
    "offset": ({**NUMBER, "default": 0}, "Without the first so many."),
    "permanent": (FLAG, "For good. It must have been deleted softly before."),
    "recursive": (FLAG, "Also the modes of all subjects in the context."),
    "referenceFormat": (TEXT, "`qualified`: references with the context of their subject."),
    "ruleType": (TEXT, "Only schemas with rules of this type."),
    "subject": (TEXT, "The subject, or the context (`:.name:`), in which the id is meant."),
    "subjectPrefix": (TEXT, "Only subjects whose name starts with it; `:*:` is all contexts."),
    "value": (listed(TEXT), "The value that the property `key` has."),
    "verbose": (FLAG, "Also the reasons."),
}
PATH_PARAMETERS: dict[str, tuple[Json, str]] = {
    "context": (TEXT, "The name of a context, `.staging`."),
    "guid": (TEXT, "The guid of a schema."),
    "id": (NUMBER, "The id of a schema."),
    "subject": (TEXT, "The subject; `:.context:subject` in a context."),
    "version": (TEXT, "A number, or `latest`."),
}
RESPONSES: dict[str, tuple[str, Json | None]] = {
    "metadata.get_root": ("Whether the registry responds", {"type": "object"}),
    "metadata.get_id": ("The ids of the Kafka cluster and of the registry's", {"type": "object"}),
    "metadata.get_version": ("The version of the registry", {"type": "object"}),
    "metadata.get_deployment": ("How the registry is deployed", {"type": "object"}),
    "settings.get_contexts": ("The names of all contexts", listed(TEXT)),
    "settings.delete_context": ("Delete a context without subjects", None),
    "schemas.list_schemas": ("All versions of all subjects", listed(named("Version"))),
    "schemas.get_types": ("The types of schemas", listed(TEXT)),
    "schemas.get_schema": ("The schema with an id", named("Schema")),
    "schemas.get_text": ("The text of the schema with an id", TEXT),
    "schemas.get_subjects": ("The subjects that have the schema", listed(TEXT)),
    "schemas.get_versions": ("The versions that have the schema", listed(named("Place"))),
    "schemas.get_by_guid": ("The schema with a guid", named("Schema")),
    "schemas.get_ids_of_guid": ("The ids of a guid, by context", listed(with_members(context=TEXT, id=NUMBER))),
    "subjects.list_subjects": ("The names of all subjects", listed(TEXT)),
    "subjects.find_schema": ("The version of a subject that is this schema", named("Version")),
    "subjects.delete_subject": ("Delete a subject, softly unless `permanent`: its versions", listed(NUMBER)),
    "subjects.get_latest_with_metadata": ("The latest version with some metadata", named("Version")),
    "subjects.list_versions": ("The numbers of the versions of a subject", listed(NUMBER)),
    "subjects.register_version": ("Register a schema: its id", named("Registered")),
    "subjects.get_version": ("A version of a subject", named("Version")),
    "subjects.delete_version": ("Delete a version, softly unless `permanent`: its number", NUMBER),
    "subjects.get_text": ("The text of the schema of a version", TEXT),
    "subjects.get_referrers": ("The ids of schemas that refer to a version", listed(NUMBER)),
    "compatibility.with_version": ("Whether a schema is compatible with a version", named("Compatibility")),
    "compatibility.with_subject": ("Whether a schema is compatible with a subject", named("Compatibility")),
    "settings.get_config": ("Compatibility level and other settings", named("Config")),
    "settings.put_config": ("Set the compatibility level", named("NewConfig")),
    "settings.delete_config": ("Remove settings: what they were", named("Config")),
    "settings.get_mode": ("The mode: whether schemas can be registered", named("Mode")),
    "settings.put_mode": ("Set the mode", named("Mode")),
    "settings.delete_mode": ("Remove a mode: what it was", named("Mode")),
}
"""By handler: summary, and the schema of the response; None for status 204."""
BODIES: dict[str, str] = {
    "subjects.find_schema": "NewSchema",
    "subjects.register_version": "NewSchema",
    "compatibility.with_version": "NewSchema",
    "compatibility.with_subject": "NewSchema",
    "settings.put_config": "NewConfig",
    "settings.put_mode": "Mode",
}
READS = re.compile(r"(?:call|self)\.(?:flag|number|parameter|query\.get|query\.getlist)\(\s*\"(\w+)\"")
CALLS = re.compile(r"(call\.)?\b(\w+)\(")


def key_of(entry: Entry) -> str:
    """The handler's name, with that of its module."""
    return f"{entry.handler.__module__.rpartition('.')[2]}.{entry.handler.__name__}"


def query_parameters(handler: Callable[..., Any]) -> list[str]:
    """The names that a handler reads of the query, by its source and that of the functions that it calls."""
    found: set[str] = set()
    seen: set[Callable[..., Any]] = set()
    left = [handler]
    while left:
        function = left.pop()
        if function in seen:
            continue
        seen.add(function)
        source = inspect.getsource(function)
        found |= set(READS.findall(source))
        scope = inspect.unwrap(function).__globals__
        for of_call, name in CALLS.findall(source):
            one = getattr(Call, name, None) if of_call else scope.get(name)
            if inspect.isfunction(one) and one.__module__.startswith("kpybroker.registry.api") and name not in READERS:
                left.append(one)
    return sorted(found)


READERS = ("flag", "number", "parameter")


def codes() -> dict[int, str]:
    """The registry's error codes with their names."""
    return {value: name for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}


def place_of(method: str, path: str) -> str:
    """The name of a request, for programs and for links."""
    return re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_")


def operation(entry: Entry) -> Json:
    """One request."""
    summary, response = RESPONSES[key_of(entry)]
    parameters = [_parameter("path", name, *PATH_PARAMETERS[name]) for name in re.findall(r"\{(\w+)\}", entry.path)]
    parameters += [_parameter("query", name, *PARAMETERS[name]) for name in query_parameters(entry.handler)]
    kind = "text/plain" if response is TEXT else "application/vnd.schemaregistry.v1+json"
    error = {"description": "Refused", "content": {"application/json": {"schema": named("Error")}}}
    done: Json = {"description": summary}
    if response is not None:
        done["content"] = {kind: {"schema": response}}
    made: Json = {
        "operationId": place_of(entry.method, entry.path),
        "summary": summary,
        "parameters": parameters,
        "responses": {"200" if response is not None else "204": done, "default": error},
    }
    if key_of(entry) in BODIES:
        content = {"application/vnd.schemaregistry.v1+json": {"schema": named(BODIES[key_of(entry)])}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _parameter(where: str, name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": where, "required": where == "path", "schema": schema, "description": description}


def document() -> Json:
    """The OpenAPI document."""
    paths: dict[str, Json] = {}
    for entry in ENTRIES:
        paths.setdefault(entry.path, {})[entry.method.lower()] = operation(entry)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kpybroker registry", "version": kpybroker.__version__},
        "servers": [{"url": "http://127.0.0.1:8081"}],
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


LATER: dict[str, str] = {"DELETE /mode": "from 8.1.1 on"}
"""Requests that Confluent's registry got after 8.1.0."""


class RegistryRoutes(Generated):
    """Every request, next to Confluent's registries."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """What is served leads to its section."""
        yield from ["| request | in Confluent's | here |", "|---|---|---|"]
        for entry in ENTRIES:
            name, here = f"{entry.method} {entry.path}", "yes; the leader writes" if entry.writes else "yes"
            yield f"| [`{name}`](#{place_of(entry.method, entry.path)}) | {LATER.get(name, 'yes')} | {here} |"
        for one in ABSENT:
            for name in one.paths:
                yield f"| `{name}` | {one.there} | no {one.what}: 404 |"


class RegistryApi(Generated):
    """Every request that is served."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A heading for each, and what it takes and returns."""
        for path, operations in document()["paths"].items():
            for method, one in operations.items():
                yield from [f"({one['operationId']})=", f"### {method.upper()} {path}", "", f"{one['summary']}.", ""]
                if one["parameters"]:
                    yield from ["| argument | in | type | meaning |", "|---|---|---|---|"]
                for parameter in one["parameters"]:
                    kind = _shape(parameter["schema"])
                    yield f"| `{parameter['name']}` | {parameter['in']} | {kind} | {parameter['description']} |"
                body = one.get("requestBody", {}).get("content", {})
                yield from ["", *(f"Body: {_shape(content['schema'])}." for content in body.values())]
                for status, response in one["responses"].items():
                    shapes = [_shape(content["schema"]) for content in response.get("content", {}).values()]
                    if status != "default":
                        yield from [f"Response {status}: {shapes[0] if shapes else 'no body'}.", ""]


class RegistrySchemas(Generated):
    """The objects of bodies and responses."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table of members for each."""
        for name, schema in SCHEMAS.items():
            yield from [f"### {name}", "", "| member | type | always |", "|---|---|---|"]
            for member, kind in schema["properties"].items():
                yield f"| `{member}` | {_shape(kind)} | {'yes' if member in schema['required'] else ''} |"
            yield ""


class RegistryErrors(Generated):
    """The error codes."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table by code."""
        yield from ["| `error_code` | status | name |", "|---|---|---|"]
        for code, name in sorted(codes().items()):
            yield f"| {code} | {str(code)[:3]} | `{name}` |"


def _shape(schema: Json) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"a list of {_shape(schema['items'])}"
    names = {"string": "text", "integer": "a number", "boolean": "true or false", "object": "an object"}
    members = schema.get("properties")
    return f"{{{', '.join(f'`{name}`' for name in members)}}}" if members else names[schema["type"]]


def write(app: Any, failure: Exception | None) -> None:
    """Put the document next to its page."""
    if failure is None and app.builder.name == "html":
        Path(app.outdir, PLACE).write_text(json.dumps(document(), indent=2) + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.add_directive("registry-routes", RegistryRoutes)
    app.add_directive("registry-api", RegistryApi)
    app.add_directive("registry-schemas", RegistrySchemas)
    app.add_directive("registry-errors", RegistryErrors)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
