"""One storm, played: clients work while faults happen; then all must come to rest, and what is left is judged."""

from __future__ import annotations

from functools import partial

import trio

from compat_tests.faults.check import check
from compat_tests.faults.history import History
from kpybroker.storage.disk.names import CLEAN_SHUTDOWN
from kpybroker.wire import znodes
from tests.simulation.checks.at_rest import not_as_wanted, unsettled
from tests.simulation.checks.excuses import without_deleted, without_lost
from tests.simulation.checks.leftovers import leftovers
from tests.simulation.checks.observer import Observer, check_copies, is_relied_on, running
from tests.simulation.checks.steps import Steps
from tests.simulation.clients.administrator import OWN
from tests.simulation.clients.crowd import Crowd
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.faults import Faults, end
from tests.simulation.seams.agenda import until
from tests.simulation.storm import Storm
from tests.simulation.world import Ended, Machine, World, simulate

TOPIC = "t"
START_S_MAX, CLIENTS_S_MAX, SETTLE_S_MAX, STOP_S_MAX = 30.0, 60.0, 60.0, 60.0
LOOK_S = 0.5
REST_S_MAX = 30.0
"""After the last client: what its requests held is released by then, and sessions and rebalances are over."""


class Scenario:
    """Of one world."""

    def __init__(self, world: World, storm: Storm) -> None:
        self._world, self._storm = world, storm
        self._history = History(min_isr=min(2, storm.brokers))
        self._crowd = Crowd(world, storm, self._history, TOPIC)
        self._steps = Steps(world, unclean=TOPIC if storm.is_unclean else None)

    async def play(self) -> None:
        world, storm = self._world, self._storm
        world.keys = dict(storm.keys)
        trio.lowlevel.add_instrument(self._steps)
        if not await self._within(START_S_MAX, self._begin(), "start"):
            return
        async with trio.open_nursery() as work, trio.open_nursery() as background:
            background.start_soon(Observer(world, self._history, self._steps.compare, OWN).run)
            for client in self._crowd.clients:
                work.start_soon(client.run)
            with trio.move_on_at(storm.seconds):
                await Faults(world, storm, self._history).run()
                await trio.sleep_forever()
            end(world)
            if await self._within(START_S_MAX, self._all_run(), "run again"):
                await self._settle()
            background.cancel_scope.cancel()
            work.cancel_scope.cancel()
        if not world.problems:
            await self._judge()

    async def _within(self, seconds: float, step: object, name: str) -> bool:
        """Whether it was done in time."""
        with trio.move_on_after(seconds) as limit:
            await step  # type: ignore[misc]
        if limit.cancelled_caught:
            self._world.problem(f"not within {seconds} s: {name}")
        return not limit.cancelled_caught

    async def _begin(self) -> None:
        await self._world.start()
        await self._crowd.begin()

    async def _all_run(self) -> None:
        await until(lambda: not self._are_dead_and_registered())  # as after `Faults._power`
        for machine in sorted(self._world.machines.values(), key=lambda machine: machine.has_lost_power):
            await until(partial(self._may_start, machine))
            await machine.start()

    def _may_start(self, machine: Machine) -> bool:
        return not machine.has_lost_power or not is_relied_on(self._world, machine.broker_id)

    def _are_dead_and_registered(self) -> bool:
        """Whether the session of a broker whose process has ended goes on."""
        registered = self._world.store.image.nodes[znodes.BROKER_IDS].children
        machines = self._world.machines.values()
        return any(
            machine.process is not None and not machine.process.is_alive and str(machine.broker_id) in registered
            for machine in machines
        )

    async def _settle(self) -> None:
        """Producers finish what they have begun, readers come to the end, brokers come together."""
        await self._within(CLIENTS_S_MAX, self._crowd.end_writers(), "producers finish")
        await self._within(SETTLE_S_MAX, until(lambda: self._what_is_left() is None, LOOK_S), "settle")
        if (why := self._what_is_left()) is not None:
            self._world.problem(f"not settled: {why}")
            return
        await self._within(CLIENTS_S_MAX, self._crowd.drain(), "the share group is drained")
        await self._within(CLIENTS_S_MAX, self._crowd.end_readers(), "readers finish")
        self._steps.compare()
        check_copies(self._world)

    def _what_is_left(self) -> str | None:
        """Before the cluster is at rest."""
        if (why := unsettled(self._world)) is not None:
            return why
        wanted = (not_as_wanted(self._world, operator) for operator in self._crowd.operators)
        return next((why for why in wanted if why is not None), None)

    async def _judge(self) -> None:
        world, history = self._world, self._history
        if not await self._within(CLIENTS_S_MAX, self._read(), "read everything"):
            return
        self._excuse()
        for problem in check(history):
            world.problem(str(problem))
        self._crowd.judge_share_group(self._steps.elected_ns)
        with trio.move_on_after(REST_S_MAX):
            await until(lambda: next(leftovers(world), None) is None, LOOK_S)
        for left in leftovers(world):
            world.problem(f"left over: {left}")
        servers = {machine.host: machine.broker.server for machine in running(world) if machine.broker is not None}
        await self._within(STOP_S_MAX, world.stop(), "stop")
        for host, server in servers.items():
            if (held := server.memory[0]) != 0:
                world.problem(f"left over: requests of {host} hold {held} bytes after its stop")
            if server.connection_count:
                world.problem(f"left over: {server.connection_count} connections of {host} after its stop")
        self._look_for_leftovers()

    def _excuse(self) -> None:
        """What was deleted as asked for, and what an unclean election may lose, need not be there."""
        history = self._history
        without_deleted(history, self._crowd.deleted)
        without_lost(history, self._steps.lost_from)

    async def _read(self) -> None:
        for committed in (False, True):
            reader = Fetcher(self._world, f"last-{committed}", self._crowd.partitions, committed=committed)
            found = self._history.committed if committed else self._history.log
            for partition in self._crowd.partitions:
                found[partition] = await reader.read_all(partition)
            reader.close()
        await self._crowd.judge_compacted()

    def _look_for_leftovers(self) -> None:
        for machine in self._world.machines.values():
            files = machine.last_files
            if files.open_count:
                self._world.problem(f"left over: {files.open_count} open files of {machine.host} after its stop")
            if files.locked:
                self._world.problem(f"left over: locks of {machine.host} after its stop: {sorted(files.locked)}")
            if machine.disk.files.stat(f"/data/{CLEAN_SHUTDOWN}") is None:
                self._world.problem(f"stop not clean: {machine.host}")
        if self._world.work.in_progress:
            self._world.problem(f"left over: {self._world.work.in_progress} pieces of work")


def run(storm: Storm, *, keeps_all: bool = False) -> Ended:
    """Play it in a world of its own."""

    async def play(world: World) -> None:
        await Scenario(world, storm).play()

    return simulate(storm.seed, play, brokers=storm.brokers, keeps_all=keeps_all)
