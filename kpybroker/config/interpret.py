"""From the properties that a user wrote to those of `BrokerConfig`: KRaft files are mapped, every key is accounted for.

`interpret` returns the properties and a note for each key that does not do what the user may expect: mapped, without
effect, or unknown (with the key that was probably meant). No key is dropped without a note; keys of security share one
for each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kpybroker.config.keys.own import GRAPHITE_REPORTER
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.replication import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from kpybroker.config.keys.security import PER_LISTENER, PER_MECHANISM_ONLY
from kpybroker.config.keys.status import HONOURED, NO_KRAFT, PER_LISTENER_REASON, REASONS, SECURITY
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.keys.topic import TOPIC_ROWS
from kpybroker.config.unserved import AUTHORIZER_KEYS
from kpybroker.config.values import ConfigTextError

_POLICIES: Final = frozenset({"create.topic.policy.class.name", "alter.config.policy.class.name"})
"""They forbid clients something, which is therefore allowed."""
_CUSTOM_SPACES: Final = ("rsm.config.", "rlmm.config.", "confluent.", "config.providers")


VOTERS: Final = "controller.quorum.voters"
QUORUM_SERVERS: Final = "controller.quorum.bootstrap.servers"


class OtherNodes(ConfigTextError):
    """A KRaft file of a cluster: this broker would be a cluster of its own."""


class Note(NamedTuple):
    """One line to log at start. `serious`: the key or its value is probably a mistake."""

    key: str
    text: str
    serious: bool


class Interpreted(NamedTuple):
    """The properties for `BrokerConfig`, and the notes to log at start."""

    props: dict[str, str]
    notes: list[Note]


def interpret(props: Mapping[str, str]) -> Interpreted:
    """The properties and notes of `props`.

    Raises `ConfigTextError` for a KRaft file that describes no broker, or one of several nodes, unless
    `zookeeper.connect` says with whom it is a cluster: alone, if it is empty.
    """
    result = dict(props)
    notes = [] if "process.roles" not in props else _from_kraft(result)
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
    return Interpreted(result, [*notes, *_reporter_notes(props), *_security_notes(props)])


def _is_tls_key(name: str) -> bool:
    key = BROKER_KEYS.get(base_key(name))
    return key is not None and key.name.startswith("ssl.") and key.status == HONOURED


def _mentions(props: Mapping[str, str], protocol: str) -> bool:
    """Whether a listener may be of this protocol, as far as that can be seen without parsing them."""
    return any(protocol in props.get(key, "").upper() for key in ("listeners", "listener.security.protocol.map"))


# --- KRaft


def _from_kraft(props: dict[str, str]) -> list[Note]:
    """Turn a KRaft `server.properties` into its ZooKeeper-mode counterpart, in place."""
    roles = _items(props.pop("process.roles"))
    if "broker" not in roles:
        raise ConfigTextError(
            "process.roles",
            f"process.roles={','.join(roles)} describes a KRaft controller without a broker, which has no "
            "counterpart here",
        )
    if "zookeeper.connect" not in props:
        _refuse_other_nodes(props, roles)
    notes = [
        Note("process.roles", f"process.roles has no effect: {REASONS[NO_KRAFT]}", False),
    ]
    if "node.id" in props:
        # KRaft allows any number; ZooKeeper mode reserves those above reserved.broker.max.id for generated ids.
        props.setdefault("broker.id", props["node.id"])
        props.setdefault("broker.id.generation.enable", "false")
        notes.append(Note("node.id", f"node.id={props['node.id']} is used as broker.id", False))
    controllers = _items(props.pop("controller.listener.names", ""))
    if controllers:
        notes += _drop_listeners(props, controllers)
    return notes


def _refuse_other_nodes(props: Mapping[str, str], roles: list[str]) -> None:
    """Each node of a KRaft cluster would start a cluster of its own. Raises OtherNodes."""
    voters, servers = (_items(props.get(key, "")) for key in (VOTERS, QUORUM_SERVERS))
    if "controller" not in roles:
        why = "has its controller in another process"
        raise OtherNodes("process.roles", f"process.roles={','.join(roles)} {why}, and KRaft is not served here")
    if len(voters) > 1 or len(servers) > 1:
        name, count = (
            (VOTERS, len(voters)) if len(voters) > 1 else ("controller.quorum.bootstrap.servers", len(servers))
        )
        raise OtherNodes(name, f"{name} names {count} controllers, and KRaft is not served here")
    node_id = props.get("node.id", props.get("broker.id", "")).strip()
    if voters and node_id and voters[0].partition("@")[0] != node_id:
        why = f"names another node than {node_id}, and KRaft is not served here"
        raise OtherNodes(VOTERS, f"{VOTERS}={voters[0]} {why}")


def _drop_listeners(props: dict[str, str], controllers: list[str]) -> list[Note]:
    names = {name.upper() for name in controllers}
    notes = [Note("controller.listener.names", f"controller.listener.names has no effect: {REASONS[NO_KRAFT]}", False)]
    for key in ("listeners", "advertised.listeners"):
        if key not in props:
            continue
        uris = _items(props[key])
        kept = [uri for uri in uris if uri.partition("://")[0].upper() not in names]
        if len(kept) < len(uris):
            dropped = ", ".join(uri for uri in uris if uri not in kept)
            notes.append(Note(f"{key} ({dropped})", f"{key}: {dropped} is a controller's listener, not opened", False))
        props[key] = ",".join(kept)
    return notes


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
    text = f"{name} is not a configuration key of Kafka 3.9 and has no effect"
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
