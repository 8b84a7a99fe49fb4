"""The steps of a broker's start. Whatever fails in one becomes a `StartupError` with its cause and its fix.

`app` has their order. The step that opens the tree is in `open_tree`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kpybroker.broker.cluster.features import UnsupportedFeatures
from kpybroker.broker.cluster.registration import BrokerIdTaken, generate_broker_id
from kpybroker.broker.cluster.registration import cluster_id as read_cluster_id
from kpybroker.broker.lifecycle.errors import (
    EXIT_CONFIG,
    EXIT_IDENTITY,
    EXIT_LOCKED,
    EXIT_PORT,
    EXIT_STORAGE,
    StartupError,
)
from kpybroker.broker.network.handshakes import Tls
from kpybroker.broker.requests.connection import BoundListener, Gate
from kpybroker.config.keys.own import KAFKA_VERSION
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
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.cluster.controller import ClusterController
    from kpybroker.broker.cluster.registration import Registration
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.network.transport import Transport
    from kpybroker.config.broker import BrokerConfig


def lock_log_dirs(host: Host) -> LogManager:
    """Create and lock the log directories and read which cluster and broker they belong to."""
    config = host.config
    try:
        return LogManager(
            host.files,
            config.log_dirs,
            LogSettings(
                check_every_record=config.get_bool("kpybroker.validate.records"), random_below=host.random.randrange
            ),
            new_id=lambda: f"{host.random.getrandbits(128):032x}",
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
            str(error), "repair that file, or remove it: it is written again with the ids of this broker", EXIT_STORAGE
        ) from error


async def agree_on_ids(host: Host) -> tuple[str, int]:
    """(cluster id, broker id), on which the tree, the configuration and `meta.properties` agree."""
    cluster_id = await read_cluster_id(host.tree, host.random, host.config.get_str("kpybroker.new.cluster.id"))
    node_id = host.node_id
    if node_id < 0:
        stored = host.logs.dirs.meta.broker_id
        node_id = stored if stored is not None else await _generated_id(host)
    try:
        host.logs.dirs.check_meta(cluster_id, node_id)
    except (InconsistentClusterIdError, InconsistentBrokerIdError) as error:
        raise StartupError(
            str(error),
            "use the log directories and coordination that belong together, or start with empty directories",
            EXIT_IDENTITY,
        ) from error
    host.logs.dirs.write_meta(cluster_id, node_id)
    return cluster_id, node_id


async def _generated_id(host: Host) -> int:
    if not host.config.get_bool("broker.id.generation.enable"):
        raise StartupError(
            "broker.id is not set and broker.id.generation.enable is false", "set broker.id", EXIT_CONFIG
        )
    return await generate_broker_id(host)


async def load_logs(host: Host, configs: ConfigRepository) -> None:
    """Open every log; after an unclean stop this recovers what follows the recovery points."""
    _follow_producer_rules(host, configs)
    _follow_cordoned(host, configs)
    try:
        host.logs.load(configs.topic_config, host.clock.time_ms())
    except (StorageError, KafkaError) as error:
        raise StartupError(str(error), "repair or replace the log directories", EXIT_STORAGE) from error


def _follow_producer_rules(host: Host, configs: ConfigRepository) -> None:
    """Kafka's DynamicProducerStateManagerConfig: two keys of the partitions' producer state may change at any time."""

    def apply(_changed: frozenset[str] = frozenset()) -> None:
        host.logs.set_producer_rules(
            producer_id_expiration_ms=host.config.get_int("producer.id.expiration.ms"),
            verification_enabled=host.config.get_bool("transaction.partition.verification.enable"),
        )

    apply()
    configs.on_broker_change(apply)


def _follow_cordoned(host: Host, configs: ConfigRepository) -> None:
    """Log directories may be cordoned, and opened again, at any time."""

    def apply(_changed: frozenset[str] = frozenset()) -> None:
        host.logs.dirs.cordon(host.config.cordoned_log_dirs)

    apply()
    configs.on_broker_change(apply)


def bind(
    config: BrokerConfig, transport: Transport, gates: Mapping[str, Gate], tls: Mapping[str, Tls]
) -> list[BoundListener]:
    """Bind every listener; nothing is accepted yet.

    `gates`: of the listeners that need a login, by their names. `tls`: of those that are encrypted.
    """
    bound: list[BoundListener] = []
    backlog = config.get_int("socket.listen.backlog.size")
    for endpoint in config.listeners:
        try:
            listener = transport.listen(endpoint.host, endpoint.port, backlog)
        except OSError as error:
            for other in bound:
                other.listener.close()
            raise _bind_error(endpoint.host, endpoint.port, error) from error
        name = endpoint.listener_name
        bound.append(BoundListener(name, endpoint.security_protocol, listener, gates.get(name), tls.get(name)))
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


async def register(registration: Registration) -> None:
    """Appear in the cluster as a live broker."""
    try:
        await registration.register()
    except BrokerIdTaken as error:
        fix = (
            "if this broker was killed a moment ago, wait for zookeeper.session.timeout.ms, when the registration of "
            "its former process ends, and start again; otherwise give this broker an id of its own with broker.id"
        )
        raise StartupError(str(error), fix, EXIT_IDENTITY) from error


@contextmanager
def features_supported(config: BrokerConfig) -> Iterator[None]:
    """While what the cluster has finalized is read."""
    try:
        yield
    except UnsupportedFeatures as failure:
        raise features_not_supported(failure, config) from failure


def features_not_supported(failure: UnsupportedFeatures, config: BrokerConfig) -> StartupError:
    """The error of a broker that does not support what its cluster has finalized."""
    lower = " ".join(f"{name}={level}" for name, level in failure.highest.items())
    release = config.get(KAFKA_VERSION)
    if release is None:
        this, other = "this kpybroker does not support", "start the kpybroker that supports it"
    else:
        this = f"this broker, with {KAFKA_VERSION}={release}, does not support"
        other = f"start it without {KAFKA_VERSION} (dev: --kafka-version)"
    return StartupError(
        f"the cluster has finalized {failure}, which {this}",
        f"{other}; to use this one, first lower the level there: kpybroker feature downgrade {lower}",
        EXIT_CONFIG,
    )


async def elect(controller: ClusterController) -> None:
    """Take part in the election; return when the cluster has a controller. Raises SessionExpired."""
    try:
        await controller.elect()
    except KafkaError as error:
        # The session expired during the start, which emptied the controller's queue.
        raise t.SessionExpired(message="while a controller was elected") from error
