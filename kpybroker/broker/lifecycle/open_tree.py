"""The coordination tree of a start: ZooKeeper as the configuration has it, or the embedded one, wherever its file lies.

Whatever keeps it from opening, and whatever it answers during the start that is no answer to go on with, is a
StartupError.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from kpybroker.broker.lifecycle.startup import EXIT_CONFIG, EXIT_COORDINATION, EXIT_IDENTITY, StartupError
from kpybroker.coordination.tree import CoordinationUnavailable
from kpybroker.core import tree as t
from kpybroker.wire import znodes
from kpybroker.wire.znodes import ZnodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpybroker.broker.app import Broker
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.coordination.embedded import EmbeddedStore
    from kpybroker.coordination.tree import Tree

T = TypeVar("T")

log = logging.getLogger("kafka.server.KafkaServer")

EMBEDDED_TREE_FILE = "coordination.sqlite"

CoordinationFailure = t.TreeError | ZnodeError


def coordination_failed(broker: Broker, failure: CoordinationFailure) -> StartupError:
    """Whatever the tree answers on the way that isn't an answer to go on with."""
    connect = broker.config.get_str("zookeeper.connect")
    place = f"ZooKeeper at {connect}" if connect else "the coordination file"
    fix = next((fix for kind, fix in _FIXES if isinstance(failure, kind)), "look at its log, then start again")
    return StartupError(f"{place} failed: {type(failure).__name__}: {failure}", fix, EXIT_COORDINATION)


_FIXES: tuple[tuple[type[CoordinationFailure], str], ...] = (
    (t.NoAuth, "give this broker credentials that may read and write there, or change the ACLs of that znode"),
    (t.AuthFailed, "correct this broker's credentials for ZooKeeper"),
    (t.SystemFailure, "make space on its disk, or repair the disk, then start again"),
    (ZnodeError, "repair or remove that znode"),
)


async def open_tree(broker: Broker) -> Tree:
    """Connect to ZooKeeper, or open the embedded tree."""
    config = broker.config
    session_timeout_ms = config.get_int("zookeeper.session.timeout.ms")
    tree = broker.given_tree
    if tree is None:
        connect = config.get_str("zookeeper.connect")
        tree = _zookeeper(broker) if connect else _embedded(broker, session_timeout_ms)
    tree.listen(broker.tree_event)
    connection_timeout_ms = config.get_optional_int("zookeeper.connection.timeout.ms") or session_timeout_ms
    try:
        await tree.start(connection_timeout_ms / 1000)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"ZooKeeper at {error.place} cannot be reached: {error.cause}",
            "start it, or correct zookeeper.connect; without that key kpybroker needs no ZooKeeper",
            EXIT_COORDINATION,
        ) from error
    return tree


def _zookeeper(broker: Broker) -> Tree:
    from kpybroker.broker.lifecycle.zookeeper_client import zookeeper_tree

    try:
        return zookeeper_tree(broker.config)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"zookeeper.connect={error.place} is no address of ZooKeeper: {error.cause}",
            "write it as host:port,host:port/chroot",
            EXIT_CONFIG,
        ) from error


def _embedded(broker: Broker, session_timeout_ms: int) -> Tree:
    path = _embedded_file(broker)
    store = open_store(path, broker.clock)
    log.info("Coordination is embedded, in %s", path)
    broker.embedded_store = store
    return store.session(session_timeout_ms)


def open_store(path: Path, clock: Clock) -> EmbeddedStore:
    """The embedded tree in that file, for one broker or for all of a process. Whoever opens it closes it."""
    from kpybroker.coordination.embedded import EmbeddedStore

    try:
        return EmbeddedStore.open(path, _run_off_loop, clock.time_ms, trio.lowlevel.checkpoint)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"the coordination file {error.place} cannot be opened: {error.cause}",
            "restore it from a copy, or start over with empty log directories",
            EXIT_COORDINATION,
        ) from error


def _embedded_file(broker: Broker) -> Path:
    """Where the tree of these log directories is, whatever their order; a new one only for a new cluster."""
    places = [Path(directory) / EMBEDDED_TREE_FILE for directory in broker.logs.dirs.live]
    found = [path for path in places if path.exists()]
    if len(found) > 1:
        return _the_one_of(found)
    cluster_id = broker.logs.dirs.meta.cluster_id
    if not found and cluster_id is not None:
        raise StartupError(
            f"the log directories belong to cluster {cluster_id}, and its {EMBEDDED_TREE_FILE} is in none of "
            f"{', '.join(broker.logs.dirs.live)}",
            "bring back the directory or the file, name the cluster's zookeeper.connect, or start over with empty log "
            "directories",
            EXIT_IDENTITY,
        )
    return found[0] if found else places[0]


def _the_one_of(found: Sequence[Path]) -> Path:
    """Of copies of one cluster's file the one that was written last; an aborted first start left one of no cluster."""
    from kpybroker.coordination.database import peek

    latest = {path: peek(path, znodes.CLUSTER_ID) for path in found}
    clusters = {data for data, _ in latest.values() if data is not None}
    if len(clusters) > 1:
        told = (f"{path} ({_cluster(data)})" for path, (data, _) in latest.items())
        raise StartupError(
            f"several coordination files, of different clusters: {', '.join(told)}",
            "remove the one that is not of the cluster.id in meta.properties, or give each cluster its log directories",
            EXIT_IDENTITY,
        )
    chosen = max(found, key=lambda path: (latest[path][0] is not None, latest[path][1]))
    log.warning("Several coordination files of one cluster: %s; the latest is used, %s", list(map(str, found)), chosen)
    return chosen


def _cluster(data: bytes | None) -> str:
    return "of no cluster" if data is None else f"cluster {znodes.decode_cluster_id(data)}"


async def _run_off_loop(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function)
