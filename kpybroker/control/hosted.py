"""The brokers of one process: one for development, or a cluster of a few, on one event loop and one embedded tree.

`Hosted.run` starts them all, and stops them all in the end. In between each one can be stopped, killed, started again
with the same id, ports and directories; others can be added and removed.

**A kill** is what the end of a process by SIGKILL is to everyone else: connections are reset, files stay as they are
(no checkpoints, no clean-shutdown marker, so that the next start recovers), and the session in the tree ends. In a real
cluster the session ends `zookeeper.session.timeout.ms` later; here it ends at once.

Such a cluster says nothing about speed, since all its brokers share one event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.broker.lifecycle.open_tree import (
    EMBEDDED_TREE_FILE,
    coordination_failed,
    embedded_file,
    limit_factors,
    make_tree,
    open_store,
    tree_server,
)
from kpybroker.broker.loop.clock import Clock, SystemClock
from kpybroker.broker.maintenance.background import PRESENCE_LOOK_S
from kpybroker.control.errors import ControlError
from kpybroker.control.plan import BrokerPlan, Processes
from kpybroker.core.tree import SystemFailure
from kpybroker.system.private_files import make_private_directory, take_directory
from kpybroker.wire.znodes import broker_path

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.coordination.embedded import EmbeddedStore, TreeRows
    from kpybroker.coordination.server.serve import TreeServer
    from kpybroker.coordination.tree import Tree

logger = logging.getLogger("kafka.server.KafkaServer")

BROKERS_MAX = 9

T = TypeVar("T")


class Hosted:
    """`directory` is for the embedded tree of several brokers (with one, it is in a log directory) and for those that
    are added later. `processes` is set where this one's broker is one of a cluster of several processes.
    """

    def __init__(self, plans: Iterable[BrokerPlan], directory: Path, processes: Processes | None = None) -> None:
        self.brokers: dict[int, Broker] = {}
        """Those that are up, by id."""
        self.clock: Clock = SystemClock()
        self.fatal: StartupError | None = None
        """Why they all ended, if it was not by `stop`."""
        self.is_controlled = False
        """Whether there is a channel. Then a broker that fails is down until it is started again; without one, its end
        is the end of all."""
        self.is_ready = False
        """Whether all have started. A signal before that cancels their start."""
        self.seams_of: Callable[[BrokerPlan], dict[str, Any]] = lambda _: {"clock": self.clock}
        """What a broker gets in place of the real things, as keyword arguments of `Broker.open`; see `seams`."""
        self.wrap_tree: Callable[[int, Tree], Tree] = lambda _, tree: tree
        """Takes the id of a broker and its session in the tree, and returns what the broker is given."""
        self._plans = {plan.broker_id: plan for plan in plans}
        self.directory = directory
        self._processes = processes
        self._is_whole_cluster = False  # that stops
        if len(self._plans) > 1:
            self._store_file: Path | None = directory / EMBEDDED_TREE_FILE
        else:
            self._store_file = None if processes is None else processes.tree_file
        self._store: EmbeddedStore | None = None
        self.tree_address: tuple[str, int] | None = None
        """Where the embedded tree is served to clients of ZooKeeper, if it is."""
        self._server: TreeServer | None = None
        self._end_of_server: tuple[trio.CancelScope, trio.Event] | None = None  # what ends it, and when it has ended
        self._ended: dict[int, trio.Event] = {}  # of those that are up, starting or stopping
        self._stop_requested = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._parts: dict[type[Any], Any] = {}
        self._on_end: list[Callable[[int], None]] = []
        self._resets: list[Callable[[], Awaitable[None]]] = []

    # --- all of them

    async def run(self, on_ready: Callable[[], Awaitable[None]]) -> None:
        """Start all, call `on_ready`, wait for `stop`, stop all. Raises StartupError, in groups of one."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for broker_id in list(self._plans):
                    await self.start_broker(broker_id)
                self.is_ready = True
                await on_ready()
                await self._stop_requested.wait()
                await self._stop_all()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._close_store()

    def stop(self) -> None:
        """Request the end of `run`."""
        self._stop_requested.set()

    @property
    def ids(self) -> tuple[int, ...]:
        """All brokers, up or not, in order."""
        return tuple(sorted(self._plans))

    async def _stop_all(self) -> None:
        """One broker hands over what it leads, as it may be one of a cluster of several processes. Several of one
        process all end now: no leader is elected in place of those that stop first.
        """
        if len(self._plans) > 1:
            await self.retire()
        for broker_id in reversed(list(self._ended)):
            if broker_id in self.brokers:
                self.brokers[broker_id].stop(hand_over=not self._is_whole_cluster)
            await self._ended[broker_id].wait()

    async def retire(self) -> None:
        """The whole cluster ends next: no broker here is the controller any more, and their stop hands nothing over."""
        self._is_whole_cluster = True
        for broker in self.brokers.values():
            await broker.controller.close()

    # --- one of them

    def plan(self, broker_id: int) -> BrokerPlan:
        """What it is started with. Raises ControlError if there is no such broker."""
        if broker_id not in self._plans:
            known = ", ".join(map(str, self.ids))
            raise ControlError(f"there is no broker {broker_id}", f"name one of {known}", status=404)
        return self._plans[broker_id]

    def broker(self, broker_id: int) -> Broker:
        """One that is up. Raises ControlError."""
        self.plan(broker_id)
        if broker_id not in self.brokers:
            raise ControlError(f"broker {broker_id} is down", "start it first", status=409)
        return self.brokers[broker_id]

    async def start_broker(self, broker_id: int) -> Broker:
        """Start one that is down. Raises ControlError, StartupError."""
        plan = self.plan(broker_id)
        if broker_id in self._ended:
            state = "is up" if broker_id in self.brokers else "is starting or stopping"
            raise ControlError(f"broker {broker_id} {state}", "stop or kill it first", status=409)
        assert self._nursery is not None
        self._ended[broker_id] = trio.Event()
        broker: Broker = await self._nursery.start(self._run_one, plan)
        return broker

    async def stop_broker(self, broker_id: int) -> None:
        """Stop one in order; return when it has ended. In a cluster it hands over what it leads first."""
        broker, ended = self.broker(broker_id), self._ended[broker_id]
        broker.stop()
        await ended.wait()

    async def kill_broker(self, broker_id: int) -> None:
        """End one as SIGKILL ends its process; return when it has ended."""
        broker, ended = self.broker(broker_id), self._ended[broker_id]
        broker.crash()
        await ended.wait()

    async def add_broker(self, broker_id: int | None = None, rack: str | None = None) -> Broker:
        """Start one more, configured as the first, on free ports; its id is the next free one by default."""
        if len(self._plans) >= BROKERS_MAX:
            raise ControlError(f"there are {BROKERS_MAX} brokers", "remove one first", status=409)
        if broker_id is None:
            broker_id = max(self._plans, default=-1) + 1
        if broker_id in self._plans:
            raise ControlError(f"there is a broker {broker_id}", "choose another id, or leave it out", status=409)
        if broker_id < 0:
            raise ControlError(f"{broker_id} is no id of a broker", "give one of 0 or more")
        first = next(iter(self._plans.values()))
        try:
            self._take_directory()
        except OSError as error:
            fix = "remove it, or make it this user's alone"
            raise ControlError(f"{error.filename} cannot be used: {error.strerror}", fix, status=409) from error
        self._plans[broker_id] = first.copied(broker_id, self.directory / f"broker-{broker_id}", rack)
        try:
            return await self.start_broker(broker_id)
        except BaseException:
            del self._plans[broker_id]
            raise

    def _take_directory(self) -> None:
        """That of a cluster was named by its user, any other has a name that was made up here. Raises OSError."""
        take = take_directory if self._store_file is None else make_private_directory
        take(str(self.directory))

    async def remove_broker(self, broker_id: int) -> None:
        """Stop one, if it is up, and forget it. Its files stay until the end of the process."""
        self.plan(broker_id)
        if len(self._plans) == 1:
            raise ControlError("it is the only broker", "add another one first", status=409)
        if broker_id in self.brokers:
            await self.stop_broker(broker_id)
        if broker_id in self._ended:
            await self._ended[broker_id].wait()
        self._plans.pop(broker_id, None)

    async def replace_files(self, replace: Callable[[], None]) -> None:
        """Kill all brokers, call `replace` in a thread while no file is open, start again those that were up."""
        up = sorted(self.brokers)
        for broker_id in up:
            await self.kill_broker(broker_id)
        await self._close_store()
        self._store = None
        await trio.to_thread.run_sync(replace)
        for broker_id in up:
            await self.start_broker(broker_id)

    def tree_copy(self) -> tuple[Path, TreeRows] | None:
        """The embedded tree as it is now, and the file it belongs into; None where ZooKeeper keeps the tree."""
        if self._store is None:
            return None
        first = next(iter(self._plans.values()))
        return self._store_file or Path(first.config().log_dirs[0]) / EMBEDDED_TREE_FILE, self._store.rows()

    async def _run_one(self, plan: BrokerPlan, *, task_status: trio.TaskStatus[Broker]) -> None:
        broker_id = plan.broker_id
        try:
            async with Broker.open(plan.config(), **self._seams(plan)) as broker:
                if broker.node_id != broker_id:  # it was generated
                    del self._plans[broker_id]
                    self._ended[broker.node_id] = self._ended.pop(broker_id)
                    broker_id = broker.node_id
                self._plans[broker_id] = plan.pinned(broker)
                self.brokers[broker_id] = broker
                task_status.started(broker)
                try:
                    await broker.wait_stop_requested()
                except trio.Cancelled:  # they all end
                    broker.stop(hand_over=False)
                    raise
        except StartupError as error:
            if self.brokers:  # they stop next, and say so
                logger.error("[KafkaServer id=%d] %s", broker_id, error.cause)
            raise
        finally:
            self.brokers.pop(broker_id, None)
            for on_end in self._on_end:
                on_end(broker_id)
            self._ended.pop(broker_id).set()
        if self.is_controlled:
            if broker.fatal is not None:
                logger.error("[KafkaServer id=%d] is down: %s", broker_id, broker.fatal)
        else:
            self.fatal = self.fatal or broker.fatal
            self.stop()

    def _seams(self, plan: BrokerPlan) -> dict[str, Any]:
        return {**self.seams_of(plan), "tree": partial(self._tree_of, plan.broker_id)}

    # --- the tree

    def _tree_of(self, broker_id: int, host: Host) -> Tree:
        """A session in ZooKeeper, or on the one store, which the first broker opens."""
        if self._store_file is None and host.config.get_str("zookeeper.connect"):
            if self._processes is None:
                return self.wrap_tree(broker_id, make_tree(host)[0])
            host.config.limit_factors(self._processes.brokers)
            return self.wrap_tree(broker_id, make_tree(host, self._processes.credentials)[0])
        if self._store is None:
            path = self._store_file or embedded_file(host)
            make_private_directory(str(path.parent))
            self._store = open_store(path, self.clock)
            logger.info("Coordination is embedded, in %s", path)
            limit_factors(host.config, self._brokers_of_the_cluster)
            self._serve_tree(self._make_server(self._store, host))
            assert self._nursery is not None
            self._nursery.start_soon(self._watch_file, self._store, host.config)
        else:
            host.config.limit_factors(self._brokers_of_the_cluster)  # the first one has the same to report
        session = self._store.session(host.config.get_int("zookeeper.session.timeout.ms"))
        return self.wrap_tree(broker_id, session)

    async def _watch_file(self, store: EmbeddedStore, config: BrokerConfig) -> None:
        """Stop all when the file of the embedded tree was taken away, and cannot be written again."""
        while True:
            await trio.sleep(PRESENCE_LOOK_S)
            if self._store is not store:
                return  # its file was replaced, in order
            try:
                store.check_file()
            except SystemFailure as failure:
                self.fatal = coordination_failed(config, failure)
                logger.error("%s", self.fatal)
                return self.stop()

    def _make_server(self, store: EmbeddedStore, host: Host) -> TreeServer | None:
        port = None if self.tree_address is None else self.tree_address[1]
        processes = self._processes
        server = tree_server(store, host.config, self.clock, port, None if processes is None else processes.listener)
        if server is not None and processes is not None and processes.credentials is not None:
            server.require(processes.credentials)
        return server

    @property
    def _brokers_of_the_cluster(self) -> int:
        return len(self._plans) if self._processes is None else self._processes.brokers

    def forget_broker(self, broker_id: int) -> None:
        """The process of another broker of the cluster has ended: its session in the tree kept here ends too."""
        if self._server is not None:
            self._server.service.expire_owner(broker_path(broker_id))

    def _serve_tree(self, server: TreeServer | None) -> None:
        if server is not None:
            assert self._nursery is not None
            self._server, self.tree_address = server, server.address
            self._end_of_server = trio.CancelScope(), trio.Event()
            self._nursery.start_soon(self._serve_until_closed, server, *self._end_of_server)

    async def _serve_until_closed(self, server: TreeServer, scope: trio.CancelScope, ended: trio.Event) -> None:
        try:
            with scope:
                await server.serve()
        finally:
            server.close()
            ended.set()

    async def _close_store(self) -> None:
        if self._end_of_server is not None:
            scope, ended = self._end_of_server
            scope.cancel()
            await ended.wait()
        if self._store is not None:
            try:
                await self._store.close()
            except SystemFailure as failure:
                logger.warning("The end of the sessions was not saved: %s", failure)

    # --- for methods

    def part(self, kind: type[T]) -> T:
        """The one object of this class for all methods and brokers of this process, made by the first call."""
        if kind not in self._parts:
            self._parts[kind] = kind()
        found: T = self._parts[kind]
        return found

    def spawn(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run a task until the end of `run`."""
        assert self._nursery is not None
        self._nursery.start_soon(function, *args)

    def on_end(self, callback: Callable[[int], None]) -> None:
        """Call `callback` with the id of a broker that has ended, before it can be started again."""
        self._on_end.append(callback)

    def on_reset(self, undo: Callable[[], Awaitable[None]]) -> None:
        """Have `undo` called by `reset`, after those that were registered later."""
        self._resets.append(undo)

    async def reset(self) -> None:
        """Undo what methods have changed about how the brokers behave: faults, pauses, partitions, levers."""
        for undo in reversed(self._resets):
            await undo()
