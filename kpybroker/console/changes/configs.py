"""Settings of topics, brokers and groups: a key set, or returned to its default. The broker checks it first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from kpybroker.client.actions import configs
from kpybroker.client.actions.resources import SOURCES
from kpybroker.client.actions.resources import Change as KeyChange
from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.connect.properties import is_secret
from kpybroker.client.connect.raw_configs import TYPES, RawEntry
from kpybroker.console.changes.abilities import without_group_settings
from kpybroker.console.changes.change import Ask, Change, Command, Field, InField, Key, Rows, Values, in_field
from kpybroker.console.queries.settings import words

KINDS: Final = ("topic", "broker", "group")
SET, RESET = "set", "return to the default"
TOPIC_SOURCE: Final = 1
_INTEGER: Final = re.compile(r"[+-]?\d{1,19}")
_FORMS: Final = {
    "boolean": (re.compile("true|false"), "write true or false"),
    "int": (_INTEGER, "write a whole number"),
    "short": (_INTEGER, "write a whole number"),
    "long": (_INTEGER, "write a whole number"),
    "double": (re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"), "write a number such as 0.5"),
}
"""How a value of a type looks; what is more, its broker checks."""
IS_SENSITIVE: Final = "(sensitive)"


def key_of(entry: RawEntry) -> Key:
    """A setting, for a form."""
    return Key(entry.name, entry.value, TYPES.get(entry.type, ""), words(entry.documentation))


def keys_of_topics(ask: Ask) -> Sequence[Key]:
    """What a new topic may be given, in the words of a broker about a topic that is there; or in ours without one."""
    found = sorted(ask.cluster.metadata().topics)
    if found:
        try:
            with ask.cluster.wire() as wire:
                entries = configs.entries(wire, "topic", found[0])
        except CommandError:
            entries = []
        if entries:
            shown = [key_of(one) for one in entries if not one.is_read_only]
            own = {one.name for one in entries if one.source == TOPIC_SOURCE}
            return [one._replace(value=None) if one.key in own else one for one in shown]
    from kpybroker.config.docs.lookup import topic_doc
    from kpybroker.config.keys.topic import TOPIC_ROWS

    return [Key(str(row[0]), None, "", topic_doc(str(row[0])) or "") for row in TOPIC_ROWS]


def keys_of(ask: Ask) -> Sequence[Key]:
    """The settings of what is named; none where they cannot be read: the preview says why."""
    if not ask.values["name"] or ask.values["kind"] not in KINDS:
        return ()
    try:
        with ask.cluster.wire() as wire:
            found = configs.entries(wire, ask.values["kind"], ask.values["name"])
    except CommandError:
        return ()
    return [key_of(one) for one in found if not one.is_read_only]


def _plan(ask: Ask) -> Rows:
    kind, name, key = (ask.values[field] for field in ("kind", "name", "key"))
    if ask.values["do"] == SET and is_secret(key):
        raise InField("key", _is_secret(key))
    _check_broker(ask)
    with ask.cluster.wire() as wire:
        with in_field("name"):
            entries = configs.entries(wire, kind, name)
        found = _entry(entries, kind, name, key)
        row = {"name": name, "key": key, "from": None, "source": None, "to": None, "error": None}
        if found is not None:
            row["from"] = IS_SENSITIVE if found.is_sensitive else found.value
            row["source"] = SOURCES.get(found.source, f"source {found.source}")
            if found.is_sensitive and ask.values["do"] == SET:
                raise InField("key", _is_secret(key))
            _check_form(found, ask.values)
        wanted = _change(ask.values)
        configs.alter(wire, kind, name, [wanted], validate_only=True)
    if wanted.operation == "set":
        row["to"] = wanted.value
        is_same = found is not None and found.value == wanted.value
        return [{**row, "status": "is so already" if is_same and row["source"] == kind else "would be set"}]
    is_default = row["source"] not in (kind, "cluster-default")
    return [{**row, "to": "the default", "status": "is so already" if is_default else "would be returned"}]


def _check_broker(ask: Ask) -> None:
    name = ask.values["name"]
    if ask.values["kind"] != "broker" or name == configs.DEFAULT:
        return
    known = sorted(ask.cluster.metadata().brokers)
    if name not in map(str, known):
        fix = f"one of {', '.join(map(str, known))}; {configs.DEFAULT} for all of them"
        raise InField("name", usage(f"there is no broker {name[:50]}", fix))


def _is_secret(key: str) -> CommandError:
    """Of a value that no address and no log may have, which a form's preview has."""
    return usage(f"the value of {key[:100]} is a secret", "set it from a shell: kpybroker config set")


