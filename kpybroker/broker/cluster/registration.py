"""This broker's place in the tree: the paths that must exist, the cluster's id, its own id and its registration.

What Kafka's KafkaZkClient does in ``KafkaServer.startup`` before the controller is elected. Every function returns
after the tree has responded, and may be called again after a session has expired.
"""

from __future__ import annotations

import base64
import logging
import random
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from kpybroker.config.keys.own import NEW_CLUSTER_ID
from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.core.features import SUPPORTED, Ranges
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.requests.connection import BoundListener
    from kpybroker.coordination.tree import Tree

logger = logging.getLogger("kafka.zk.KafkaZkClient")

EPHEMERAL_OWNER_WAIT_S = 0.2
SPACE_EVENT_S = 30.0
"""How long a replica that could not begin for lack of space waits until the controller is made to ask again."""
_RESERVED_UUIDS = frozenset(number.to_bytes(16, "big") for number in range(3))


class BrokerIdTaken(Exception):
    """Another live broker is registered under this id."""


def random_uuid(source: random.Random) -> bytes:
    """Kafka's ``Uuid.randomUuid``: version 4, 16 bytes, not reserved; its text never starts with a dash, as command
    lines would take that for an option.
    """
    while True:
        number = source.getrandbits(128)
        number = number & ~(0xF << 76) | (4 << 76)
        number = number & ~(0b11 << 62) | (0b10 << 62)
        uuid = number.to_bytes(16, "big")
        if uuid not in _RESERVED_UUIDS and not base64.urlsafe_b64encode(uuid).startswith(b"-"):
            return uuid


async def ensure_persistent_paths(tree: Tree) -> None:
    """Create what every broker expects to exist (KafkaZkClient.createTopLevelPaths). Raises TreeError."""
    paths: dict[str, None] = {}
    for path in znodes.PERSISTENT_PATHS:
        parts = path[1:].split("/")
        for depth in range(1, len(parts) + 1):
            paths["/" + "/".join(parts[:depth])] = None
    found = await retry_until_connected(tree, [t.Exists(path) for path in paths])
    missing = [path for path, stat in zip(paths, found, strict=True) if stat is None]
    created = await retry_until_connected(tree, [t.Create(path) for path in missing])
    for result in [*found, *created]:
        if isinstance(result, t.TreeError) and not isinstance(result, t.NodeExists):
            raise result


async def cluster_id(tree: Tree, source: random.Random, wanted: str = "") -> str:
    """The cluster's id, which its first broker generates (KIP-78), or which is `wanted`. Raises TreeError."""
    while True:
        (found,) = await retry_until_connected(tree, [t.Get(znodes.CLUSTER_ID)])
        if isinstance(found, t.NodeData):
            known = znodes.decode_cluster_id(found.data)
            if wanted not in ("", known):
                logger.warning("The cluster is %s already: %s=%s has no effect", known, NEW_CLUSTER_ID, wanted)
            return known
        if not isinstance(found, t.NoNode):
            assert isinstance(found, t.TreeError)
            raise found
        proposal = znodes.encode_cluster_id(wanted or znodes.encode_uuid(random_uuid(source)))
        ops = [t.Create(t.parent_path(znodes.CLUSTER_ID)), t.Create(znodes.CLUSTER_ID, proposal)]
        for result in await retry_until_connected(tree, ops):
            # Another broker may have been quicker: then its id is read in the next round.
            if isinstance(result, t.TreeError) and not isinstance(result, t.NodeExists):
                raise result


async def generate_broker_id(host: Host) -> int:
    """An id above `reserved.broker.max.id`, from the version of `/brokers/seqid`, which each write raises.

    Raises TreeError.
    """
    await ensure_persistent_paths(host.tree)
    (result,) = await retry_until_connected(host.tree, [t.SetData(znodes.BROKER_SEQID, b"")])
    if isinstance(result, t.TreeError):
        raise result
    assert isinstance(result, t.Stat)
    return host.config.get_int("reserved.broker.max.id") + result.version


async def announce_log_dir_failure(host: Host) -> None:
    """Make the controller ask which replicas this broker has and has not (KafkaZkClient.propagateLogDirEvent)."""
    data = znodes.encode_log_dir_event(host.node_id)
    op = t.Create(znodes.log_dir_event_path(), data, sequential=True)
    (result,) = await retry_until_connected(host.tree, [op])
    if isinstance(result, t.TreeError):
        raise result


