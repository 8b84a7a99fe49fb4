"""One broker: its parts, the order they start and stop in, and the four seams they work through.

Start, as Kafka's `KafkaServer.startup`: lock the log directories, open the tree, agree on the cluster id, load the
logs, bind the listeners, register, elect a controller, serve. Whatever goes wrong on the way is a `StartupError` with
its cause and its fix. A Broker keeps everything it owns in itself, so that several live in one process.
"""

from __future__ import annotations

import gc
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.cluster.config_repository import ConfigRepository
from kpybroker.broker.cluster.controller import ClusterController
from kpybroker.broker.cluster.metadata_cache import MetadataCache
from kpybroker.broker.cluster.producer_ids import ProducerIds
from kpybroker.broker.handlers import routes
from kpybroker.broker.lifecycle import startup
from kpybroker.broker.lifecycle.open_tree import coordination_failed, open_tree
from kpybroker.broker.lifecycle.startup import StartupError
from kpybroker.broker.loop.clock import Clock, SystemClock
from kpybroker.broker.loop.poller import measure, measure_no_more
from kpybroker.broker.loop.stall import LoopStallGauge
from kpybroker.broker.maintenance.background import TASKS, supervised, tolerate_storage_failures
from kpybroker.broker.network.transport import SocketTransport, Transport
from kpybroker.broker.peers.broker_channels import ask_once
from kpybroker.broker.replication.fetch_service import FetchService
from kpybroker.broker.replication.links import Links
from kpybroker.broker.replication.replicas import ReplicaEvents, Replicas
from kpybroker.broker.requests.dispatch import Dispatcher
from kpybroker.broker.requests.server import BoundListener, Server
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.shortcuts import chosen
from kpybroker.core.authorizer import AllowAll, Authorizer
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME
from kpybroker.core.tree import SystemFailure, TreeError
from kpybroker.storage.disk.files import Files, OsFiles
from kpybroker.wire.znodes import ZnodeError

if TYPE_CHECKING:
    from kpybroker.broker.coordinators.groups import GroupCoordinators
    from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers
    from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier
    from kpybroker.broker.coordinators.transactions import TransactionCoordinators
    from kpybroker.broker.maintenance.log_cleaner import LogCleaner
    from kpybroker.broker.peers.connection import PeerConnection
    from kpybroker.broker.peers.controller_channel import ControllerChannel
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.coordination.embedded import EmbeddedStore
    from kpybroker.coordination.tree import Tree
    from kpybroker.core.tree import TreeEvent
    from kpybroker.storage.directories.manager import LogManager
    from kpybroker.storage.disk.errors import LogDirError
    from kpybroker.wire.api import ApiKey

log = logging.getLogger("kafka.server.KafkaServer")

VALIDATION_THREADS_MAX = 1
"""Threads that validate records: each takes the interpreter's lock from the loop every few milliseconds."""

FLUSHES_WAITING_MAX = 10_000
STOP_SECONDS_MAX = 30.0


