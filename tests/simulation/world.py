"""The world of one seed: hosts with their disks and clocks, a network, a tree, and the brokers that run on them.

`simulate` runs an `async def` with a `World`, in which only simulated time passes. Nothing in it may ask for the real
one (`seams.guard`), and the order of tasks is the seed's (`seams.order`).
"""

from __future__ import annotations

import gc
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.embedded import EmbeddedStore
from tests.simulation.seams.agenda import Agenda
from tests.simulation.seams.cleaner import FILES
from tests.simulation.seams.clock import EPOCH_MS, SimulatedClock
from tests.simulation.seams.disk import SimulatedDisk
from tests.simulation.seams.guard import forbidden
from tests.simulation.seams.network import PORT, Network, Process, SimulatedTransport
from tests.simulation.seams.order import Pauses, seeded_order
from tests.simulation.seams.trace import Trace
from tests.simulation.seams.tree import SimulatedTree
from tests.simulation.seams.work import HOST, SimulatedWork

T = TypeVar("T")

SESSION_TIMEOUT_MS = 6_000
DRIFT_MAX = 0.01
"""Of a broker's clock: ten milliseconds in a second."""
PASSES_MAX = 50_000
"""Of trio's loop, while simulated time stands still."""
RESTART_S = 1.0
"""How long what starts a broker waits after a start that has failed."""
SHORTCUTS = ("fast-produce", "inline-requests", "receive-buffers")
KEYS = {
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.record.lock.duration.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": "5",
    "group.share.initialize.retry.interval.ms": "3000",
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "replica.lag.time.max.ms": "8000",
    "log.index.size.max.bytes": "65536",
    "log.segment.bytes": "1048576",
    "log.cleaner.enable": "false",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "1",
}


@dataclass(slots=True)
class Ended:
    """How a world ended."""

    digest: str
    events: int
    lines: list[str]
    problems: list[str] = field(default_factory=list)


class _Logged(logging.Handler):
    """Log records become events of the trace; what may not be logged is a problem."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text += f": {type(error).__name__}: {error}"
            self._world.note_error(error, text)
        self._world.trace.add("log", f"{record.levelname} {text}")


class _Standstill(trio.abc.Instrument):
    """Ends a world in which tasks run on and on while no time passes: it would never end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._passes = 0
        self._time_s = -1.0

    def before_io_wait(self, timeout: float) -> None:
        self._passes += 1
        if (now := trio.current_time()) != self._time_s:
            self._time_s, self._passes = now, 0
        elif self._passes == PASSES_MAX:
            self._world.problem(f"time stands still: {PASSES_MAX} passes of the loop")
            self._world.nursery.cancel_scope.cancel()


