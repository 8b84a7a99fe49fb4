"""The steps of a broker's start, each with what can go wrong said in two lines: the cause, and the mend.

Kept apart from `app` so that the order there reads at a glance.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from kpybroker.broker import registration
from kpybroker.broker.server import BoundListener
from kpybroker.coordination.tree import CoordinationUnavailable
from kpybroker.core import tree as t
from kpybroker.storage.errors import (
    InconsistentBrokerIdError,
    InconsistentClusterIdError,
    InconsistentMetadataError,
    LogDirError,
    LogDirLockedError,
    StorageError,
)
from kpybroker.storage.manager import LogManager
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.znodes import ZnodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpybroker.broker.app import Broker
    from kpybroker.coordination.tree import Tree

T = TypeVar("T")

EXIT_CONFIG = 2
EXIT_STORAGE = 3
EXIT_LOCKED = 4
EXIT_PORT = 5
EXIT_COORDINATION = 6
EXIT_IDENTITY = 7

EMBEDDED_TREE_FILE = "coordination.sqlite"


class StartupError(Exception):
    """The broker cannot start, or cannot go on: the cause in one line, what mends it in another."""

    def __init__(self, cause: str, mend: str, exit_code: int) -> None:
        super().__init__(cause)
        self.cause = cause
        self.mend = mend
        self.exit_code = exit_code


def lock_log_dirs(broker: Broker) -> LogManager:
    """Make and lock the log directories and read who they belong to."""
    config = broker.config
    try:
        return LogManager(
            broker.files,
            config.log_dirs,
            producer_id_expiration_ms=config.get_int("producer.id.expiration.ms"),
            verification_enabled=config.get_bool("transaction.partition.verification.enable"),
            walk_records=config.get_bool("kpybroker.validate.records"),
            random_below=broker.random.randrange,
            new_id=lambda: f"{broker.random.getrandbits(128):032x}",
        )
    except LogDirLockedError as error:
        raise StartupError(
            f"log directory {error.log_dir} is in use by another broker",
            "stop the other broker, or give this one a directory of its own with log.dirs (dev: --data-dir)",
            EXIT_LOCKED,
        ) from error
    except LogDirError as error:
        raise StartupError(
            str(error),
            "make the directory writable, or name another with log.dirs (dev: --data-dir)",
            EXIT_STORAGE,
        ) from error
    except InconsistentMetadataError as error:
        raise StartupError(
            str(error), "give every broker log directories of its own with log.dirs", EXIT_IDENTITY
        ) from error
    except StorageError as error:
        raise StartupError(
            str(error), "repair that file, or restore it from another log directory of this broker", EXIT_STORAGE
        ) from error


CoordinationFailure = t.TreeError | ZnodeError


def coordination_failed(broker: Broker, failure: CoordinationFailure) -> StartupError:
    """Whatever the tree answers on the way that isn't an answer to go on with."""
    connect = broker.config.get_str("zookeeper.connect")
    place = f"ZooKeeper at {connect}" if connect else "the coordination file"
    mend = next((mend for kind, mend in _MENDS if isinstance(failure, kind)), "look at its log, then start again")
    return StartupError(f"{place} failed: {type(failure).__name__}: {failure}", mend, EXIT_COORDINATION)


_MENDS: tuple[tuple[type[CoordinationFailure], str], ...] = (
    (t.NoAuth, "give this broker credentials that may read and write there, or change the ACLs of that znode"),
    (t.AuthFailed, "correct this broker's credentials for ZooKeeper"),
    (t.SystemFailure, "make space on its disk, or repair the disk, then start again"),
    (ZnodeError, "repair or remove that znode"),
)


async def open_tree(broker: Broker) -> Tree:
    """Connect to ZooKeeper, or open the embedded tree in the first log directory."""
    config = broker.config
    session_timeout_ms = config.get_int("zookeeper.session.timeout.ms")
    tree = broker.given_tree
    if tree is None:
        connect = config.get_str("zookeeper.connect")
        tree = _zookeeper(broker, connect, session_timeout_ms) if connect else _embedded(broker, session_timeout_ms)
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