def _entry(entries: Sequence[RawEntry], kind: str, name: str, key: str) -> RawEntry | None:
    """The setting; None for one of brokers that is only known once it is set, as limits are. Raises CommandError."""
    for one in entries:
        if one.name == key:
            if one.is_read_only:
                fix = "set it in server.properties, and restart the broker"
                raise InField("key", usage(f"{key} cannot be changed while the broker runs", fix))
            return one
    if kind == "broker":
        return None
    raise InField("key", usage(f"{kind} {name} has no key {key[:100]}", "choose one of the keys below"))


def _check_form(entry: RawEntry, values: Values) -> None:
    kind = TYPES.get(entry.type, "")
    if values["do"] == SET and kind in _FORMS and not _FORMS[kind][0].fullmatch(values["value"]):
        raise InField("value", usage(f"{values['value'][:50]!r} is no {kind}", _FORMS[kind][1]))


def _change(values: Values) -> KeyChange:
    return (
        KeyChange("set", values["key"], values["value"]) if values["do"] == SET else KeyChange("delete", values["key"])
    )


def _perform(ask: Ask, rows: Rows) -> Rows:
    with ask.cluster.wire() as wire:
        configs.alter(wire, ask.values["kind"], ask.values["name"], [_change(ask.values)])
    return [{**row, "status": "set" if ask.values["do"] == SET else "returned to the default"} for row in rows]


def _command(values: Values) -> Command:
    if values["do"] == SET:
        return ["config", "set"], [values["kind"], values["name"], f"{values['key']}={values['value']}"]
    return ["config", "unset"], [values["kind"], values["name"], values["key"]]


def _back(values: Values) -> str:
    name = quote(values["name"], safe="")
    if values["kind"] == "group":
        return f"/change/config?kind=group&name={name}"
    if values["kind"] == "broker":
        return f"/brokers/{name}" if values["name"].isdigit() else "/"
    return f"/topics/{name}/configuration"


def _missing(ask: Ask) -> str:
    name = ask.values["name"]
    return without_group_settings(ask.cluster, name) if ask.values["kind"] == "group" and name else ""


CONFIG: Final = Change(
    "config",
    "Change a setting of {kind} {name}",
    "Change {key}",
    (
        Field("kind", "Of a", "choice", choices=KINDS, default="topic"),
        Field("name", "Name", hint="A topic, a broker's id or default for all brokers, a group.", is_required=True),
        Field("key", "Key", hint="One of those below.", placeholder="retention.ms", is_required=True),
        Field("do", "Do", "choice", choices=(SET, RESET), default=SET),
        Field("value", "Value", placeholder="604800000"),
    ),
    (
        ("Name", "name"),
        ("Key", "key"),
        ("Now", "from"),
        ("From", "source"),
        ("Then", "to"),
        ("Status", "status"),
    ),
    "AlterConfigs and DescribeConfigs on the topic, the group, or for brokers on the cluster",
    _plan,
    _perform,
    _command,
    _back,
    same=("name", "key", "from", "source"),
    blame={"INVALID_CONFIG": "value", "UNKNOWN_TOPIC_OR_PARTITION": "name", "INVALID_REQUEST": "value"},
    note="The broker has checked the value.",
    keys=keys_of,
    missing=_missing,
)
