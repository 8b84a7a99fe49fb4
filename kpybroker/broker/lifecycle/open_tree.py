"""The coordination tree of a start: the configured ZooKeeper, or the embedded tree in one of the log directories.

If it cannot be opened, or fails during the start, that is a StartupError.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, EXIT_COORDINATION, EXIT_IDENTITY, EXIT_PORT, StartupError
from kpybroker.config.replication_factors import describe
from kpybroker.coordination.tree import CoordinationUnavailable
from kpybroker.core import tree as t
from kpybroker.wire import znodes
from kpybroker.wire.znodes import ZnodeError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kpybroker.broker.loop.clock import Clock
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.coordination.embedded import EmbeddedStore
    from kpybroker.coordination.server.serve import TreeServer
    from kpybroker.coordination.tree import Tree

T = TypeVar("T")

logger = logging.getLogger("kafka.server.KafkaServer")
config_logger = logging.getLogger("kafka.server.KafkaConfig")

EMBEDDED_TREE_FILE = "coordination.sqlite"

CoordinationFailure = t.TreeError | ZnodeError


def coordination_failed(config: BrokerConfig, failure: CoordinationFailure) -> StartupError:
    """The error of a start that ended because of this failure of the tree."""
    connect = config.get_str("zookeeper.connect")
    place = f"ZooKeeper at {connect}" if connect else "the coordination file"
    fix = next((fix for kind, fix in _FIXES if isinstance(failure, kind)), "look at its log, then start again")
    return StartupError(f"{place} failed: {type(failure).__name__}: {failure}", fix, EXIT_COORDINATION)


_FIXES: tuple[tuple[type[CoordinationFailure], str], ...] = (
    (t.NoAuth, "give this broker credentials that may read and write there, or change the ACLs of that znode"),
    (t.AuthFailed, "correct this broker's credentials for ZooKeeper"),
    (t.SystemFailure, "make space on its disk, or repair the disk, then start again"),
    (ZnodeError, "repair or remove that znode"),
)


def make_tree(host: Host, credentials: str | None = None) -> tuple[Tree, EmbeddedStore | None]:
    """A tree that is not started, and the embedded store it is a session of, if it is one. The caller closes both.

    `credentials`, `user:password`, are for the tree of another kpybroker.
    """
    config = host.config
    if config.get_str("zookeeper.connect"):
        return _zookeeper(config, credentials), None
    path = embedded_file(host)
    store = open_store(path, host.clock)
    logger.info("Coordination is embedded, in %s", path)
    limit_factors(config)
    return store.session(config.get_int("zookeeper.session.timeout.ms")), store


async def start_tree(tree: Tree, config: BrokerConfig) -> None:
    """Open a session, within `zookeeper.connection.timeout.ms`."""
    session_timeout_ms = config.get_int("zookeeper.session.timeout.ms")
    connection_timeout_ms = config.get_optional_int("zookeeper.connection.timeout.ms") or session_timeout_ms
    try:
        await tree.start(connection_timeout_ms / 1000)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"ZooKeeper at {error.place} cannot be reached: {error.cause}",
            "start it, or correct zookeeper.connect; without that key kpybroker needs no ZooKeeper",
            EXIT_COORDINATION,
        ) from error


async def close_coordination(part: Tree | EmbeddedStore, node_id: int) -> None:
    """Close a tree or its store. A full or failing disk does not disturb the stop of the broker.

    Everything acknowledged is on disk, and ephemeral nodes that cannot be removed now are removed when the file is
    opened next.
    """
    try:
        await part.close()
    except t.SystemFailure as failure:
        logger.warning("[KafkaServer id=%d] The end of the session was not saved: %s", node_id, failure)


def _zookeeper(config: BrokerConfig, credentials: str | None) -> Tree:
    from kpybroker.broker.lifecycle.zookeeper_client import zookeeper_tree

    try:
        return zookeeper_tree(config, credentials)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"zookeeper.connect={error.place} is not an address of ZooKeeper: {error.cause}",
            "write it as host:port,host:port/chroot",
            EXIT_CONFIG,
        ) from error


def open_store(path: Path, clock: Clock) -> EmbeddedStore:
    """The embedded tree in that file, for one broker or for all of a process. The caller closes it."""
    from kpybroker.coordination.embedded import EmbeddedStore

    try:
        return EmbeddedStore.open(path, _run_off_loop, clock.time_ms, trio.lowlevel.checkpoint)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"the coordination file {error.place} cannot be opened: {error.cause}",
            "restore it from a copy, or start over with empty log directories",
            EXIT_COORDINATION,
        ) from error


def tree_server(
    store: EmbeddedStore,
    config: BrokerConfig,
    clock: Clock,
    port: int | None = None,
    listener: socket.socket | None = None,
) -> TreeServer | None:
    """A bound server of this tree for clients of ZooKeeper, if one is configured. The caller serves and closes it.

    `port` takes the place of the configured one: that which an earlier server of this process had. `listener` is a
    socket that listens already, in place of both.
    """
    if config.get("kpybroker.zookeeper.port") is None:
        return None
    from kpybroker.coordination.server.serve import TreeServer

    host, server = config.get_str("kpybroker.zookeeper.host"), TreeServer(store, clock)
    wanted = config.get_int("kpybroker.zookeeper.port") if port is None else port
    try:
        if listener is not None:
            server.adopt(listener)
        else:
            server.listen(host, wanted)
    except OSError as error:
        raise StartupError(
            f"the tree cannot be served at {host}:{wanted}: {error.strerror or error}",
            "change kpybroker.zookeeper.port (--zookeeper-port of dev; 0 takes a free one) or kpybroker.zookeeper.host",
            EXIT_PORT,
        ) from error
    logger.info("The tree is served to clients of ZooKeeper at %s:%d", *server.address)
    if not server.is_loopback:
        logger.warning("Every client that reaches %s:%d can change what the cluster keeps in its tree", *server.address)
    return server


def limit_factors(config: BrokerConfig, brokers: int = 1) -> None:
    """Lower the replication factors that an embedded cluster of so many can never meet; one warning names them.

    The values are effective and shown by DescribeConfigs. See `config.replication_factors`.
    """
    lowered = config.limit_factors(brokers)
    if lowered:
        config_logger.warning("%s", describe(lowered, brokers))


def embedded_file(host: Host) -> Path:
    """The tree of these log directories, in whichever of them it is; a new file only for a new cluster."""
    places = [Path(directory) / EMBEDDED_TREE_FILE for directory in host.logs.dirs.live]
    found = [path for path in places if path.exists()]
    if len(found) > 1:
        return _latest_copy(found)
    cluster_id = host.logs.dirs.meta.cluster_id
    if not found and cluster_id is not None:
        raise StartupError(
            f"the log directories belong to cluster {cluster_id}, and its {EMBEDDED_TREE_FILE} is in none of "
            f"{', '.join(host.logs.dirs.live)}",
            "bring back the directory or the file, name the cluster's zookeeper.connect, or start over with empty log "
            "directories",
            EXIT_IDENTITY,
        )
    return found[0] if found else places[0]


def _latest_copy(found: Sequence[Path]) -> Path:
    """The copy of a cluster's file that was written last. A file of no cluster is left by an aborted first start."""
    from kpybroker.coordination.database import peek

    latest = {path: peek(path, znodes.CLUSTER_ID) for path in found}
    clusters = {data for data, _ in latest.values() if data is not None}
    if len(clusters) > 1:
        listed = (f"{path} ({_cluster(data)})" for path, (data, _) in latest.items())
        raise StartupError(
            f"several coordination files, of different clusters: {', '.join(listed)}",
            "remove the one that is not of the cluster.id in meta.properties, or give each cluster its log directories",
            EXIT_IDENTITY,
        )
    chosen = max(found, key=lambda path: (latest[path][0] is not None, latest[path][1]))
    logger.warning(
        "Several coordination files of one cluster: %s; the latest is used, %s", list(map(str, found)), chosen
    )
    return chosen


def _cluster(data: bytes | None) -> str:
    return "of no cluster" if data is None else f"cluster {znodes.decode_cluster_id(data)}"


async def _run_off_loop(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function)
