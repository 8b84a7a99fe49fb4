"""The steps of a broker's start, each with what can go wrong said in two lines: the cause, and the fix.

Kept apart from `app` so that the order there reads at a glance. The tree is opened in `open_tree`.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from kpybroker.broker.cluster import registration
from kpybroker.broker.requests.server import BoundListener
from kpybroker.core import tree as t
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk.errors import (
    InconsistentBrokerIdError,
    InconsistentClusterIdError,
    InconsistentMetadataError,
    LogDirError,
    LogDirLockedError,
    StorageError,
)
from kpybroker.storage.log.settings import LogSettings
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

EXIT_CONFIG = 2
EXIT_STORAGE = 3
EXIT_LOCKED = 4
EXIT_PORT = 5
EXIT_COORDINATION = 6
EXIT_IDENTITY = 7


class StartupError(Exception):
    """The broker cannot start, or cannot go on: the cause in one line, what fixes it in another."""

    def __init__(self, cause: str, fix: str, exit_code: int) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code


def lock_log_dirs(broker: Broker) -> LogManager:
    """Make and lock the log directories and read who they belong to."""
    config = broker.config
    try:
        return LogManager(
            broker.files,
            config.log_dirs,
            LogSettings(
                check_every_record=config.get_bool("kpybroker.validate.records"), random_below=broker.random.randrange
            ),
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


async def agree_on_ids(broker: Broker) -> tuple[str, int]:
    """(cluster id, broker id): as the tree, the configuration and `meta.properties` have them, and all the same."""
    cluster_id = await registration.cluster_id(broker)
    node_id = broker.node_id
    if node_id < 0:
        stored = broker.logs.dirs.meta.broker_id
        node_id = stored if stored is not None else await _generated_id(broker)
    try:
        broker.logs.dirs.check_meta(cluster_id, node_id)
    except (InconsistentClusterIdError, InconsistentBrokerIdError) as error:
        raise StartupError(
            str(error),
            "use the log directories and coordination that belong together, or start with empty directories",
            EXIT_IDENTITY,
        ) from error
    broker.logs.dirs.write_meta(cluster_id, node_id)
    return cluster_id, node_id


async def _generated_id(broker: Broker) -> int:
    if not broker.config.get_bool("broker.id.generation.enable"):
        raise StartupError(
            "broker.id is not set and broker.id.generation.enable is false", "set broker.id", EXIT_CONFIG
        )
    return await registration.generate_broker_id(broker)


async def load_logs(broker: Broker) -> None:
    """Open every log; after an unclean stop this verifies what lies behind the recovery points."""
    _follow_producer_rules(broker)
    try:
        broker.logs.load(broker.configs.topic_config, broker.clock.time_ms())
    except (StorageError, KafkaError) as error:
        raise StartupError(str(error), "repair or replace the log directories", EXIT_STORAGE) from error


def _follow_producer_rules(broker: Broker) -> None:
    """Kafka's DynamicProducerStateManagerConfig: two keys of the partitions' producer state may change any time."""

    def apply(_changed: frozenset[str] = frozenset()) -> None:
        broker.logs.set_producer_rules(
            producer_id_expiration_ms=broker.config.get_int("producer.id.expiration.ms"),
            verification_enabled=broker.config.get_bool("transaction.partition.verification.enable"),
        )

    apply()
    broker.configs.on_broker_change(apply)


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
        await broker.controller.register()
    except registration.BrokerIdTaken as error:
        raise StartupError(str(error), "give this broker an id of its own with broker.id", EXIT_IDENTITY) from error


async def elect(broker: Broker) -> None:
    try:
        await broker.controller.elect()
    except KafkaError as error:
        # The controller's queue was emptied under the start: its session has ended.
        raise t.SessionExpired(message="while a controller was elected") from error
