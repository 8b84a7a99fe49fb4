"""This broker's place in the tree: the paths that must be there, the cluster's id, its own id, its
registration.

What Kafka does in `KafkaServer.startup` before the controller is elected, with KafkaZkClient. All functions
answer after the tree has, and may be called again after a session has expired.
"""

from __future__ import annotations

import base64
import logging
import socket
from typing import TYPE_CHECKING

import trio

from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

log = logging.getLogger("kafka.zk.KafkaZkClient")

EPHEMERAL_OWNER_WAIT_S = 0.2
_RESERVED_UUIDS = frozenset(number.to_bytes(16, "big") for number in range(3))


class BrokerIdTaken(Exception):
    """Another living broker is registered under this id."""


def random_uuid(broker: Broker) -> bytes:
    """Kafka's `Uuid.randomUuid`: version 4, not reserved, and its text never starts with a dash (command
    lines).
    """
    while True:
        number = broker.random.getrandbits(128)
        number = number & ~(0xF << 76) | (4 << 76)
        number = number & ~(0b11 << 62) | (0b10 << 62)
        uuid = number.to_bytes(16, "big")
        if uuid not in _RESERVED_UUIDS and not base64.urlsafe_b64encode(uuid).startswith(b"-"):
            return uuid


async def ensure_persistent_paths(broker: Broker) -> None:
    """KafkaZkClient.createTopLevelPaths: what every broker expects to be there."""
    paths: dict[str, None] = {}
    for path in znodes.PERSISTENT_PATHS:
        parts = path[1:].split("/")
        for depth in range(1, len(parts) + 1):
            paths["/" + "/".join(parts[:depth])] = None
    found = await retry_until_connected(broker.tree, [t.Exists(path) for path in paths])
    missing = [path for path, stat in zip(paths, found, strict=True) if stat is None]
    answers = await retry_until_connected(broker.tree, [t.Create(path) for path in missing])
    for answer in [*found, *answers]:
        if isinstance(answer, t.TreeError) and not isinstance(answer, t.NodeExists):
            raise answer


async def cluster_id(broker: Broker) -> str:
    """The cluster's id, made up by its first broker (KIP-78)."""
    while True:
        (found,) = await retry_until_connected(broker.tree, [t.Get(znodes.CLUSTER_ID)])
        if isinstance(found, t.NodeData):
            return znodes.decode_cluster_id(found.data)
        if not isinstance(found, t.NoNode):
            assert isinstance(found, t.TreeError)
            raise found
        proposal = znodes.encode_cluster_id(znodes.encode_uuid(random_uuid(broker)))
        ops = [t.Create(t.parent_path(znodes.CLUSTER_ID)), t.Create(znodes.CLUSTER_ID, proposal)]
        for answer in await retry_until_connected(broker.tree, ops):
            # Another broker may have been quicker: then its id is read in the next round.
            if isinstance(answer, t.TreeError) and not isinstance(answer, t.NodeExists):
                raise answer


async def generate_broker_id(broker: Broker) -> int:
    """An id above `reserved.broker.max.id`, from the version of `/brokers/seqid`, which each write raises."""
    await ensure_persistent_paths(broker)
    (answer,) = await retry_until_connected(broker.tree, [t.SetData(znodes.BROKER_SEQID, b"")])
    if isinstance(answer, t.TreeError):
        raise answer
    assert isinstance(answer, t.Stat)
    return broker.config.get_int("reserved.broker.max.id") + answer.version


def registration_of(broker: Broker) -> znodes.BrokerRegistration:
    config = broker.config
    version = mv.broker_znode_version(mv.parse(config.get_str("inter.broker.protocol.version")))
    rack = config.get_str("broker.rack")
    return znodes.BrokerRegistration(
        advertised_endpoints(broker), broker.clock.time_ms(), rack or None, version=version
    )


def advertised_endpoints(broker: Broker) -> tuple[znodes.Endpoint, ...]:
    """`advertised.listeners`, else the listeners as bound; a listener on all interfaces has the host's
    name.
    """
    endpoints = []
    for listener in broker.config.advertised_listeners or broker.config.listeners:
        bound = next((b for b in broker.bound if b.name == listener.listener_name), None)
        host = listener.host if listener.host not in ("", "0.0.0.0", "::") else socket.gethostname()
        port = listener.port if listener.port or bound is None else bound.listener.address[1]
        endpoints.append(znodes.Endpoint(host, port, listener.listener_name, listener.security_protocol))
    return tuple(endpoints)


async def register(broker: Broker, registration: znodes.BrokerRegistration) -> int:
    """Create `/brokers/ids/<id>` and return the broker epoch, its czxid (KIP-380).

    KafkaZkClient.checkedEphemeralCreate: a node left by an earlier session of this very client (its answer or
    its expiry not yet seen) is replaced. A node of somebody else is waited for as long as a dead session of
    this broker's previous life may last, where Kafka gives up at once: a restart after a crash then needs no
    luck.
    """
    path = znodes.broker_path(broker.node_id)
    data = znodes.encode_broker(registration)
    # The version check of the second part makes the czxid that it returns this very node's (KAFKA-7165).
    create = t.Multi((t.Create(path, ephemeral=True), t.SetData(path, data, 0)))
    give_up_at = trio.current_time() + broker.tree.negotiated_timeout_ms / 1000 + EPHEMERAL_OWNER_WAIT_S
    while True:
        (answer,) = await retry_until_connected(broker.tree, [create])
        if isinstance(answer, tuple):
            stat = answer[1]
            assert isinstance(stat, t.Stat)
            break
        if not (isinstance(answer, t.MultiFailed) and isinstance(answer.error, t.NodeExists)):
            assert isinstance(answer, t.TreeError)
            raise answer
        (found,) = await retry_until_connected(broker.tree, [t.Get(path)])
        if isinstance(found, t.NodeData):
            if found.stat.ephemeral_owner == broker.tree.session_id and found.data == data:
                stat = found.stat
                break
            if trio.current_time() > give_up_at:
                raise BrokerIdTaken(f"broker id {broker.node_id} is registered by another broker")
            await trio.sleep(EPHEMERAL_OWNER_WAIT_S)
    addresses = ",".join(f"{e.listener_name}://{e.host}:{e.port}" for e in registration.endpoints)
    log.info(
        "Registered broker %d at path %s with addresses: %s, czxid (broker epoch): %d",
        broker.node_id,
        path,
        addresses,
        stat.czxid,
    )
    return stat.czxid
