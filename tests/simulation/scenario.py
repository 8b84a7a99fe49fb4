"""One storm, played: clients work while faults happen; then all must come to rest, and what is left is judged."""

from __future__ import annotations

import trio

from compat_tests.faults.check import check
from compat_tests.faults.history import History
from kpybroker.storage.disk.names import CLEAN_SHUTDOWN
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Partition
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.member import Group, Member
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.transactional import Transactional
from tests.simulation.faults import Faults, end
from tests.simulation.observer import Observer, check_copies, running, unsettled
from tests.simulation.seams.agenda import until
from tests.simulation.storm import Storm
from tests.simulation.world import Ended, World, simulate

TOPIC = "t"
START_S_MAX, CLIENTS_S_MAX, SETTLE_S_MAX, STOP_S_MAX = 30.0, 60.0, 60.0, 60.0
LOOK_S = 0.5
IDLE_S = 1.0
"""After the last client: what its requests held is released by then."""


class Scenario:
    """Of one world."""

    def __init__(self, world: World, storm: Storm) -> None:
        self._world, self._storm = world, storm
        self._partitions: list[Partition] = [(TOPIC, index) for index in range(storm.partitions)]
        self._history = History(min_isr=min(2, storm.brokers))
        self._group = Group("g", self._partitions)
        if any(name.startswith("member") for name in storm.clients):
            self._history.readers.append(self._group.reader)
        self._clients = [self._make(name) for name in storm.clients]

    def _make(self, name: str) -> Producer | Fetcher:
        if name.startswith("producer"):
            return Producer(self._world, self._history, name, self._partitions)
        if name.startswith("transactional"):
            version = 1 + int(name.removeprefix("transactional")) % 2
            return Transactional(self._world, self._history, name, self._partitions, version=version)
        if name.startswith("member"):
            return Member(self._world, self._group, name)
        committed = int(name.removeprefix("reader")) % 2 == 0
        fetcher = Fetcher(self._world, name, self._partitions, committed=committed)
        self._history.readers.append(fetcher.reader)
        return fetcher

    async def play(self) -> None:
        world, storm = self._world, self._storm
        world.keys = dict(storm.keys)
        if not await self._within(START_S_MAX, self._begin(), "start"):
            return
        async with trio.open_nursery() as work, trio.open_nursery() as background:
            background.start_soon(Observer(world, self._history).run)
            for client in self._clients:
                work.start_soon(self._run_client, client)
            with trio.move_on_at(storm.seconds):
                await Faults(world, storm.faults).run()
                await trio.sleep_forever()
            end(world)
            if await self._within(START_S_MAX, self._all_run(), "run again"):
                await self._settle()
            background.cancel_scope.cancel()
            work.cancel_scope.cancel()
        if not world.problems:
            await self._judge()

    @staticmethod
    async def _run_client(client: Producer | Fetcher) -> None:
        await client.run()

    async def _within(self, seconds: float, step: object, name: str) -> bool:
        """Whether it was done in time."""
        with trio.move_on_after(seconds) as limit:
            await step  # type: ignore[misc]
        if limit.cancelled_caught:
            self._world.problem(f"not within {seconds} s: {name}")
        return not limit.cancelled_caught

    async def _begin(self) -> None:
        await self._world.start()
        administrator = Administrator(self._world, "administrator")
        await administrator.create_topic(TOPIC, self._storm.partitions, min(3, self._storm.brokers))
        administrator.close()

    async def _all_run(self) -> None:
        for machine in self._world.machines.values():
            await machine.start()

    async def _settle(self) -> None:
        """Producers finish what they have begun, readers come to the end, brokers come together."""
        await self._within(CLIENTS_S_MAX, self._stop_clients(Producer), "producers finish")
        await self._within(SETTLE_S_MAX, until(lambda: unsettled(self._world) is None, LOOK_S), "settle")
        if (why := unsettled(self._world)) is not None:
            self._world.problem(f"not settled: {why}")
            return
        await self._within(CLIENTS_S_MAX, self._stop_clients(Fetcher), "readers finish")
        check_copies(self._world)

    async def _stop_clients(self, kind: type) -> None:
        stopping = [client for client in self._clients if isinstance(client, kind)]
        for client in stopping:
            client.is_stopping = True
        await until(lambda: all(client.has_ended for client in stopping))

    async def _judge(self) -> None:
        world, history = self._world, self._history
        if not await self._within(CLIENTS_S_MAX, self._read(), "read everything"):
            return
        for problem in check(history):
            world.problem(str(problem))
        await trio.sleep(IDLE_S)
        servers = {machine.host: machine.broker.server for machine in running(world) if machine.broker is not None}
        await self._within(STOP_S_MAX, world.stop(), "stop")
        for host, server in servers.items():
            if (held := server.memory[0]) != 0:
                world.problem(f"left over: requests of {host} hold {held} bytes after its stop")
            if server.connection_count:
                world.problem(f"left over: {server.connection_count} connections of {host} after its stop")
        self._look_for_leftovers()

    async def _read(self) -> None:
        for committed in (False, True):
            reader = Fetcher(self._world, f"last-{committed}", self._partitions, committed=committed)
            found = self._history.committed if committed else self._history.log
            for partition in self._partitions:
                found[partition] = await reader.read_all(partition)
            reader.close()

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
