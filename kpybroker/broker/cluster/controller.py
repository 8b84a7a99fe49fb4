"""The shell around the controller machine: it runs the machine's procedures on this broker.

One task takes events from one queue and runs their procedures, one at a time, as Kafka's ControllerEventThread. It
performs the effects that a procedure yields (`core.controller.effects`) and knows none of the rules. Watches, responses
of brokers, timers and requests all arrive in that queue. A session that expires empties the queue, ends this broker's
role, and starts over: new session, new registration (and so a new broker epoch), election.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence, Set
from enum import Enum
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.cluster.controller_stats import ControllerStats
from kpybroker.broker.cluster.registration import random_uuid
from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.peers.broker_channels import ControlRequest
from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.core.controller import cluster, effects, events
from kpybroker.core.controller.effects import Procedure, Settings
from kpybroker.core.controller.events import Signal
from kpybroker.core.controller.machine import Controller, event_for_watch
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.cluster.registration import Registration
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.config.topic import LogConfig

logger = logging.getLogger(effects.CONTROLLER_LOGGER)
state_log = logging.getLogger(effects.STATE_CHANGE_LOGGER)

OPS_PER_SUBMISSION = 250
UNCLEAN = "unclean.leader.election.enable"

DELIVERY_WAIT_S = 1.0


class ShellSignal(Enum):
    """Events that the shell handles itself, in the order of the queue."""

    NEW_SESSION = "NewSession"
    """After `EXPIRE`: open a session, register, elect."""


ShellEvent = events.Event | ShellSignal


class _Queued:
    """One event in the queue, and the result of its procedure."""

    __slots__ = ("_done", "_failure", "_result", "event", "queued_at")

    def __init__(self, event: ShellEvent) -> None:
        self.event = event
        self.queued_at = trio.current_time()
        self._done = trio.Event()
        self._result: Any = None
        self._failure: BaseException | None = None

    def finish(self, result: Any) -> None:
        self._result = result
        self._done.set()

    def fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._done.set()

    async def wait(self) -> Any:
        await self._done.wait()
        if self._failure is not None:
            raise self._failure
        return self._result


class ClusterController:
    """Life: `elect` once this broker is registered, then events until `close`."""

    def __init__(self, host: Host, registration: Registration, configs: ConfigRepository, peers: Peers) -> None:
        self._host = host
        self._registration = registration
        self._configs = configs
        self._channels = peers.broker_channels(self._on_response)
        self._machine: Controller | None = None
        self._nursery: trio.Nursery | None = None
        self._closed = False
        self._queue_in, self._queue = trio.open_memory_channel[_Queued](math.inf)
        self._event_ended = trio.Event()
        self.stats = ControllerStats()
        self.leaderless: Set[TopicPartition] = frozenset()
        """Partitions that get no leader: a test puts its own here, before `elect`."""
        host.on_tree_event(self._on_tree_event)
        configs.on_topic_change(self._on_topic_config)
        configs.on_broker_change(self._on_broker_config)

    # --- what this broker is

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self._machine is not None and self._machine.is_active

    @property
    def controller_id(self) -> int:
        """The controller as this broker's watch knows it, -1 if none."""
        return -1 if self._machine is None else self._machine.active_controller_id

    @property
    def unclean_elections(self) -> int:
        """Leaders that this broker, as controller, elected outside the ISR."""
        return 0 if self._machine is None else self._machine.parts.context.unclean_elections

    @property
    def queued(self) -> int:
        """Events that wait."""
        return self._queue.statistics().current_buffer_used

    @property
    def requests_queued(self) -> dict[int, int]:
        """Requests that wait, by broker."""
        return self._channels.queued

    @property
    def machine(self) -> Controller:
        """The state machine. To be used only after `elect`."""
        assert self._machine is not None, "before elect()"
        return self._machine

    # --- life

    async def elect(self) -> None:
        """Start handling events; returns when a controller is known or, if it is this broker, when it has taken over.

        Raises KafkaError(NOT_CONTROLLER) if the session expires before.
        """
        config = self._host.config
        self._machine = Controller(
            Settings(
                broker_id=self._host.node_id,
                metadata_version=mv.parse(config.get_str("inter.broker.protocol.version")),
                inter_broker_listener_name=config.inter_broker_listener_name,
                delete_topic_enable=config.get_bool("delete.topic.enable"),
                auto_leader_rebalance_enable=config.get_bool("auto.leader.rebalance.enable"),
                leader_imbalance_per_broker_percentage=config.get_int("leader.imbalance.per.broker.percentage"),
                leader_imbalance_check_interval_seconds=config.get_int("leader.imbalance.check.interval.seconds"),
                features=self._registration.features,
                finalizes_newest=config.finalizes_newest,
            ),
            self.leaderless,
        )
        self._host.spawn("controller-event-thread", self._run)
        started = self._put(Signal.STARTUP)
        await started.wait()
        # What the new controller sent to this broker itself is applied before this broker begins to serve.
        await self._channels.flush(self._host.node_id)

    def _on_tree_event(self, event: t.TreeEvent) -> None:
        """Receives every event of the tree, and ignores those that do not concern the controller."""
        if isinstance(event, t.SessionEvent):
            if event.type is t.SessionState.EXPIRED:
                self._on_expired()
            return
        meant = event_for_watch(event)
        if meant is not None:
            self._put(meant)

    def _on_topic_config(self, topic: str, _config: LogConfig) -> None:
        """TopicConfigHandler: a topic that allows unclean elections may get a leader at once."""
        if self.is_active and _is_true(self._configs.topic_overrides(topic).get(UNCLEAN)):
            self._put(events.UncleanLeaderElectionEnable(topic))

    def _on_broker_config(self, names: frozenset[str]) -> None:
        """DynamicLogConfig: the same for all topics."""
        if self.is_active and UNCLEAN in names and self._host.config.get_bool(UNCLEAN):
            self._put(events.UncleanLeaderElectionEnable())

    async def ask(self, event: events.Event) -> Any:
        """Queue a request and return its procedure's result. Raises KafkaError, and what the procedure raises."""
        return await self._put(event).wait()

    async def wait_until_deleted(self, topics: Iterable[str], timeout_s: float) -> None:
        """Return when the controller has deleted the topics, their znodes included, or after `timeout_s`.

        Only the active controller knows; any other broker returns at once.
        """
        wanted = set(topics)
        with trio.move_on_after(timeout_s):
            while self.is_active and wanted & self.machine.parts.context.topics_to_be_deleted:
                await self._event_ended.wait()

    async def next_term(self, after: int | None) -> int | None:
        """Wait until this broker becomes the controller again, or is no longer: the epoch, None if it is not.

        `after` is what this returned the last time, at first None.
        """
        while True:
            epoch = self.machine.parts.context.epoch if self._machine is not None and self.is_active else None
            if epoch != after:
                return epoch
            await self._event_ended.wait()

    async def close(self) -> None:
        """Handle no more events. `/controller` and the registration end with the session.

        Requests that are already queued to brokers are delivered first, for up to `DELIVERY_WAIT_S`: otherwise these
        brokers would wait for the next controller.
        """
        if self._closed:
            return
        self._closed = True
        with trio.move_on_after(DELIVERY_WAIT_S):
            await self._channels.flush_all()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
        self._drop_queue()

    # --- the queue

    def _put(self, event: ShellEvent) -> _Queued:
        queued = _Queued(event)
        if self._closed:
            queued.fail(KafkaError(ErrorCode.NOT_CONTROLLER))
        else:
            self._queue_in.send_nowait(queued)
        return queued

    def _on_expired(self) -> None:
        self._drop_queue()
        self._put(Signal.EXPIRE)
        self._put(ShellSignal.NEW_SESSION)

    def _drop_queue(self) -> None:
        while True:
            try:
                queued = self._queue.receive_nowait()
            except trio.WouldBlock:
                return
            queued.fail(KafkaError(ErrorCode.NOT_CONTROLLER))

    def _on_response(self, broker_id: int, request: ControlRequest, response: Any) -> None:
        if self.is_active:
            event = cluster.event_for_response(self.machine.parts, broker_id, request.message, response)
            if event is not None:
                self._put(event)

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            while not self._closed:
                queued = await self._queue.receive()
                began = trio.current_time()
                try:
                    queued.finish(await self._process(queued.event))
                except KafkaError as error:
                    queued.fail(error)
                except Exception as failure:
                    logger.exception("[Controller id=%d] Error processing event %s", self._host.node_id, queued.event)
                    queued.fail(failure)
                self.stats.record(queued.event, began - queued.queued_at, trio.current_time() - began)
                self._event_ended.set()
                self._event_ended = trio.Event()

    async def _process(self, event: ShellEvent) -> Any:
        if event is ShellSignal.NEW_SESSION:
            await self._start_new_session()
        else:
            self.machine.parts.context.is_traced = state_log.isEnabledFor(effects.TRACE)
            return await self._perform(self.machine.procedure(event))
        return None

    async def _start_new_session(self) -> None:
        await self._host.tree.reopen()
        await self._registration.register()
        await self._perform(self.machine.procedure(Signal.REELECT))

    # --- running a procedure

    async def _perform(self, procedure: Procedure[Any]) -> Any:
        result: Any = None
        failure: Exception | None = None
        budget = YieldBudget()
        while True:
            try:
                effect = procedure.send(result) if failure is None else procedure.throw(failure)
            except StopIteration as stop:
                return stop.value
            failure = None
            try:
                result = await self._do(effect)
            except t.TreeError as error:
                failure = error
            await budget.spend(SLICE_UNITS if effect is effects.PAUSE else ELEMENT)

    async def _do(self, effect: effects.Effect) -> Any:
        if isinstance(effect, effects.Submit):
            return await self._submit(effect.ops)
        if isinstance(effect, effects.UncleanElectionEnabled):
            return await self._unclean_election_enabled(effect.topics)
        if effect is effects.Ask.NOW:
            return self._host.clock.time_ms()
        if effect is effects.Ask.RANDOM_UUID:
            return random_uuid(self._host.random)
        self._do_without_result(effect)
        return None

    async def _submit(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        """In pieces, so that thousands of operations neither block the loop nor fill the tree's pipe."""
        results: list[t.Result | t.TreeError] = []
        for piece in _pieces(ops):
            if results:
                await trio.lowlevel.checkpoint()
            results += await retry_until_connected(self._host.tree, piece)
        return results

    def _do_without_result(self, effect: effects.Effect) -> None:
        if isinstance(effect, effects.Log):
            logging.getLogger(effect.logger).log(effect.level, effect.message)
        elif isinstance(effect, effects.Send):
            self._channels.send(effect.broker_id, ControlRequest(effect.message, effect.version))
        elif isinstance(effect, effects.AddBroker):
            assert self._nursery is not None
            self._channels.add(effect.broker_id, effect.registration, self._nursery)
        elif isinstance(effect, effects.RemoveBroker):
            self._channels.remove(effect.broker_id)
        elif isinstance(effect, effects.Enqueue):
            assert self._nursery is not None
            self._nursery.start_soon(self._put_later, effect.event, effect.delay_seconds)

    async def _put_later(self, event: events.Event, delay_s: float) -> None:
        await self._host.clock.pause(delay_s)
        self._put(event)

    async def _unclean_election_enabled(self, topics: tuple[str, ...]) -> dict[str, bool]:
        """Read from the tree, not from this broker's copy, which may be behind (KafkaZkClient.getLogConfigs)."""
        paths = [znodes.config_path(znodes.CONFIG_TOPICS, topic) for topic in topics]
        results = await retry_until_connected(self._host.tree, [t.Get(path) for path in paths])
        default = self._host.config.get_bool(UNCLEAN)
        enabled = {}
        for topic, result in zip(topics, results, strict=True):
            overrides = znodes.decode_config(result.data) if isinstance(result, t.NodeData) else {}
            value = overrides.get(UNCLEAN)
            enabled[topic] = default if value is None else _is_true(value)
        return enabled


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() == "true"


def _pieces(ops: Sequence[t.Operation]) -> Iterator[Sequence[t.Operation]]:
    """Each ends with the operation that makes it OPS_PER_SUBMISSION or more. A `Multi` counts as what it writes."""
    start, size = 0, 0
    for end, op in enumerate(ops, 1):
        size += len(op.ops) - 1 if isinstance(op, t.Multi) else 1
        if size >= OPS_PER_SUBMISSION:
            yield ops[start:end]
            start, size = end, 0
    if start < len(ops):
        yield ops[start:]
