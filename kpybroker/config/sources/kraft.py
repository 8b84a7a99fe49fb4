"""A KRaft `server.properties`, one that sets `process.roles`, as the file of a broker without a KRaft quorum.

There is no quorum here, so only a file that is a whole cluster by itself has a counterpart: one broker that is its only
controller. Files of clusters with more nodes are refused, because each would start as a cluster of its own. With
`zookeeper.connect`, or where one command starts several brokers, they find each other another way. An empty
`zookeeper.connect` says that the broker is meant to be alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpybroker.config.keys.status import NO_KRAFT, REASONS
from kpybroker.config.values import ConfigTextError

ROLES = "process.roles"
VOTERS = "controller.quorum.voters"
BOOTSTRAP = "controller.quorum.bootstrap.servers"


class Mapped(NamedTuple):
    """What became of a key, for the log."""

    key: str
    text: str


class NotOneNode(ConfigTextError):
    """A file that describes a node of a larger cluster."""


def from_kraft(props: dict[str, str], *, alone: bool) -> list[Mapped]:
    """Turn the properties into their counterpart, in place.

    `alone`: no other broker is started with this one. Raises `ConfigTextError` for what has no counterpart.
    """
    roles = _items(props.pop(ROLES))
    if "broker" not in roles:
        raise ConfigTextError(
            ROLES,
            f"{ROLES}={','.join(roles)} describes a KRaft controller without a broker, which has no counterpart here",
        )
    controllers = _items(props.pop("controller.listener.names", ""))
    if alone and "zookeeper.connect" not in props:
        _check_one_node(props, roles, controllers)
    mapped = [Mapped(ROLES, f"{ROLES} has no effect: {REASONS[NO_KRAFT]}")]
    if "node.id" in props:
        # KRaft allows any number; ZooKeeper mode reserves those above reserved.broker.max.id for generated ids.
        props.setdefault("broker.id", props["node.id"])
        props.setdefault("broker.id.generation.enable", "false")
        mapped.append(Mapped("node.id", f"node.id={props['node.id']} is used as broker.id"))
    if controllers:
        mapped += _drop_listeners(props, controllers)
    return mapped


def _check_one_node(props: dict[str, str], roles: list[str], controllers: list[str]) -> None:
    """Raise `NotOneNode` unless this node is the only voter, as far as the file says."""
    voters, servers = _items(props.get(VOTERS, "")), _items(props.get(BOOTSTRAP, ""))
    node_id = props.get("node.id", props.get("broker.id", "")).strip()
    if "controller" not in roles:
        raise NotOneNode(ROLES, f"{ROLES}={','.join(roles)} describes a broker whose KRaft controller is another node")
    for key, nodes in ((VOTERS, voters), (BOOTSTRAP, servers)):
        if len(nodes) > 1:
            raise NotOneNode(key, f"{key} names {len(nodes)} nodes, so this file is a part of a larger KRaft cluster")
    if voters and node_id and voters[0].partition("@")[0].strip() != node_id:
        raise NotOneNode(VOTERS, f"{VOTERS}={voters[0]} is another node than node.id={node_id}")
    ports = {uri.rpartition(":")[2] for uri in _items(props.get("listeners", "")) if _is_of(uri, controllers)}
    if servers and ports and servers[0].rpartition(":")[2] not in ports:
        raise NotOneNode(BOOTSTRAP, f"{BOOTSTRAP}={servers[0]} is not this node's controller listener")


def _drop_listeners(props: dict[str, str], controllers: list[str]) -> Iterable[Mapped]:
    key = "controller.listener.names"
    yield Mapped(key, f"{key} has no effect: {REASONS[NO_KRAFT]}")
    for key in ("listeners", "advertised.listeners"):
        if key not in props:
            continue
        uris = _items(props[key])
        if dropped := ", ".join(uri for uri in uris if _is_of(uri, controllers)):
            yield Mapped(f"{key} ({dropped})", f"{key}: {dropped} is a controller's listener, not opened")
        props[key] = ",".join(uri for uri in uris if not _is_of(uri, controllers))


def _is_of(uri: str, names: Iterable[str]) -> bool:
    return uri.partition("://")[0].upper() in {name.upper() for name in names}


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