class Machine:
    """One host, and the broker on it while one runs."""

    def __init__(self, world: World, broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.host = f"10.0.0.{broker_id}"
        self.disk = SimulatedDisk(self.host, world.trace, world.chance)
        self.clock = SimulatedClock(1 + world.chance.uniform(-DRIFT_MAX, DRIFT_MAX))
        self.broker: Broker | None = None
        self.process: Process | None = None
        self.tree: SimulatedTree | None = None
        self.last_files = self.disk.files
        """What the present process has, or the last one had."""
        self.is_wanted = self._is_kept = False
        self.has_lost_power = False
        """What it had not synced is lost. What starts it again first waits until no one relies on it."""
        self.starts = 0
        self._serves = trio.Event()
        self._ended = trio.Event()
        self._task: trio.lowlevel.Task | None = None

    async def start(self) -> None:
        """Start a broker; returns when it serves. It is started again until it does, as by systemd."""
        if not self.is_wanted:
            self.is_wanted, self.has_lost_power = True, False
            self._serves = trio.Event()
            if not self._is_kept:  # else the last one still stops, and another one follows
                self._is_kept = True
                self.world.nursery.start_soon(self._keep_running)
        await self._serves.wait()

    async def _keep_running(self) -> None:
        self._task = trio.lowlevel.current_task()
        while self.is_wanted:
            self._ended = trio.Event()
            try:
                await self._run()
            except StartupError as error:
                self.world.trace.add(self.host, f"does not start: {error}")
                await trio.sleep(RESTART_S)
            finally:
                self._ended.set()
        self._is_kept = False

    async def _run(self) -> None:
        world = self.world
        self.starts += 1
        process = self.process = Process(self.host)
        world.network.begin(process)
        tree = self.tree = SimulatedTree(
            world.store.session(SESSION_TIMEOUT_MS), process, world.network, world.agenda, world.trace
        )
        self.last_files = self.disk.files
        FILES.set(self.disk.files)
        HOST.set(self.host)
        tree.chance = random.Random(world.chance.getrandbits(64))
        broker: Broker | None = None
        try:
            async with Broker.open(
                self._config(),
                clock=self.clock,
                transport=SimulatedTransport(world.network, process),
                files=self.disk.files,
                tree=tree,
                seed=world.chance.getrandbits(64),
            ) as broker:
                self.broker = broker
                self._serves.set()
                world.trace.add(self.host, "serves")
                await broker.wait_stop_requested()
                if process.is_alive and broker.fatal is not None:
                    world.trace.add(self.host, f"stops: {broker.fatal}")
        finally:
            self.broker = None
            if process.is_alive:
                world.network.end(process, power_cut=False)
                self.disk.detach(power_cut=False)
            world.trace.add(self.host, "has ended")

    def _config(self) -> BrokerConfig:
        world = self.world
        copies = str(min(3, len(world.machines) or 1))
        return BrokerConfig(
            KEYS
            | {
                "broker.id": str(self.broker_id),
                "listeners": f"PLAINTEXT://{self.host}:{PORT}",
                "kpybroker.shortcuts": ",".join(world.shortcuts) or "none",
                "offsets.topic.replication.factor": copies,
                "transaction.state.log.replication.factor": copies,
                "transaction.state.log.min.isr": str(min(2, len(world.machines))),
                "share.coordinator.state.topic.replication.factor": copies,
                "share.coordinator.state.topic.min.isr": "1",
            }
            | world.keys
        )

    async def stop(self) -> None:
        """In order."""
        self.is_wanted = False
        if self.broker is not None:
            self.broker.stop()
        await self._ended.wait()

    def kill(self, *, power_cut: bool) -> None:
        """The process ends here and now, and with a power cut its host: that starts again with it."""
        process, broker = self.process, self.broker
        if process is None or not process.is_alive or broker is None:
            return
        self.world.trace.add(self.host, "power cut" if power_cut else "killed")
        self.world.network.end(process, power_cut=power_cut)
        self.disk.detach(power_cut=power_cut)
        self.is_wanted, self.has_lost_power = False, power_cut
        self.broker = None
        broker.crash()
        self.go_on(process)

    def pause(self) -> Process | None:
        """As by SIGSTOP: none of its tasks runs, until `go_on` with the process that is returned."""
        process = self.process
        if process is None or not process.is_alive or self.broker is None or process.is_paused:
            return None
        assert self._task is not None
        self.world.trace.add(self.host, "paused")
        process.is_paused = True
        self.world.pauses.pause(self._task)
        return process

    def go_on(self, process: Process) -> None:
        """Nothing happens if it does already."""
        if process.is_paused:
            assert self._task is not None
            self.world.trace.add(self.host, "goes on")
            self.world.pauses.go_on(self._task)
            process.go_on()

    async def restart(self) -> None:
        """After `kill`."""
        await self._ended.wait()
        await self.start()


class World:
    """What there is. `chance` decides everything that is not decided by a generator made from it."""

    def __init__(
        self, seed: int, brokers: int, work: SimulatedWork, pauses: Pauses, *, keeps_all: bool = False
    ) -> None:
        self.work, self.pauses = work, pauses
        self.chance = random.Random(seed)
        self.seed = seed
        self.trace = Trace(trio.current_time, keeps_all=keeps_all)
        self.agenda = Agenda()
        self.network = Network(self.agenda, self.trace, random.Random(self.chance.getrandbits(64)))
        self.store = EmbeddedStore.in_memory(lambda: EPOCH_MS + int(trio.current_time() * 1000))
        self.shortcuts = [name for name in SHORTCUTS if self.chance.random() < 0.5]
        self.keys: dict[str, str] = {}
        self.problems: list[str] = []
        self.left_behind: set[tuple[int, bytes, int]] = set()
        """Broker, topic id and index of replicas that were taken from their partitions and have not heard of it."""
        self.nursery: trio.Nursery
        self.machines: dict[int, Machine] = {}
        for broker_id in range(1, brokers + 1):
            self.machines[broker_id] = Machine(self, broker_id)

    def note_error(self, error: BaseException, text: str) -> None:
        """An error that was logged with its traceback: one that no one expected."""
        if isinstance(error, AssertionError | TypeError | KeyError | AttributeError | IndexError | RuntimeError):
            self.problem(f"an unexpected error was logged: {text}")

    def problem(self, text: str) -> None:
        self.trace.add("PROBLEM", text)
        self.problems.append(f"{trio.current_time():.3f} {text}")

    async def start(self) -> None:
        """All brokers, at the same time."""
        async with trio.open_nursery() as nursery:
            for machine in self.machines.values():
                nursery.start_soon(machine.start)

    async def stop(self) -> None:
        """All brokers, one after the other; the last ones have no one to hand over to."""
        for machine in self.machines.values():
            await machine.stop()

    def chance_of(self, name: str) -> random.Random:
        """A generator of its own for a part, so that one part less leaves the others as they were."""
        return random.Random(f"{self.seed} {name}")

    def client(self, name: str) -> SimulatedTransport:
        """The network as a client's process has it, on a host of its own."""
        process = Process(name)
        self.network.begin(process)
        return SimulatedTransport(self.network, process)


def simulate(
    seed: int,
    play: Callable[[World], Awaitable[None]],
    *,
    brokers: int = 1,
    seconds_max: float = inf,
    keeps_all: bool = False,
) -> Ended:
    """Run `play` in a world of its own; what it raises is one of the problems."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    work = SimulatedWork(random.Random(seed))
    made: list[World] = []

    async def main(pauses: Pauses) -> None:
        world = World(seed, brokers, work, pauses, keeps_all=keeps_all)
        made.append(world)
        handler = _Logged(world)
        root = logging.getLogger()
        handlers, root.handlers = root.handlers, [handler]
        level = root.level
        root.setLevel(logging.INFO)
        try:
            with trio.move_on_after(seconds_max) as limit:
                async with trio.open_nursery() as nursery:
                    world.nursery = nursery
                    trio.lowlevel.add_instrument(_Standstill(world))
                    nursery.start_soon(world.agenda.run)
                    try:
                        await play(world)
                    finally:
                        pauses.end()
                    nursery.cancel_scope.cancel()
            if limit.cancelled_caught:
                world.problem(f"no end within {seconds_max} simulated seconds")
        finally:
            root.handlers = handlers
            root.setLevel(level)

    was_collecting = gc.isenabled()
    gc.collect()
    gc.disable()  # what is collected when would depend on what ran before
    try:
        with forbidden(work, clock.current_time), seeded_order(seed) as pauses:
            try:
                trio.run(main, pauses, clock=clock)
            except Exception as error:
                if not made:
                    raise
                made[0].problems.append(f"{type(error).__name__}: {error!r}")
    finally:
        if was_collecting:
            gc.enable()
    (world,) = made
    return Ended(world.trace.digest, world.trace.count, list(world.trace.lines), world.problems)