def _zookeeper(broker: Broker, connect: str, session_timeout_ms: int) -> Tree:
    from kpybroker.coordination.zookeeper import ZooKeeperTree

    try:
        return ZooKeeperTree(connect, session_timeout_ms=session_timeout_ms)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"zookeeper.connect={connect} is no address of ZooKeeper: {error.cause}",
            "write it as host:port,host:port/chroot",
            EXIT_CONFIG,
        ) from error


def _embedded(broker: Broker, session_timeout_ms: int) -> Tree:
    from kpybroker.coordination.embedded import EmbeddedStore

    path = Path(broker.logs.live_dirs[0]) / EMBEDDED_TREE_FILE
    try:
        store = EmbeddedStore.open(path, _run_off_loop, broker.clock.time_ms, trio.lowlevel.checkpoint)
    except CoordinationUnavailable as error:
        raise StartupError(
            f"the coordination file {error.place} cannot be opened: {error.cause}",
            "restore it from a copy, or remove it to start over with no topics known",
            EXIT_COORDINATION,
        ) from error
    broker.embedded_store = store
    return store.session(session_timeout_ms)


async def _run_off_loop(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function)


async def agree_on_ids(broker: Broker) -> tuple[str, int]:
    """(cluster id, broker id): as the tree, the configuration and `meta.properties` have them, and all the same."""
    cluster_id = await registration.cluster_id(broker)
    node_id = broker.node_id
    if node_id < 0:
        stored = broker.logs.meta.broker_id
        node_id = stored if stored is not None else await _generated_id(broker)
    try:
        broker.logs.check_meta(cluster_id, node_id)
    except (InconsistentClusterIdError, InconsistentBrokerIdError) as error:
        raise StartupError(
            str(error),
            "use the log directories and coordination that belong together, or start with empty directories",
            EXIT_IDENTITY,
        ) from error
    broker.logs.write_meta(cluster_id, node_id)
    return cluster_id, node_id


async def _generated_id(broker: Broker) -> int:
    if not broker.config.get_bool("broker.id.generation.enable"):
        raise StartupError(
            "broker.id is not set and broker.id.generation.enable is false", "set broker.id", EXIT_CONFIG
        )
    return await registration.generate_broker_id(broker)


async def load_logs(broker: Broker) -> None:
    """Open every log; after an unclean stop this verifies what lies behind the recovery points."""
    try:
        broker.logs.load(broker.configs.topic_config, broker.clock.time_ms())
    except (StorageError, KafkaError) as error:
        raise StartupError(str(error), "repair or replace the log directories", EXIT_STORAGE) from error


def bind(broker: Broker) -> list[BoundListener]:
    """Bind every listener; nothing is accepted yet."""
    bound: list[BoundListener] = []
    backlog = broker.config.get_int("socket.listen.backlog.size")
    for endpoint in broker.config.listeners:
        try:
            listener = broker.transport.listen(endpoint.host, endpoint.port, backlog)
        except OSError as error:
            for other in bound:
                other.listener.close()
            raise _bind_error(endpoint.host, endpoint.port, error) from error
        bound.append(BoundListener(endpoint.listener_name, endpoint.security_protocol, listener))
    return bound


def _bind_error(host: str, port: int, error: OSError) -> StartupError:
    place = f"{host or '*'}:{port}"
    if error.errno == errno.EADDRINUSE:
        return StartupError(
            f"port {port} is taken: {place} cannot be bound",
            "stop the program that holds it, or choose another with listeners (dev: --port N, 0 for a free one)",
            EXIT_PORT,
        )
    reason = error.strerror or str(error)
    return StartupError(f"{place} cannot be bound: {reason}", "correct the host in listeners (dev: --host)", EXIT_PORT)


async def register(broker: Broker) -> None:
    try:
        await broker.control.register()
    except registration.BrokerIdTaken as error:
        raise StartupError(str(error), "give this broker an id of its own with broker.id", EXIT_IDENTITY) from error


async def elect(broker: Broker) -> None:
    try:
        await broker.control.elect()
    except KafkaError as error:
        # The controller's queue was emptied under the start: its session has ended.
        raise t.SessionExpired(message="while a controller was elected") from error