class SpaceEvents:
    """Has the controller ask again for replicas that could not begin because their disk was full: it takes them for
    offline, and asks after such an event only.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_pending = False

    def lacked(self) -> None:
        """A replica could not begin. By the next event there may be space; else there is another one after that."""
        if not self._is_pending:
            self._is_pending = True
            self._host.spawn("space-event", self._announce)

    async def _announce(self) -> None:
        await trio.sleep(SPACE_EVENT_S)
        self._is_pending = False
        await announce_log_dir_failure(self._host)


class Registration:
    """`/brokers/ids/<id>`, an ephemeral node. `broker_epoch` is its czxid (KIP-380), -1 before `register`.

    `bound` returns the listeners that are bound, whose ports are registered, as is what this broker supports.
    """

    def __init__(self, host: Host, bound: Callable[[], Sequence[BoundListener]], features: Ranges = SUPPORTED) -> None:
        self.features = features
        self._host = host
        self._bound = bound
        self.broker_epoch = -1

    async def register(self) -> None:
        """Create the node, as the present session's. Raises `BrokerIdTaken` and TreeError."""
        await ensure_persistent_paths(self._host.tree)
        config = self._host.config
        registration = znodes.BrokerRegistration(
            self._advertised_endpoints(),
            self._host.clock.time_ms(),
            config.get_str("broker.rack") or None,
            features={name: (levels.min, levels.max) for name, levels in self.features.items()},
            version=mv.broker_znode_version(mv.parse(config.get_str("inter.broker.protocol.version"))),
        )
        path = znodes.broker_path(self._host.node_id)
        self.broker_epoch = await self._create(path, znodes.encode_broker(registration))
        addresses = ",".join(f"{e.listener_name}://{e.host}:{e.port}" for e in registration.endpoints)
        logger.info(
            "Registered broker %d at path %s with addresses: %s, czxid (broker epoch): %d",
            *(self._host.node_id, path, addresses, self.broker_epoch),
        )

    def _advertised_endpoints(self) -> tuple[znodes.Endpoint, ...]:
        """`advertised.listeners`, else the bound listeners; one on all interfaces gets this machine's name."""
        endpoints = []
        for listener in self._host.config.advertised_listeners or self._host.config.listeners:
            bound = next((b for b in self._bound() if b.name == listener.listener_name), None)
            host = listener.host if listener.host not in ("", "0.0.0.0", "::") else socket.gethostname()
            port = listener.port if listener.port or bound is None else bound.listener.address[1]
            endpoints.append(znodes.Endpoint(host, port, listener.listener_name, listener.security_protocol))
        return tuple(endpoints)

    async def _create(self, path: str, data: bytes) -> int:
        """Create the node and return its czxid (KafkaZkClient.checkedEphemeralCreate).

        A node that this session made before a lost connection counts as created. A node of another session is waited
        for as long as a dead session of this broker may last, where Kafka gives up at once: otherwise a restart soon
        after a crash would fail.
        """
        tree = self._host.tree
        # The version check of the second part makes the czxid that it returns this very node's (KAFKA-7165).
        create = t.Multi((t.Create(path, ephemeral=True), t.SetData(path, data, 0)))
        give_up_at = trio.current_time() + tree.negotiated_timeout_ms / 1000 + EPHEMERAL_OWNER_WAIT_S
        while True:
            (result,) = await retry_until_connected(tree, [create])
            if isinstance(result, tuple):
                stat = result[1]
                assert isinstance(stat, t.Stat)
                return stat.czxid
            if not (isinstance(result, t.MultiFailed) and isinstance(result.error, t.NodeExists)):
                assert isinstance(result, t.TreeError)
                raise result
            (found,) = await retry_until_connected(tree, [t.Get(path)])
            if isinstance(found, t.NodeData):
                if found.stat.ephemeral_owner == tree.session_id and found.data == data:
                    return found.stat.czxid
                if trio.current_time() > give_up_at:
                    raise BrokerIdTaken(f"broker id {self._host.node_id} is registered by another broker")
                await trio.sleep(EPHEMERAL_OWNER_WAIT_S)
