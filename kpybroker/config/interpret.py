"""From the properties that a user wrote to those of `BrokerConfig`: KRaft files are mapped, every key is accounted for.

`interpret` returns the properties and a note for each key that does not do what the user may expect: mapped, without
effect, or unknown (with the key that was probably meant). No key is dropped without a note; keys of security share one
for each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kpybroker.config.keys.own import GRAPHITE_REPORTER, KAFKA_VERSION
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.releases import REMOVED, is_kafka_4
from kpybroker.config.keys.replication import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from kpybroker.config.keys.security import PER_LISTENER, PER_MECHANISM_ONLY
from kpybroker.config.keys.status import HONOURED, PER_LISTENER_REASON, REASONS, SECURITY
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.keys.topic import TOPIC_ROWS
from kpybroker.config.listeners import Endpoint
from kpybroker.config.sources.kraft import ROLES, from_kraft
from kpybroker.config.unserved import AUTHORIZER_KEYS

_POLICIES: Final = frozenset({"create.topic.policy.class.name", "alter.config.policy.class.name"})
"""They forbid clients something, which is therefore allowed."""
_CUSTOM_SPACES: Final = ("rsm.config.", "rlmm.config.", "confluent.", "config.providers.")


class Note(NamedTuple):
    """One line to log at start. `serious`: the key or its value is probably a mistake."""

    key: str
    text: str
    serious: bool


class Interpreted(NamedTuple):
    """The properties for `BrokerConfig`, and the notes to log at start."""

    props: dict[str, str]
    notes: list[Note]


def interpret(props: Mapping[str, str], *, alone: bool = True) -> Interpreted:
    """The properties and notes of `props`; `alone`: no other broker is started with this one.

    Raises `ConfigTextError` for a KRaft file that has no counterpart.
    """
    result = dict(props)
    notes = [Note(*one, False) for one in from_kraft(result, alone=alone)] if ROLES in props else []
    mapped = {note.key for note in notes}
    served = AUTHORIZER_KEYS if props.get("authorizer.class.name", "").strip() else frozenset()
    for name, text in props.items():
        if name not in mapped and name not in served:
            notes += _note(name, text)
    if "sasl.enabled.mechanisms" in props and not _mentions(result, "SASL_"):
        text = (
            "sasl.enabled.mechanisms has no effect: no listener is SASL_PLAINTEXT or SASL_SSL, no client has to log in"
        )
        notes.append(Note("sasl.enabled.mechanisms", text, True))
    encrypting = [name for name in props if _is_tls_key(name)]
    if encrypting and not _mentions(result, "SSL"):
        has = "have" if len(encrypting) > 1 else "has"
        text = f"{', '.join(encrypting)} {has} no effect: no listener is SSL or SASL_SSL, nothing is encrypted"
        notes.append(Note(encrypting[0], text, True))
    notes += [*_removed_notes(props), *_reporter_notes(props), *_security_notes(props)]
    return Interpreted(result, notes)


def forwarded_ports(listeners: Iterable[Endpoint], advertised: Iterable[Endpoint]) -> list[Note]:
    """A note for each advertised address whose port no listener has, so that something else has to lead there."""
    ports = {endpoint.port for endpoint in listeners}
    text = "advertised.listeners: no listener has the port of {}: clients reach it only where something forwards it"
    if 0 in ports:  # the system chooses it
        return []
    return [Note("advertised.listeners", text.format(one), True) for one in advertised if one.port not in ports]


def _is_tls_key(name: str) -> bool:
    key = BROKER_KEYS.get(base_key(name))
    return key is not None and key.name.startswith("ssl.") and key.status == HONOURED


def _mentions(props: Mapping[str, str], protocol: str) -> bool:
    """Whether a listener may be of this protocol, as far as that can be seen without parsing them."""
    return any(protocol in props.get(key, "").upper() for key in ("listeners", "listener.security.protocol.map"))


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


# --- keys without effect, unknown keys


def _note(name: str, text: str) -> Iterable[Note]:
    key = BROKER_KEYS.get(base_key(name))
    if key is None:
        yield Note(name, _unknown(name), True)
    elif key.status in SECURITY:
        return  # see _security_notes
    elif key.status != HONOURED:
        yield Note(name, f"{name} has no effect: {REASONS[key.status]}", name in _POLICIES)
    elif name in PER_MECHANISM_ONLY:
        yield Note(name, f"{name} has no effect on a broker: set listener.name.<listener>.<mechanism>.{name}", True)
    elif key.name != name and key.name not in PER_LISTENER:
        yield Note(name, f"{name} has no effect: {PER_LISTENER_REASON}", False)
    elif name == "replica.selector.class" and text.strip() not in ("", LEADER_SELECTOR, RACK_AWARE_SELECTOR):
        yield Note(
            name, f"{name}={text} has no effect: only {LEADER_SELECTOR} and {RACK_AWARE_SELECTOR} are available", True
        )


def _removed_notes(props: Mapping[str, str]) -> Iterable[Note]:
    """Of keys that the release whose place the broker takes does not have any more, and that have an effect here."""
    release = props.get(KAFKA_VERSION)
    for name in props if is_kafka_4(release) else ():
        if name in REMOVED and BROKER_KEYS[name].status == HONOURED:
            yield Note(name, f"{name} is no key of Kafka {release}, and has its effect here all the same", False)


def _reporter_notes(props: Mapping[str, str]) -> Iterable[Note]:
    """Of classes that report metrics: Graphite's is known by name, and needs a switch of its own."""
    key, switch = "kafka.metrics.reporters", "kafka.graphite.metrics.reporter.enabled"
    named = _items(props.get(key, ""))
    is_on = props.get(switch, "").strip().lower() == "true"
    if others := [name for name in named if name != GRAPHITE_REPORTER]:
        yield Note(key, f"{key}={','.join(others)} has no effect: only {GRAPHITE_REPORTER} is available", True)
    if GRAPHITE_REPORTER in named and not is_on:
        yield Note(key, f"{key}={GRAPHITE_REPORTER} has no effect: {switch} is not true", True)
    if is_on and GRAPHITE_REPORTER not in named:
        yield Note(switch, f"{switch} has no effect: {key} does not name {GRAPHITE_REPORTER}", True)


