"""Connectors made and configured: each key of the plugin is a field, the others are lines or JSON.

- The plugin checks the configuration before the preview, and each of its errors is at the key's field.
- A secret is no part of a preview, an address or a log: it is typed at the end, and what is there already stays.
- A plugin that needs its secrets to check the rest is asked for that at the end only: the field `check`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, keep_secret, usage
from kpybroker.console.changes.change import (
    OF_PLUGIN,
    SECRET_OF_PLUGIN,
    Ask,
    Call,
    Change,
    Field,
    InField,
    InFields,
    Rows,
    Values,
)
from kpybroker.console.changes.connect.places import CONNECT, NAME, NEEDS, OF_CONNECTOR, asking, no_command, page
from kpybroker.console.queries.connect import connectors
from kpybroker.console.queries.connect.rest import ConnectError, Key, path_of, texts
from kpybroker.console.queries.connect.secrets import SECRET, Knowledge, knowledge, redacted
from kpybroker.console.queries.settings import words

NOW, LATER = "all of it now", "at the end, with the secrets"
MEANING_MAX: Final = 400
NO_PLUGIN: Final = frozenset((400, 404, 500))
"""Statuses with which versions of Kafka Connect say that there is no such plugin."""
FIXED: Final = frozenset(("name", "connector.class"))
TYPED: Final = "typed at the end"
SET: Final = "set"
CHECK: Final = Field(
    "check",
    "The plugin checks",
    "choice",
    "A plugin that logs in to check needs its secrets, which are typed at the end.",
    choices=(NOW, LATER),
    default=NOW,
)
MORE: Final = Field(
    "more",
    "Other keys",
    "lines",
    "KEY=VALUE in each line, or a JSON object: of converters, transforms and clients.",
    "value.converter.schemas.enable=false",
)
SECRETS: Final = Field(
    "secrets", "Other secrets", "secret", 'Of keys without a field here, as a JSON object: {"KEY": "VALUE"}.'
)
COLUMNS: Final = (("Key", "key"), ("Now", "from"), ("After", "to"), ("Status", "status"))


class Draft(NamedTuple):
    """A configuration that was typed, with what is there now; both with their secrets."""

    java_class: str
    now: Mapping[str, str]
    config: Mapping[str, str]
    known_now: Knowledge
    known: Knowledge
    """What plugins say of the keys of both."""
    typed: Mapping[str, str]
    """Secrets that were typed."""

    def hidden(self) -> dict[str, str]:
        """All secrets."""
        return {**self.known_now.hidden(self.now), **self.known.hidden(self.config), **self.typed}


# --- what was typed


def parse(text: str, field: str = "more") -> dict[str, str]:
    """A JSON object, also one with `name` and `config` as Connect's REST has it; or lines of KEY=VALUE.

    Raises CommandError, which repeats no value.
    """
    text = text.strip()
    if not text.startswith("{"):
        pairs = [line.strip().partition("=") for line in text.splitlines() if line.strip()]
        if any(not equals or not key.strip() for key, equals, _ in pairs):
            raise InField(field, usage("a line is no KEY=VALUE", "write KEY=VALUE in each line, or a JSON object"))
        return {key.strip(): value.strip() for key, _, value in pairs}
    try:
        given: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise InField(field, usage("this is no JSON", 'write {"KEY": "VALUE"}')) from None
    inner = given.get("config")
    if isinstance(inner, dict):
        given = {**inner, "name": given.get("name", inner.get("name"))}
    if any(isinstance(value, dict | list) for value in given.values()):
        raise InField(field, usage("a value is no text", 'write {"KEY": "VALUE"}'))
    return texts(given)


def _typed(values: Values) -> tuple[dict[str, str], dict[str, str]]:
    """The keys that are shown, and the secrets; from then on those are printed nowhere. Raises CommandError."""
    plain = {name.removeprefix(OF_PLUGIN): text for name, text in values.items() if name.startswith(OF_PLUGIN)}
    plain |= parse(values["more"])
    secrets = {
        name.removeprefix(SECRET_OF_PLUGIN): text for name, text in values.items() if name.startswith(SECRET_OF_PLUGIN)
    }
    if values.get("secrets"):
        secrets |= parse(values["secrets"], "secrets")
    keep_secret(secrets.values())
    return plain, secrets


def _java_class(values: Values, plain: Mapping[str, str]) -> str:
    found = values.get("plugin") or plain.get("connector.class", "")
    if not found:
        raise InField("plugin", usage("the plugin is missing", "name the connector's class, or choose it: Connect"))
    return found


def _require_plugin(ask: Ask, java_class: str) -> None:
    """Of one that says nothing of its keys, Connect's list says whether it is there. Raises InField.

    As Connect does, a connector may be named by its class, by the end of that, and without `Connector` at its end.
    """
    ends = {name: name.rpartition(".")[2] for row in connectors.plugins(asking(ask).connect) if (name := row["class"])}
    if java_class not in {*ends, *ends.values(), *(one.removesuffix("Connector") for one in ends.values())}:
        cause = f"there is no plugin {java_class[:100]!r}"
        raise InField("plugin", usage(cause, "choose a plugin: Connect, Make a connector"))


def _drafted(ask: Ask, now: Mapping[str, str]) -> Draft:
    """`now` is the configuration that is there. Raises CommandError."""
    plain, secrets = _typed(ask.values)
    java_class = now.get("connector.class") or _java_class(ask.values, plain)
    config = {**plain, "name": ask.values["name"], "connector.class": java_class}
    for key, text in config.items():
        if plain.get(key, text) != text:
            raise InField("more", usage(f"{key} is {plain[key][:100]!r} there", f"it is {text[:100]}: leave it out"))
    known = knowledge(asking(ask), config)
    if not known.keys.get("") and not now:
        _require_plugin(ask, java_class)
    for key, text in plain.items():
        if key not in FIXED and known.is_hidden(key, text):
            field = f"{OF_PLUGIN}{key}" if f"{OF_PLUGIN}{key}" in ask.values else "more"
            cause = f"the value of {key[:100]} is a secret"
            raise InField(field, usage(cause, "leave it out here: secrets are typed after the preview"))
    known_now = knowledge(asking(ask), now) if now else Knowledge({})
    return Draft(java_class, now, {**known_now.hidden(now), **config, **secrets}, known_now, known, secrets)


def _problems(ask: Ask, draft: Draft) -> dict[str, str]:
    """What the plugin says is wrong, by the name of the field; without secrets. Raises CommandError."""
    try:
        found = connectors.problems(asking(ask), draft.java_class, draft.config)
    except ConnectError as error:
        if error.status not in NO_PLUGIN:
            raise
        shown = redacted(error.cause, draft.hidden().values())
        raise InField("plugin", usage(shown, "choose a plugin: Connect, Make a connector")) from None
    named = {"name": "name", "connector.class": "plugin"}
    fields = {}
    for key, text in found.items():
        prefix = SECRET_OF_PLUGIN if _is_typed_last(draft.known, key) else OF_PLUGIN
        fields[named.get(key, f"{prefix}{key}")] = redacted(text, draft.hidden().values())
    return fields


def _check(ask: Ask, draft: Draft, *, is_end: bool) -> str:
    """What is wrong, where that is said later. Raises InFields."""
    found = _problems(ask, draft)
    if not is_end:
        found = {field: text for field, text in found.items() if not field.startswith(SECRET_OF_PLUGIN)}
    if found and (is_end or ask.values["check"] == NOW):
        raise InFields(found, "the plugin says at each field why; nothing was done")
    return "; ".join(f"{field.removeprefix(OF_PLUGIN)}: {text}" for field, text in found.items())


def _is_typed_last(known: Knowledge, key: str) -> bool:
    """Whether the plugin has this key, and it is a secret."""
    return known.key(key) is not None and known.is_hidden(key, "")


# --- fields


def fields(keys: Sequence[Key] | None, values: Mapping[str, str]) -> list[Field]:
    """A field for each key of a plugin, what it needs first; what has a default is out of sight."""
    found = []
    known = Knowledge({"": {one.name: one for one in keys or ()}})
    for one in keys or ():
        if one.name in FIXED:
            continue
        is_secret = _is_typed_last(known, one.name)
        name = f"{SECRET_OF_PLUGIN if is_secret else OF_PLUGIN}{one.name}"
        hint = words(one.meaning)
        hint = hint if len(hint) <= MEANING_MAX else f"{hint[:MEANING_MAX]}…"
        kind = "secret" if is_secret else "choice" if one.type == "BOOLEAN" else "text"
        choices = ("", "true", "false") if kind == "choice" else ()
        label = one.name + (" (needed)" if one.is_required else "")
        is_folded = not (one.is_required or one.importance == "HIGH" or values.get(name))
        found.append(Field(name, label, kind, hint, one.default or "", choices, is_folded=is_folded))
    return sorted(found, key=lambda field: not field.label.endswith(" (needed)"))


def _fields(ask: Ask) -> list[Field]:
    """Raises CommandError."""
    asked = asking(ask)
    if "plugin" in ask.values:
        java_class = ask.values["plugin"]
    else:
        java_class = asked.config(ask.values["name"]).get("connector.class", "") if ask.values["name"] else ""
    return fields(asked.keys(java_class, is_connector=True) if java_class else None, ask.values)


# --- make


def _rows(draft: Draft, note: str, *, is_later: bool) -> Rows:
    """A row for each key that differs, one for each secret, and one for what the plugin says before the end."""
    before, after = draft.known_now.shown(draft.now), draft.known.shown(draft.config)
    rows = []
    for key in sorted({*before, *after}):
        was, to = before.get(key), after.get(key)
        if was != to and SECRET not in (was, to):
            rows.append({"key": key, "from": was, "to": to, "status": "would be set" if to else "would be removed"})
    keys = draft.known.keys.get("") or {}
    own = {key: one.is_required for key, one in keys.items() if _is_typed_last(draft.known, key)}
    for key in sorted({*own, *(key for key, text in {**before, **after}.items() if text == SECRET)}):
        was, is_needed = SECRET if key in before else None, own.get(key, True)
        status = "would stay" if was else "would be what is typed below" if is_needed else "would be empty"
        status += "" if status.endswith("below") else ", unless it is typed below"
        rows.append({"key": key, "from": was, "to": was or (TYPED if is_needed else None), "status": status})
    if is_later:
        status = f"said before the secrets are known: {note}" if note else "nothing is wrong so far"
        rows.append({"key": "", "from": None, "to": None, "status": status})
    return [{**row, "error": None} for row in rows]


def _plan_create(ask: Ask) -> Rows:
    name = ask.values["name"]
    try:
        asking(ask).ask("GET", path_of(name), dict)
    except ConnectError as error:
        if error.name not in OF_CONNECTOR:
            raise
    else:
        raise InField("name", usage(f"there is a connector {name} already", "choose another name, or configure it"))
    draft = _drafted(ask, {})
    return _rows(draft, _check(ask, draft, is_end=False), is_later=ask.values["check"] == LATER)


def _done(ask: Ask, draft: Draft, rows: Rows, call: Call) -> Rows:
    """Raises CommandError, which repeats no secret."""
    _check(ask, draft, is_end=True)
    try:
        asking(ask).ask(call.method, call.path, dict, call.body)
    except CommandError as error:
        raise CommandError(redacted(error.cause, draft.hidden().values()), error.fix, error.exit_code) from None
    return [{**row, "status": _became(row, draft.typed)} for row in rows if row["key"]]


def _became(row: Mapping[str, Any], typed: Mapping[str, str]) -> str:
    if row["key"] in typed:
        return SET
    if row["from"] == SECRET or row["to"] == TYPED:
        return "stays" if row["from"] else "not set"
    return SET if row["to"] is not None else "removed" if row["from"] is not None else "not set"


def _create(ask: Ask, rows: Rows) -> Rows:
    draft = _drafted(ask, {})
    body = {"name": ask.values["name"], "config": dict(draft.config)}
    return _done(ask, draft, rows, Call("POST", "/connectors", body))


def _changed(rows: Rows) -> dict[str, str | None]:
    """The keys that differ; of a secret that is typed only that it is one."""
    found: dict[str, str | None] = {}
    for row in rows:
        if row["to"] in (TYPED, SECRET) or row["from"] == row["to"]:
            if row["to"] == TYPED or (row["key"] and row["status"] == SET):
                found[row["key"]] = SECRET
        else:
            found[row["key"]] = row["to"]
    return found


def _create_calls(values: Values, rows: Rows) -> list[Call]:
    return [Call("POST", "/connectors", {"name": values["name"], "config": _changed(rows)})]


CREATE: Final = Change(
    "connector-create",
    "Make the connector {name}",
    "Make the connector",
    (
        CONNECT,
        Field("plugin", "Plugin", hint="The connector's class.", is_required=False),
        NAME._replace(placeholder="orders-to-files"),
        MORE,
        CHECK,
        SECRETS,
    ),
    COLUMNS,
    NEEDS,
    _plan_create,
    _create,
    no_command,
    page,
    same=("key", "from", "to"),
    note="The plugin has checked the configuration, and checks it again with the secrets.",
    calls=_create_calls,
    more_fields=_fields,
)


# --- configure


def _fill(ask: Ask) -> Mapping[str, str]:
    """What is there now, without secrets."""
    if not ask.values["name"]:
        return {}
    asked = asking(ask)
    config = asked.config(ask.values["name"])
    known = knowledge(asked, config)
    plain = {key: text for key, text in config.items() if not known.is_hidden(key, text) and key not in FIXED}
    own = set(known.keys.get("") or ())
    found = {f"{OF_PLUGIN}{key}": text for key, text in plain.items() if key in own}
    return {**found, "more": "\n".join(f"{key}={text}" for key, text in sorted(plain.items()) if key not in own)}


def _now(ask: Ask) -> dict[str, str]:
    return asking(ask).config(ask.values["name"])


def _plan_configure(ask: Ask) -> Rows:
    draft = _drafted(ask, _now(ask))
    return _rows(draft, _check(ask, draft, is_end=False), is_later=ask.values["check"] == LATER)


def _configure(ask: Ask, rows: Rows) -> Rows:
    draft = _drafted(ask, _now(ask))
    return _done(ask, draft, rows, Call("PUT", f"{path_of(ask.values['name'])}/config", dict(draft.config)))


def _configure_calls(values: Values, rows: Rows) -> list[Call]:
    """Only what differs, which Kafka Connect has from 3.8 on: so secrets stay as they are."""
    return [Call("PATCH", f"{path_of(values['name'])}/config", _changed(rows))]


CONFIGURE: Final = Change(
    "connector-config",
    "Configure {name}",
    "Set the configuration",
    (CONNECT, NAME, MORE, CHECK, SECRETS),
    COLUMNS,
    NEEDS,
    _plan_configure,
    _configure,
    no_command,
    page,
    same=("key", "from", "to"),
    blame=OF_CONNECTOR,
    note="Connect restarts the connector and its tasks with it. Secrets that are not typed stay as they are.",
    calls=_configure_calls,
    fill=_fill,
    more_fields=_fields,
)
