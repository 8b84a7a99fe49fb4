"""How to fix a refused value, in one line: the text after `fix:` in every configuration error."""

from __future__ import annotations

from kpybroker.config.keys.definition import Key
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.sources.kraft import ROLES, NotOneNode
from kpybroker.config.unserved import ACL_AUTHORIZER, NotServed
from kpybroker.config.values import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    SHORT,
    ConfigError,
    ConfigTextError,
)

INTER_BROKER = "inter.broker.listener.name"
_LISTENER_EXAMPLE = "PLAINTEXT://127.0.0.1:9092"
_MAX = {INT: INT_MAX, LONG: LONG_MAX, SHORT: 2**15 - 1}


def fix_for(error: ConfigError) -> str:
    """How to correct the key that `error` names."""
    name = error.name
    if isinstance(error, NotServed):
        return _fix_of_unserved(error.names)
    key = BROKER_KEYS.get(base_key(name))
    if name in ("listeners", "advertised.listeners"):
        return f"write {name} as NAME://host:port, e.g. {name}={_LISTENER_EXAMPLE} (several: separated by commas)"
    if name == INTER_BROKER:
        return f"set {name} to the listener that brokers use among themselves, without security.inter.broker.protocol"
    if isinstance(error, NotOneNode):
        return _fix_of_a_node(error)
    if name == ROLES:
        return f"set {ROLES}=broker,controller, or leave {ROLES} out"
    if key is None or isinstance(error, ConfigTextError):
        return f"change {name} so that the settings agree, or leave it out"
    default = f" (default: {key.default})" if key.default else ""
    return f"set {name} to {_expected(key)}{default}, or leave it out"


def _fix_of_a_node(error: NotOneNode) -> str:
    one = f"{ROLES}=broker,controller" if error.name == ROLES else f"{error.name} with this node alone, or without it"
    return (
        "for a cluster set the same zookeeper.connect in each broker's file, or start all of them on this machine from "
        f"one file (--processes N); for a broker alone set {one}"
    )


def _fix_of_unserved(names: list[str]) -> str:
    if names == ["authorizer.class.name"]:
        return f"set authorizer.class.name={ACL_AUTHORIZER}, whose ACLs are in the tree, or leave it out"
    if names == ["authorizer.zookeeper.url"]:
        return "remove authorizer.zookeeper.url, and copy the ACLs into the tree of zookeeper.connect"
    return f"remove {', '.join(names)}, but only where every client that reaches this broker may do everything"


def _expected(key: Key) -> str:
    kind, *arguments = key.validator
    if kind in ("one_of", "any_case_one_of"):
        return "one of " + ", ".join(arguments)
    if kind == "list_of":
        return "a list of " + ", ".join(arguments)
    if kind == "metadata_version":
        return "a Kafka version such as 3.9"
    if kind == "cluster_id":
        return "1 to 64 letters, digits, _ and -"
    if kind == "regex":
        return "a regular expression that Python's re takes, without Java's \\p{...}, \\Q...\\E and (?<name>...)"
    if key.type == BOOLEAN:
        return "true or false"
    if key.type in _MAX or key.type == DOUBLE:
        return _expected_number(key)
    return "a list separated by commas" if key.type == LIST else "another value"


def _expected_number(key: Key) -> str:
    noun = "a number" if key.type == DOUBLE else "a whole number"
    kind, *arguments = key.validator
    if kind == "range":
        low, high = arguments
        return f"{noun} from {low} to {high}" if high is not None else f"{noun} of at least {low}"
    if kind == "gzip_level":
        return f"{noun} from 1 to 9, or -1"
    return f"{noun} up to {_MAX[key.type]}" if key.type in _MAX else noun