def _security_notes(props: Mapping[str, str]) -> Iterable[Note]:
    """One warning for all keys of one kind of security; those that must not be ignored end the start (`unserved`)."""
    kinds: dict[str, list[str]] = {}
    for name in props:
        key = BROKER_KEYS.get(base_key(name))
        if key is not None and key.status in SECURITY:
            kinds.setdefault(key.status, []).append(name)
    for status, names in kinds.items():
        has = "have" if len(names) > 1 else "has"
        yield Note(names[0], f"{', '.join(names)} {has} no effect: {REASONS[status]}", True)


def _unknown(name: str) -> str:
    if name in AUTHORIZER_KEYS:
        return f"{name} has no effect: it is a key of the authorizer, and authorizer.class.name is not set"
    text = f"{name} is not a configuration key of Kafka 3.9 or 4.3 and has no effect"
    if name.startswith(_CUSTOM_SPACES):
        return text
    topic_row = next((row for row in TOPIC_ROWS if row[0] == name), None)
    if topic_row is not None:
        synonyms = topic_row[5]
        return f"{name} is a topic's key" + (f"; did you mean {synonyms[0]}?" if synonyms else ", set it on topics")
    guess = did_you_mean(name)
    return f"{text}; did you mean {guess}?" if guess else text


def did_you_mean(name: str) -> str | None:
    """The key whose name is most similar to `name`, None if none is similar."""
    import difflib

    close = difflib.get_close_matches(name.lower().replace("_", "."), BROKER_KEYS, n=1, cutoff=0.75)
    return close[0] if close else None
