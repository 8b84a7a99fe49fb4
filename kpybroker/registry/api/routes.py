"""The table of all requests: method, path, handler, and whether it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kpybroker.registry.api import bodies, compatibility, metadata, schemas, settings, subjects
from kpybroker.registry.api.call import Call, Result

Handler = Callable[[Call], Result]


class Entry(NamedTuple):
    """`known` responds to a request that writes where nothing has to be written, else returns None.

    `body` are the members of the JSON object that the request has; None for a request without one.
    """

    method: str
    path: str
    handler: Handler
    writes: bool = False
    known: Handler | None = None
    body: bodies.Members | None = None


VERSION: Final = "/subjects/{subject}/versions/{version}"

ENTRIES: Final = (
    Entry("GET", "/", metadata.get_root),
    Entry("POST", "/", metadata.get_root),
    Entry("GET", "/v1/metadata/id", metadata.get_id),
    Entry("GET", "/v1/metadata/version", metadata.get_version),
    Entry("GET", "/v1/metadata/deployment", metadata.get_deployment),
    Entry("GET", "/contexts", settings.get_contexts),
    Entry("DELETE", "/contexts/{context}", settings.delete_context, writes=True),
    Entry("GET", "/schemas", schemas.list_schemas),
    Entry("GET", "/schemas/types", schemas.get_types),
    Entry("GET", "/schemas/ids/{id}", schemas.get_schema),
    Entry("GET", "/schemas/ids/{id}/schema", schemas.get_text),
    Entry("GET", "/schemas/ids/{id}/subjects", schemas.get_subjects),
    Entry("GET", "/schemas/ids/{id}/versions", schemas.get_versions),
    Entry("GET", "/schemas/guids/{guid}", schemas.get_by_guid),
    Entry("GET", "/schemas/guids/{guid}/ids", schemas.get_ids_of_guid),
    Entry("GET", "/subjects", subjects.list_subjects),
    Entry("POST", "/subjects/{subject}", subjects.find_schema, body=bodies.SCHEMA),
    Entry("DELETE", "/subjects/{subject}", subjects.delete_subject, writes=True),
    Entry("GET", "/subjects/{subject}/metadata", subjects.get_latest_with_metadata),
    Entry("GET", "/subjects/{subject}/versions", subjects.list_versions),
    Entry(
        "POST",
        "/subjects/{subject}/versions",
        subjects.register_version,
        writes=True,
        known=subjects.register_known,
        body=bodies.SCHEMA,
    ),
    Entry("GET", VERSION, subjects.get_version),
    Entry("DELETE", VERSION, subjects.delete_version, writes=True),
    Entry("GET", f"{VERSION}/schema", subjects.get_text),
    Entry("GET", f"{VERSION}/referencedby", subjects.get_referrers),
    Entry("POST", f"/compatibility{VERSION}", compatibility.with_version, body=bodies.SCHEMA),
    Entry("POST", "/compatibility/subjects/{subject}/versions", compatibility.with_subject, body=bodies.SCHEMA),
    Entry("GET", "/config", settings.get_config),
    Entry("PUT", "/config", settings.put_config, writes=True, body=bodies.CONFIG),
    Entry("DELETE", "/config", settings.delete_config, writes=True),
    Entry("GET", "/config/{subject}", settings.get_config),
    Entry("PUT", "/config/{subject}", settings.put_config, writes=True, body=bodies.CONFIG),
    Entry("DELETE", "/config/{subject}", settings.delete_config, writes=True),
    Entry("GET", "/mode", settings.get_mode),
    Entry("PUT", "/mode", settings.put_mode, writes=True, body=bodies.MODE),
    Entry("DELETE", "/mode", settings.delete_mode, writes=True),
    Entry("GET", "/mode/{subject}", settings.get_mode),
    Entry("PUT", "/mode/{subject}", settings.put_mode, writes=True, body=bodies.MODE),
    Entry("DELETE", "/mode/{subject}", settings.delete_mode, writes=True),
)
