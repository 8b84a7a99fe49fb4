"""Schemas: a version checked and registered, a subject's compatibility set, versions deleted softly and for good."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.schemas import subjects
from kpybroker.client.schemas.subjects import New, Subjects
from kpybroker.console.changes.change import Ask, Change, Command, Field, InField, Rows, Values, in_field

SOFT, HARD = "softly", "for good"
SUBJECT: Final = Field("subject", "Subject", is_required=True)


def _registry(ask: Ask) -> Subjects:
    if ask.subjects is None:
        raise CommandError("this console knows no schema registry", "start it with --schema-registry URL")
    return ask.subjects


def _missing(ask: Ask) -> str:
    return "" if ask.subjects is not None else "this console knows no schema registry; --schema-registry URL names one"


def _page(values: Values) -> str:
    return f"/schema?subject={quote(values['subject'], safe='')}"


def _no_command(_: Values) -> Command:
    return [], []


def _new(values: Values) -> New:
    with in_field("references"):
        references = subjects.parse_references(values["references"])
    return New(values["type"], values["schema"].strip(), references)


def _fill(ask: Ask) -> Mapping[str, str]:
    """The latest version, to be changed."""
    if not ask.values["subject"] or ask.values["schema"]:
        return {}
    found = _registry(ask).version(ask.values["subject"], "latest")
    references = "\n".join(f"{one.name} {one.subject} {one.version}" for one in found.references)
    return {"schema": subjects.pretty(found.text), "references": references}


def _plan(ask: Ask) -> Rows:
    registry, subject, new = _registry(ask), ask.values["subject"], _new(ask.values)
    with in_field("schema"):
        there = registry.number_of(subject, new)
        reasons = [] if there is not None else registry.check(subject, new)
        if reasons:
            fix = f"the subject's compatibility is {registry.level(subject)}; add defaults, or keep what was there"
            raise usage(f"it is not compatible: {'; '.join(reasons)[:1000]}", fix)
    row = {"subject": subject, "type": new.kind, "version": there, "id": None, "error": None}
    return [{**row, "status": "is registered already" if there is not None else "would be registered"}]


def _register(ask: Ask, rows: Rows) -> Rows:
    registry, new = _registry(ask), _new(ask.values)
    found = registry.register(ask.values["subject"], new)
    number = registry.number_of(ask.values["subject"], new)
    return [{**row, "id": found, "version": number, "status": "registered"} for row in rows]


def _register_curl(values: Values) -> Sequence[tuple[str, str, str]]:
    try:
        body = json.dumps(_new(values).body())
    except CommandError:
        body = "{}"
    return [("POST", f"/subjects/{quote(values['subject'], safe='')}/versions", body)]


REGISTER: Final = Change(
    "schema-register",
    "Register a schema of {subject}",
    "Register the schema",
    (
        SUBJECT._replace(placeholder="orders-value"),
        Field("type", "Type", "choice", choices=subjects.KINDS, default="AVRO"),
        Field("schema", "Schema", "lines", "JSON, or the text of a .proto file.", is_required=True),
        Field("references", "References", "lines", "NAME SUBJECT VERSION in each line."),
    ),
    (("Subject", "subject"), ("Type", "type"), ("#Version", "version"), ("#Id", "id"), ("Status", "status")),
    "of the registry: to write the subject",
    _plan,
    _register,
    _no_command,
    _page,
    same=("subject", "version"),
    note="The registry has checked it against the versions that the subject's compatibility names.",
    curl=_register_curl,
    fill=_fill,
    missing=_missing,
)


# --- compatibility

AS_ALL: Final = "as all subjects"


def _fill_level(ask: Ask) -> Mapping[str, str]:
    """What the subject has now."""
    if not ask.values["subject"] or ask.values["level"] != AS_ALL:
        return {}
    return {"level": _registry(ask).own_level(ask.values["subject"]) or AS_ALL}


def _plan_level(ask: Ask) -> Rows:
    registry, subject, wanted = _registry(ask), ask.values["subject"], ask.values["level"]
    try:
        registry.versions(subject, deleted=True)
    except subjects.RegistryError as error:
        raise InField("subject", error) from None
    own = registry.own_level(subject)
    is_same = (own or AS_ALL) == wanted
    row = {"subject": subject, "from": own or f"{registry.level(subject)}, {AS_ALL}", "to": wanted, "error": None}
    return [{**row, "status": "is so already" if is_same else "would be set"}]


def _set_level(ask: Ask, rows: Rows) -> Rows:
    _registry(ask).set_level(ask.values["subject"], None if ask.values["level"] == AS_ALL else ask.values["level"])
    return [{**row, "status": "set"} for row in rows]


def _level_curl(values: Values) -> Sequence[tuple[str, str, str]]:
    path = f"/config/{quote(values['subject'], safe='')}"
    if values["level"] == AS_ALL:
        return [("DELETE", path, "")]
    return [("PUT", path, json.dumps({"compatibility": values["level"]}))]


LEVEL: Final = Change(
    "schema-level",
    "Set the compatibility of {subject}",
    "Set the compatibility",
    (SUBJECT, Field("level", "Compatibility", "choice", choices=(AS_ALL, *subjects.LEVELS), default=AS_ALL)),
    (("Subject", "subject"), ("Now", "from"), ("Then", "to"), ("Status", "status")),
    "of the registry: to change the compatibility of the subject",
    _plan_level,
    _set_level,
    _no_command,
    _page,
    same=("subject", "from"),
    note="Only versions that are registered from now on are checked by it.",
    curl=_level_curl,
    fill=_fill_level,
    missing=_missing,
)


# --- deleted


def _number(values: Values) -> int | None:
    text = values["version"]
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InField("version", usage(f"{text[:50]!r} is no version", "write a number, or nothing for all"))
    return int(text) if text else None


def _plan_delete(ask: Ask) -> Rows:
    registry, subject, wanted = _registry(ask), ask.values["subject"], _number(ask.values)
    try:
        everything = registry.versions(subject, deleted=True)
    except subjects.RegistryError as error:
        raise InField("subject", error) from None
    try:
        live = registry.versions(subject)
    except subjects.RegistryError:
        live = []
    is_hard = ask.values["how"] == HARD
    chosen = [one for one in everything if (one in live) != is_hard and wanted in (None, one)]
    if not chosen:
        fix = "delete it softly first" if is_hard else "the subject's page shows its versions"
        cause = f"{subject} has no such version{' that was deleted softly' if is_hard else ''}"
        raise InField("version", usage(cause, fix))
    status = f"would be deleted {ask.values['how']}"
    return [{"subject": subject, "version": one, "status": status, "error": None} for one in chosen]


def _delete(ask: Ask, rows: Rows) -> Rows:
    registry, done = _registry(ask), [dict(row) for row in rows]
    for row in done:
        try:
            registry.delete(row["subject"], row["version"], permanent=ask.values["how"] == HARD)
            row["status"] = f"deleted {ask.values['how']}"
        except CommandError as error:
            row |= {"status": "failed", "error": ask.failures.add(f"version {row['version']}", error)}
    return done


def _delete_curl(values: Values) -> Sequence[tuple[str, str, str]]:
    subject, query = quote(values["subject"], safe=""), "?permanent=true" if values["how"] == HARD else ""
    part = f"/versions/{values['version']}" if values["version"] else ""
    return [("DELETE", f"/subjects/{subject}{part}{query}", "")]


DELETE: Final = Change(
    "schema-delete",
    "Delete versions of {subject}",
    "Delete these versions",
    (
        SUBJECT,
        Field("version", "Version", placeholder="all"),
        Field("how", "How", "choice", "Softly: ids still decode.", choices=(SOFT, HARD), default=SOFT),
    ),
    (("Subject", "subject"), ("#Version", "version"), ("Status", "status")),
    "of the registry: to delete the subject",
    _plan_delete,
    _delete,
    _no_command,
    lambda _: "/schemas",
    same=("subject", "version"),
    typed_again=("subject",),
    note="What was deleted for good cannot be decoded any more, and does not come back.",
    curl=_delete_curl,
    missing=_missing,
)
