"""One broker: its parts, and the order in which they start and stop.

The start is that of Kafka's ``KafkaServer.startup``: lock the log directories, open the tree, agree on the ids, load
the logs, bind the listeners, register, elect a controller, serve. A failure on the way is a `StartupError` with its
cause and its fix. All state is in the `Broker`, so that several of them can run in one process.

Only this module knows every part. The parts know their `Host`, and the few others that they are given here.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.client_metrics.received import ReceivedMetrics
from kpybroker.broker.client_metrics.service import ClientMetrics
from kpybroker.broker.cluster import loggers
from kpybroker.broker.cluster.config_repository import CLIENT_TYPES, ConfigRepository
from kpybroker.broker.cluster.controller import ClusterController
from kpybroker.broker.cluster.features import Features, UnsupportedFeatures
from kpybroker.broker.cluster.metadata_cache import MetadataCache
from kpybroker.broker.cluster.producer_ids import ProducerIds
from kpybroker.broker.cluster.registration import Registration, SpaceEvents, announce_log_dir_failure
from kpybroker.broker.cluster.topic_admin import TopicAdmin
from kpybroker.broker.coordinators.coordinators import Coordinators
from kpybroker.broker.handlers import routes
from kpybroker.broker.lifecycle import startup
from kpybroker.broker.lifecycle.controlled_shutdown import controlled_shutdown
from kpybroker.broker.lifecycle.errors import EXIT_STORAGE, StartupError
from kpybroker.broker.lifecycle.open_tree import close_coordination, coordination_failed, make_tree, start_tree
from kpybroker.broker.lifecycle.state import BrokerState
from kpybroker.broker.loop.clock import Clock, SystemClock
from kpybroker.broker.loop.poller import measure, measure_no_more
from kpybroker.broker.loop.slow_work import SlowWork
from kpybroker.broker.loop.stall import LoopStallGauge
from kpybroker.broker.maintenance import background
from kpybroker.broker.maintenance.roll_flusher import RollFlusher
from kpybroker.broker.network.handshakes import Tls
from kpybroker.broker.network.transport import Transport, socket_transport
from kpybroker.broker.peers.peers import Directory, Peers
from kpybroker.broker.replication.fetch_service import FetchService
from kpybroker.broker.replication.replicas import ReplicaEvents, Replicas
from kpybroker.broker.requests.clients import FirstTimes
from kpybroker.broker.requests.connection import BoundListener, Gate
from kpybroker.broker.requests.dispatch import Dispatcher, RespondNow
from kpybroker.broker.requests.log_fields import write_counts
from kpybroker.broker.requests.served.release import release_served
from kpybroker.broker.requests.server import Server
from kpybroker.broker.requests.state_budget import state_budget
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import AllowAll, Authorizer
from kpybroker.core.features import SUPPORTED, Ranges
from kpybroker.core.log.header_trust import CaughtClients
from kpybroker.core.tree import SystemFailure, TreeError
from kpybroker.storage.disk.files import Files
from kpybroker.storage.disk.local_files import local_files
from kpybroker.wire.znodes import CONFIG_CLIENT_METRICS, CONFIG_GROUPS, ZnodeError

if TYPE_CHECKING:
    from kpybroker.broker.coordinators.groups import GroupCoordinators
    from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers
    from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier
    from kpybroker.broker.coordinators.transactions import TransactionCoordinators
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.maintenance.log_cleaner import LogCleaner
    from kpybroker.broker.metrics.metrics import Metrics
    from kpybroker.broker.security.acls import Acls
    from kpybroker.broker.security.tokens import DelegationTokens
    from kpybroker.coordination.embedded import EmbeddedStore
    from kpybroker.coordination.tree import Tree
    from kpybroker.core.security.quotas import ClientQuotas
    from kpybroker.core.tree import TreeEvent
    from kpybroker.storage.directories.manager import LogManager
    from kpybroker.storage.disk.errors import LogDirError

logger = logging.getLogger("kafka.server.KafkaServer")
request_log = logging.getLogger("kafka.request.logger")

STOP_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Seams:
    """What tests replace; by default everything is the real one. `intercept` makes what responds to requests in place
    of the dispatcher alone. `features`: what the broker supports in place of what this build does.
    """

    clock: Clock | None = None
    transport: Transport | None = None
    files: Files | None = None
    tree: Tree | Callable[[Host], Tree] | None = None
    seed: int | None = None
    intercept: Callable[[Broker], RespondNow] | None = None
    features: Ranges | None = None


class Broker:
    """Use `Broker.open`."""

    tree: Tree
    logs: LogManager
    cluster_id: str
    peers: Peers
    controller: ClusterController
    coordinators: Coordinators

    def __init__(self, config: BrokerConfig, seams: Seams) -> None:
        self.config = config
        self.clock: Clock = seams.clock or SystemClock()
        self.transport: Transport = seams.transport or socket_transport(config)
        self.files: Files = seams.files or local_files()
        self.random = random.Random(seams.seed)
        self.authorizer: Authorizer = AllowAll()
        self.acls: Acls | None = None
        self.quotas: ClientQuotas | None = None
        self.budget = state_budget(config)
        self.stall = LoopStallGauge()
        self.slow_work = SlowWork()
        self.node_id = config.get_int("broker.id")
        self.bound: list[BoundListener] = []
        self.embedded_store: EmbeddedStore | None = None
        self.tokens: DelegationTokens | None = None
        self.fatal: StartupError | None = None
        self.state = BrokerState.NOT_RUNNING
        self._given_tree = seams.tree
        self._stop_requested = trio.Event()
        self._tree_listeners: list[Callable[[TreeEvent], None]] = []
        self._nursery: trio.Nursery | None = None
        self._is_serving = False
        self._hands_over = True
        self._has_crashed = False
        self._responds_unlogged: RespondNow | None = None  # in place of the request log, once that is off again

        self.first_times = FirstTimes()
        self.caught_clients = CaughtClients()
        self.dispatcher = Dispatcher(self, routes.load)
        self.received_metrics = ReceivedMetrics(self)
        self.client_metrics = ClientMetrics(self, self.received_metrics)
        self.server = Server(config, self.dispatcher, self.clock, self._disconnected)
        self.metadata = MetadataCache(config)
        supported, self.dispatcher.cap_of = release_served(
            config, SUPPORTED if seams.features is None else seams.features
        )
        self.features = Features(self, self.metadata, supported, self._features_unsupported)
        self.configs = ConfigRepository(self)
        for entity_type in CLIENT_TYPES:
            self.configs.follow(entity_type, partial(self._entity_changed, entity_type))
        self.producer_ids = ProducerIds(self)
        self.registration = Registration(self, lambda: self.bound, supported)
        directory = Directory(self.metadata.inter_broker_address, lambda: self.controller.controller_id)
        self.peers = Peers(self, self.transport, directory, partial(routes.respond_locally, self))
        self._roll_flusher = RollFlusher(self)
        self.flush_soon = self._roll_flusher.flush_soon
        self.replicas = Replicas(self, self.metadata, self.configs, self.peers, self._replica_events())
        self.fetch_service = FetchService(self, self.metadata, self.replicas)
        self.controller = ClusterController(self, self.registration, self.configs, self.peers)
        self.topics = TopicAdmin(self, self.metadata, self.controller.wait_until_deleted)
        self.coordinators = Coordinators(self, self.metadata, self.producer_ids, self.peers, self.replicas, self.topics)
        self.configs.follow(CONFIG_GROUPS, self.coordinators.group_configs.update)
        self.configs.follow(CONFIG_CLIENT_METRICS, self.client_metrics.update)
        self.metrics = self._make_metrics()
        if seams.intercept is not None:
            self.dispatcher.respond_now = seams.intercept(self)

    # --- life

    @classmethod
    @asynccontextmanager
    async def open(cls, config: BrokerConfig, **seams: Any) -> AsyncIterator[Broker]:
        """A broker that serves for the length of the block; `seams` as of `Seams`. Raises StartupError if it cannot
        start.
        """
        broker = cls(config, Seams(**seams))
        failure: StartupError | None = None
        async with trio.open_nursery() as nursery:
            broker._nursery = nursery
            try:
                try:
                    await broker._start()
                except (TreeError, ZnodeError) as error:
                    raise coordination_failed(config, error) from error
                yield broker
            except StartupError as error:
                failure = error
            finally:
                loggers.forget(broker)
                if broker._is_serving and broker._hands_over:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_SECONDS_MAX):
                        await controlled_shutdown(broker, broker.metadata, broker.peers)
                with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_SECONDS_MAX):
                    await (broker._reset() if broker._has_crashed else broker._stop())
                nursery.cancel_scope.cancel()
        if broker._has_crashed:
            await broker._abandon()
        if failure is not None:
            raise failure

    async def _start(self) -> None:
        measure(self.stall)
        self.state = BrokerState.STARTING
        if self.metrics is not None:
            self.metrics.prepare()
        self.tokens = self._make_tokens()
        gates = self._make_gates()
        self.logs = startup.lock_log_dirs(self)
        self.tree = await self._open_tree()
        self.cluster_id, self.node_id = await startup.agree_on_ids(self)
        self.metadata.local_broker_id = self.node_id
        with startup.features_supported(self.config):
            await self.features.start()
        await self.configs.start()
        if self.config.get_str("authorizer.class.name"):
            from kpybroker.broker.lifecycle.authorizer import open_authorizer

            self.acls, self.authorizer = await open_authorizer(self)
        tls = self._make_tls()
        if self.config.get_str("kpybroker.scram.initial.users"):
            from kpybroker.broker.lifecycle.logins import create_users

            await create_users(self, self.configs)
        if self.tokens is not None:
            await self.tokens.start()
        self.state = BrokerState.RECOVERY
        await startup.load_logs(self, self.configs)
        self.bound = startup.bind(self.config, self.transport, gates, tls)
        await startup.register(self.registration)
        await startup.elect(self.controller)
        with startup.features_supported(self.config):
            await self.features.read()  # the controller has just written them, if the cluster is new
        self.features.say_what_could_be_raised()
        self._log_requests()
        loggers.on_change(self, self._log_requests)
        background.start(self, self.replicas, lambda: self.log_cleaner)
        self.spawn("kafka-log-flush-on-roll", self._roll_flusher.run)
        if self.embedded_store is not None:
            self.spawn("coordination-file-presence", self._watch_file, self.embedded_store)
        assert self._nursery is not None
        self._nursery.start_soon(self.server.serve, self.bound)
        if self.metrics is not None:
            self.metrics.start()
        self._is_serving = True
        self.state = BrokerState.RUNNING
        logger.info("[KafkaServer id=%d] started", self.node_id)

    async def _watch_file(self, store: EmbeddedStore) -> None:
        """Stop when the file of the embedded tree was taken away, and cannot be written again."""
        while True:
            await trio.sleep(background.PRESENCE_LOOK_S)
            try:
                store.check_file()
            except SystemFailure as failure:
                self.fatal = coordination_failed(self.config, failure)
                logger.error("[KafkaServer id=%d] %s", self.node_id, self.fatal)
                self.stop()
                return

    def _features_unsupported(self, failure: UnsupportedFeatures) -> None:
        """Stop: this broker would not understand what the others do from now on."""
        self.fatal = startup.features_not_supported(failure, self.config)
        logger.error("[KafkaServer id=%d] %s", self.node_id, self.fatal)
        self.stop()

    def _make_tls(self) -> Mapping[str, Tls]:
        """Of the listeners with TLS; only they need what is imported here."""
        if not any(protocol.endswith("SSL") for _, protocol, *_ in self.config.listeners):
            return {}
        from kpybroker.broker.lifecycle.encryption import make_peer_tls, make_tls

        self.peers.secure = make_peer_tls(self.config, self.configs)
        return make_tls(self.config, self.configs)

    def _make_gates(self) -> Mapping[str, Gate]:
        """Of the listeners whose clients log in by SASL; only they need what is imported here."""
        if not any(protocol.startswith("SASL_") for _, protocol, *_ in self.config.listeners):
            return {}
        from kpybroker.broker.lifecycle.logins import login_on, make_gates

        self.peers.login_on = partial(login_on, self.config)
        token_of = None if self.tokens is None else self.tokens.token_login
        return make_gates(self, self.dispatcher, self.configs, token_of)

    def _replica_events(self) -> ReplicaEvents:
        return ReplicaEvents(
            elected=lambda partition: self.coordinators.on_elected(partition),
            resigned=lambda partition: self.coordinators.on_resigned(partition),
            log_deleted=self._log_deleted,
            segment_rolled=self.flush_soon,
            lacked_space=SpaceEvents(self).lacked,
        )

    def _make_metrics(self) -> Metrics | None:
        """None where no one asks for them; only other brokers need what is imported here."""
        config = self.config
        is_served = config.get("kpybroker.metrics.port") is not None
        if not is_served and not config.reports_to_graphite and not config.get_str("kpybroker.otlp.endpoint"):
            return None
        from kpybroker.broker.metrics.metrics import Metrics

        return Metrics(self)

    def _make_tokens(self) -> DelegationTokens | None:
        """None without a key that signs them."""
        if not self.config.get("delegation.token.secret.key") and not self.config.get("delegation.token.master.key"):
            return None
        from kpybroker.broker.security.tokens import DelegationTokens, secret_key

        key = secret_key(self.config)
        return None if key is None else DelegationTokens(self, key, lambda after: self.controller.next_term(after))

    async def _open_tree(self) -> Tree:
        tree = self._given_tree
        if tree is None:
            tree, self.embedded_store = make_tree(self)
        elif callable(tree):
            tree = tree(self)
        tree.listen(self._tree_event)
        await start_tree(tree, self.config)
        return tree

    async def _stop(self) -> None:
        """Of a broker that has served, and without a word of one that failed to start: its cause is what matters."""
        if self._is_serving:
            logger.info("[KafkaServer id=%d] shutting down", self.node_id)
        self.state = BrokerState.SHUTTING_DOWN
        for bound in self.bound:
            bound.listener.close()
        # Connections are closed before the parts that serve them, as in KafkaServer.shutdown: clients that get the
        # response "coordinator not available" would look for another one, on connections that are about to end.
        await self.server.stop()
        await self._close_parts()
        if self.metrics is not None:
            self.metrics.close()
        measure_no_more(self.stall)
        write_counts(is_end=True)
        if self._is_serving:
            logger.info("[KafkaServer id=%d] shut down completed", self.node_id)

    def _log_requests(self) -> None:
        """Begin or end the request log, as its level says."""
        if request_log.isEnabledFor(logging.DEBUG) == (self._responds_unlogged is not None):
            return
        if self._responds_unlogged is not None:
            self.server.respond_with(self._responds_unlogged)
            self._responds_unlogged = None
            return
        from kpybroker.broker.requests.log.request_logger import RequestLogger

        self._responds_unlogged = self.dispatcher.respond_now
        self.server.respond_with(RequestLogger(self._responds_unlogged).respond_now)

    async def _close_parts(self) -> None:
        """The reverse of the start, as far as the start got."""
        if self._has("log_cleaner"):
            await self.log_cleaner.stop()
        self.coordinators.stop()
        await self.replicas.fetchers.stop()
        await self.controller.close()
        if self._has("logs"):
            self.logs.shutdown(self.broker_epoch)
        for part in (self.tree if self._has("tree") else None, self.embedded_store):
            if part is not None:
                await close_coordination(part, self.node_id)

    def _has(self, name: str) -> bool:
        return name in self.__dict__

    def stop(self, *, hand_over: bool = True) -> None:
        """Request an orderly stop: `wait_stop_requested` returns.

        Without `hand_over` there is no controlled shutdown: the other brokers of the cluster stop too.
        """
        self._hands_over = self._hands_over and hand_over
        if self._hands_over and self.state is BrokerState.RUNNING:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        self._stop_requested.set()

    def crash(self) -> None:
        """End as a process that is killed, for tests: connections are reset and nothing more is written.

        The next start recovers the logs. The session in the tree ends at once.
        """
        self._has_crashed = True
        self.stop(hand_over=False)

    async def _reset(self) -> None:
        logger.warning("[KafkaServer id=%d] killed", self.node_id)
        for bound in self.bound:
            bound.listener.close()
        await self.server.reset()
        if self.metrics is not None:
            self.metrics.close()
        measure_no_more(self.stall)

    async def _abandon(self) -> None:
        """After every task has ended: release files, locks and the session, and write nothing."""
        with trio.CancelScope(shield=True):
            if self._has("logs"):
                self.logs.abandon()
            if self._has("tree"):
                await close_coordination(self.tree, self.node_id)
            if self.embedded_store is not None:
                await close_coordination(self.embedded_store, self.node_id)

    async def wait_stop_requested(self) -> None:
        """Return after `stop`, or when the broker cannot go on: then `fatal` says why."""
        await self._stop_requested.wait()

    # --- for the parts

    @property
    def groups(self) -> GroupCoordinators:
        """See `Coordinators.groups`."""
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinators:
        """See `Coordinators.transactions`."""
        return self.coordinators.transactions

    @property
    def markers(self) -> TransactionMarkers:
        """See `Coordinators.markers`."""
        return self.coordinators.markers

    @property
    def verifier(self) -> TransactionVerifier:
        """See `Coordinators.verifier`."""
        return self.coordinators.verifier

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's present registration (KIP-380); -1 before the first."""
        return self.registration.broker_epoch

    @cached_property
    def log_cleaner(self) -> LogCleaner:
        """Built once there is a compacted log."""
        from kpybroker.broker.maintenance.log_cleaner import LogCleaner

        return LogCleaner(self, self.configs, self.replicas)

    @property
    def cleaner(self) -> LogCleaner | None:
        """None while there was never a compacted log."""
        return self.log_cleaner if self._has("log_cleaner") else None

    @property
    def is_compacting(self) -> bool:
        """Whether a log is being compacted now."""
        return self._has("log_cleaner") and self.log_cleaner.is_busy

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Run a supervised background task until the broker stops."""
        assert self._nursery is not None, "the broker is not running"
        self._nursery.start_soon(background.supervised, self, name, lambda: function(*args), name=name)

    def on_tree_event(self, listener: Callable[[TreeEvent], None]) -> None:
        """Call `listener`, which must not block, with every event of the tree, in order."""
        self._tree_listeners.append(listener)

    def _tree_event(self, event: TreeEvent) -> None:
        for listener in self._tree_listeners:
            listener(event)

    def _entity_changed(self, entity_type: str, entity: str, props: Mapping[str, str]) -> None:
        """A configuration of users, client ids or addresses: imported by brokers that have one."""
        from kpybroker.broker.security import quotas

        quotas.apply(self, self.server.limits, quotas.Change(entity_type, entity, props))
        self.dispatcher.meter_requests(self.quotas)

    def _disconnected(self, connection_id: str) -> None:
        self.client_metrics.disconnected(connection_id)
        self.coordinators.disconnected(connection_id)

    def _log_deleted(self) -> None:
        """Have its cleaner checkpoint removed soon: it must not apply to another log of the same name."""
        if self._has("log_cleaner"):
            self.log_cleaner.wake()

    def log_dir_failed(self, error: LogDirError) -> None:
        """Take the directory and everything in it offline; the broker stops after its last directory."""
        logger.error("[KafkaServer id=%d] %s", self.node_id, error)
        self.logs.take_offline(error.log_dir, error.cause)
        self.replicas.log_dir_failed(error.log_dir)
        if not self.logs.dirs.live:
            reason = f"all log directories have failed; the last one: {error}"
            self.fatal = StartupError(reason, error.fix, EXIT_STORAGE)
            self.stop()
        elif self._nursery is not None:
            self.spawn("log-dir-event", announce_log_dir_failure, self)