class Broker:
    """`clock`, `transport`, `files` and `tree` are the seams; those not given are the real ones."""

    tree: Tree
    logs: LogManager
    cluster_id: str

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        transport: Transport | None = None,
        files: Files | None = None,
        tree: Tree | None = None,
        seed: int | None = None,
    ) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.transport: Transport = transport or SocketTransport(
            config.get_int("socket.send.buffer.bytes"),
            config.get_int("socket.receive.buffer.bytes"),
            chosen(config.get_list("kpybroker.shortcuts")),
        )
        self.files: Files = files or OsFiles()
        self.given_tree = tree
        self.embedded_store: EmbeddedStore | None = None
        self.random = random.Random(seed)
        self.authorizer: Authorizer = AllowAll()
        self.stall = LoopStallGauge()
        self.validation_threads = trio.CapacityLimiter(VALIDATION_THREADS_MAX)
        self.node_id = config.get_int("broker.id")
        self.bound: list[BoundListener] = []
        self.fatal: StartupError | None = None
        self._stop_asked = trio.Event()
        self._tree_listeners: list[Callable[[TreeEvent], None]] = []
        self._flushes: dict[Partition, None] = {}
        self._flush_asked = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._is_serving = False

        self.load_handler = routes.load
        self.dispatcher = Dispatcher(self, routes.load)
        self.server = Server(config, self.dispatcher, self.clock)
        self.metadata = MetadataCache(config)
        self.configs = ConfigRepository(self)
        self.producer_ids = ProducerIds(self)
        links = Links(self._connection_to, self._controller_channel)
        events = ReplicaEvents(self.on_elected, self.on_resigned, self.log_deleted, self.flush_soon)
        self.replicas = Replicas(self, self.metadata, self.configs, links, events)
        self.fetch_service = FetchService(self, self.metadata, self.replicas)
        self.controller = ClusterController(self)
        self.topics = self.controller.topics

    # --- life

    @classmethod
    @asynccontextmanager
    async def open(cls, config: BrokerConfig, **seams: Any) -> AsyncIterator[Broker]:
        """A running broker for the length of the block. Raises StartupError when it can't start."""
        broker = cls(config, **seams)
        failure: StartupError | None = None
        async with trio.open_nursery() as nursery:
            broker._nursery = nursery
            try:
                try:
                    await broker._start()
                except (TreeError, ZnodeError) as error:
                    raise coordination_failed(broker, error) from error
                yield broker
            except StartupError as error:
                failure = error
            finally:
                if broker._is_serving:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_SECONDS_MAX):
                        await broker._give_leaderships_away()
                with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_SECONDS_MAX):
                    await broker._stop()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _start(self) -> None:
        measure(self.stall)
        self.logs = startup.lock_log_dirs(self)
        self.tree = await open_tree(self)
        self.cluster_id, self.node_id = await startup.agree_on_ids(self)
        await self.configs.start()
        await startup.load_logs(self)
        self.bound = startup.bind(self)
        await startup.register(self)
        await startup.elect(self)
        for name, task in TASKS.items():
            self.spawn(name, task, self)
        self.spawn("kafka-log-flush-on-roll", self._flush_on_roll)
        assert self._nursery is not None
        self._nursery.start_soon(self.server.serve, self.bound)
        self._is_serving = True
        gc.freeze()
        log.info("[KafkaServer id=%d] started", self.node_id)

    async def _give_leaderships_away(self) -> None:
        from kpybroker.broker.lifecycle.controlled_shutdown import controlled_shutdown

        await controlled_shutdown(self)

    async def _stop(self) -> None:
        log.info("[KafkaServer id=%d] shutting down", self.node_id)
        for bound in self.bound:
            bound.listener.close()
        # Clients lose their connections before anything they ask is closed, as in KafkaServer.shutdown: told that the
        # coordinator is not available they would look for another one, on connections that are about to end.
        await self.server.stop()
        await self._close_parts()
        measure_no_more(self.stall)
        log.info("[KafkaServer id=%d] shut down completed", self.node_id)

    async def _close_parts(self) -> None:
        """The reverse of the start, as far as it came."""
        if self._has("log_cleaner"):
            await self.log_cleaner.stop()
        if self._has("transactions"):
            self.transactions.stop()
        if self._has("groups"):
            self.groups.stop()
        await self.replicas.fetchers.stop()
        await self.controller.close()
        if self._has("logs"):
            self.logs.shutdown(self.controller.broker_epoch)
        for part in (self.tree if self._has("tree") else None, self.embedded_store):
            if part is not None:
                await self._end_coordination(part)

    async def _end_coordination(self, part: Tree | EmbeddedStore) -> None:
        """A full or failing disk makes no other stop: what was answered was on disk before, and ephemeral nodes that
        could not be removed now are removed when the file is opened next."""
        try:
            await part.close()
        except SystemFailure as failure:
            log.warning("[KafkaServer id=%d] The end of the session was not saved: %s", self.node_id, failure)

    def _has(self, name: str) -> bool:
        return name in self.__dict__

    def stop(self) -> None:
        """Ask for an orderly stop; `wait_stop_asked` returns."""
        self._stop_asked.set()

    async def wait_stop_asked(self) -> None:
        """Until `stop`, or until the broker can't go on; `fatal` then says why."""
        await self._stop_asked.wait()

    # --- what the parts use

    @cached_property
    def groups(self) -> GroupCoordinators:
        """Built when the first group or offset is asked for: its machine is a tenth of all that a start imports."""
        from kpybroker.broker.coordinators.groups import GroupCoordinators

        return GroupCoordinators(self, self.metadata, self.replicas)

    @cached_property
    def transactions(self) -> TransactionCoordinators:
        """Built when the first transaction is asked for, or its log is led."""
        from kpybroker.broker.coordinators.transactions import TransactionCoordinators

        return TransactionCoordinators(self, self.metadata, self.replicas, self.producer_ids, self.markers)

    @cached_property
    def markers(self) -> TransactionMarkers:
        """Built when the first transaction ends."""
        from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers

        return TransactionMarkers(
            self,
            self.metadata,
            self.replicas,
            self.ask_peer,
            lambda *completed: self.groups.on_transaction_completed(*completed),
        )

    @cached_property
    def verifier(self) -> TransactionVerifier:
        """Built when the first transactional batch arrives."""
        from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier

        return TransactionVerifier(self, self.metadata, self.replicas, self.ask_peer, lambda: self.transactions)

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's present registration (KIP-380); -1 before the first."""
        return self.controller.broker_epoch

    async def ask_peer(self, broker_id: int, api_key: ApiKey, message: Any, version: int) -> Any:
        """Another broker's answer. Raises OSError where it cannot be had, ProtocolError where it is none."""
        return await ask_once(self, broker_id, api_key, message, version)

    def _connection_to(self, broker_id: int, client_id: str) -> PeerConnection:
        """Imported here: a single broker needs none."""
        from kpybroker.broker.peers.connection import PeerConnection

        return PeerConnection(self, broker_id, client_id)

    def _controller_channel(self, name: str) -> ControllerChannel:
        from kpybroker.broker.peers.controller_channel import ControllerChannel

        return ControllerChannel(self, name)

    @cached_property
    def log_cleaner(self) -> LogCleaner:
        """Built when there is a compacted log."""
        from kpybroker.broker.maintenance.log_cleaner import LogCleaner

        return LogCleaner(self)

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Run a supervised background task until the broker stops."""
        assert self._nursery is not None, "the broker is not running"
        self._nursery.start_soon(supervised, self, name, lambda: function(*args), name=name)

    def on_tree_event(self, listener: Callable[[TreeEvent], None]) -> None:
        """Hear every event of the tree, in order; a listener must not block."""
        self._tree_listeners.append(listener)

    def tree_event(self, event: TreeEvent) -> None:
        for listener in self._tree_listeners:
            listener(event)

    def on_elected(self, partition: Partition) -> None:
        if partition.topic == GROUP_METADATA_TOPIC_NAME:
            self.groups.on_elected(partition.index, partition.leader_epoch)
        elif partition.topic == TRANSACTION_STATE_TOPIC_NAME:
            self.transactions.on_elected(partition.index, partition.leader_epoch)

    def on_resigned(self, partition: Partition) -> None:
        if partition.topic == GROUP_METADATA_TOPIC_NAME:
            self.groups.on_resigned(partition.index, partition.leader_epoch)
        elif partition.topic == TRANSACTION_STATE_TOPIC_NAME:
            self.transactions.on_resigned(partition.index, partition.leader_epoch)

    def log_deleted(self) -> None:
        """Its cleaner checkpoint is to go soon, lest it be taken for that of another log of the same name."""
        if self._has("log_cleaner"):
            self.log_cleaner.wake()

    def flush_soon(self, partition: Partition) -> None:
        """A segment was rolled: bring it to disk beside the requests."""
        if len(self._flushes) < FLUSHES_WAITING_MAX:
            self._flushes[partition] = None
            self._flush_asked.set()

    async def _flush_on_roll(self) -> None:
        while True:
            await self._flush_asked.wait()
            self._flush_asked = trio.Event()
            while self._flushes:
                partition = next(iter(self._flushes))
                del self._flushes[partition]
                if partition.log is not None:
                    with tolerate_storage_failures(self):
                        await partition.flush(partition.log.active_segment.base_offset)

    def log_dir_failed(self, error: LogDirError) -> None:
        """Take the directory and all that lies in it offline; the broker ends with its last directory."""
        log.error("[KafkaServer id=%d] %s", self.node_id, error)
        self.logs.take_offline(error.log_dir, error.cause)
        self.replicas.log_dir_failed(error.log_dir)
        if not self.logs.dirs.live:
            self.fatal = StartupError(
                f"all log directories have failed; the last one: {error}",
                "repair or replace the disk, then start again",
                startup.EXIT_STORAGE,
            )
            self.stop()
        elif self._nursery is not None:
            self.spawn("log-dir-event", self.controller.announce_log_dir_failure)
