"""What each fault of a storm does to a world, and how all of them end.

No acknowledged record may be lost, so power fails only where Kafka promises that: at a host of a cluster in which every
replica of every partition is in sync, or where each append is synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from compat_tests.faults.history import Absence, History
from tests.simulation.checks.excuses import without_unsynced
from tests.simulation.checks.observer import is_in_sync, is_relied_on
from tests.simulation.clients.client import now_ns
from tests.simulation.seams.agenda import until
from tests.simulation.seams.tree import HOST as TREE
from tests.simulation.storm import Fault, Storm
from tests.simulation.world import SESSION_TIMEOUT_MS, Machine, World

CLOCK_JUMP_MS_MAX = 30_000
SLOW_LINK_S, SLOW_DISK_S = 0.5, 0.5
REBOOT_S = SESSION_TIMEOUT_MS / 1000 + 2
"""A host without power is gone for longer than its session, and until a controller has seen that."""
ROOM_BYTES_MAX = 50_000


class Faults:
    """Carries a storm's faults out, each when its time has come, and none where it would break what is promised."""

    def __init__(self, world: World, storm: Storm, history: History) -> None:
        self._world, self._storm, self._history = world, storm, history
        self._down: set[int] = set()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for fault in self._storm.faults:
                await trio.sleep_until(fault.at_s)
                nursery.start_soon(self._happens, fault)

    async def _happens(self, fault: Fault) -> None:
        machine = self._world.machines[fault.broker]
        self._world.trace.add("FAULT", str(fault))
        await getattr(self, f"_{fault.kind}")(machine, fault)

    # --- processes

    async def _kill(self, machine: Machine, fault: Fault, *, power_cut: bool = False) -> None:
        if machine.broker is None or fault.broker in self._down:
            return
        self._down.add(fault.broker)
        machine.kill(power_cut=power_cut)
        if power_cut:
            without_unsynced(self._history, fault.broker)
        with self._absent(fault):
            await trio.sleep(fault.for_s)
            await until(lambda: not machine.has_lost_power or not is_relied_on(self._world, fault.broker))
        await machine.restart()
        self._down.discard(fault.broker)

    @contextmanager
    def _absent(self, fault: Fault) -> Iterator[None]:
        """What is acknowledged in the meantime, it does not have."""
        since = now_ns()
        try:
            yield
        finally:
            self._history.absences.append(Absence(fault.broker, since, now_ns()))

    async def _pause(self, machine: Machine, fault: Fault) -> None:
        """It stops, as by SIGSTOP, and goes on where it was, or is killed."""
        process = machine.pause()
        if process is not None:
            try:
                with self._absent(fault), trio.move_on_after(fault.for_s):
                    await until(lambda: not process.is_alive)
            finally:
                machine.go_on(process)

    async def _power(self, machine: Machine, fault: Fault) -> None:
        machines = self._world.machines.values()
        if len(machines) == 1 or (
            not self._down and is_in_sync(self._world) and not any(one.disk.failing_syncs for one in machines)
        ):
            await self._kill(machine, fault._replace(for_s=max(fault.for_s, REBOOT_S)), power_cut=True)

    async def _stop(self, machine: Machine, fault: Fault) -> None:
        """In order: it leaves the ISRs at once. Not those of a host without power, which would be alone in them."""
        if machine.broker is None or fault.broker in self._down or self._is_elected_without_power():
            return
        self._down.add(fault.broker)
        await machine.stop()
        await trio.sleep(fault.for_s)
        await machine.start()
        self._down.discard(fault.broker)

    def _is_elected_without_power(self) -> bool:
        """Whether a host without power may still be: it is in an ISR, and no one knows."""
        machines = self._world.machines.values()
        return any(one.has_lost_power and is_relied_on(self._world, one.broker_id) for one in machines)

    # --- the network

    def _neighbours(self) -> list[str]:
        return [machine.host for machine in self._world.machines.values()]

    async def _cut(self, machine: Machine, fault: Fault) -> None:
        """From all others, with the tree or without; one way or both ways."""
        others = [host for host in self._neighbours() if host != machine.host]
        if fault.draw < 0.5:
            others.append(TREE)
        await self._cut_from(machine, others, fault)

    async def _cut_tree(self, machine: Machine, fault: Fault) -> None:
        await self._cut_from(machine, [TREE], fault)

    async def _cut_peer(self, machine: Machine, fault: Fault) -> None:
        if fault.other != fault.broker:
            await self._cut_from(machine, [self._world.machines[fault.other].host], fault)

    async def _cut_from(self, machine: Machine, others: list[str], fault: Fault) -> None:
        way = int(fault.draw * 1000) % 3
        links = [(machine.host, host) for host in others if way != 1]
        links += [(host, machine.host) for host in others if way != 2]
        for link in links:
            self._world.network.cut(*link)
        await trio.sleep(fault.for_s)
        self._world.network.heal(links)

    async def _cut_client(self, machine: Machine, fault: Fault) -> None:
        """One client, from this broker; or from all but this one, so that it has to wait for it to lead."""
        clients = self._storm.clients
        client = clients[int(fault.draw * len(clients))]
        hosts = [host for host in self._neighbours() if (host == machine.host) == (fault.draw * 100 % 1 < 0.5)]
        links = [(client, host) for host in hosts] + [(host, client) for host in hosts]
        for link in links:
            self._world.network.cut(*link)
        await trio.sleep(fault.for_s)
        self._world.network.heal(links)

    async def _slow(self, machine: Machine, fault: Fault) -> None:
        others = [host for host in self._neighbours() if host != machine.host]
        links = [(machine.host, host) for host in others] + [(host, machine.host) for host in others]
        for link in links:
            self._world.network.slow(*link, fault.draw * SLOW_LINK_S)
        await trio.sleep(fault.for_s)
        self._world.network.heal(links)

    async def _reset(self, machine: Machine, fault: Fault) -> None:
        if machine.process is not None:
            self._world.network.reset(machine.process)

    # --- the tree, clocks and disks

    async def _expire(self, machine: Machine, fault: Fault) -> None:
        if machine.tree is not None and machine.broker is not None:
            machine.tree.expire()

    async def _clock(self, machine: Machine, fault: Fault) -> None:
        machine.clock.offset_ms += int((fault.draw - 0.5) * 2 * CLOCK_JUMP_MS_MAX)

    async def _slow_disk(self, machine: Machine, fault: Fault) -> None:
        self._world.work.slow_of[machine.host] = fault.draw * SLOW_DISK_S
        await trio.sleep(fault.for_s)
        self._world.work.slow_of.pop(machine.host, None)

    async def _full_disk(self, machine: Machine, fault: Fault) -> None:
        """Soon, until there is room again."""
        machine.disk.limit(int(fault.draw * ROOM_BYTES_MAX))
        await trio.sleep(fault.for_s)
        machine.disk.limit(None)

    async def _fsync(self, machine: Machine, fault: Fault) -> None:
        """The next one fails; the broker stops, because it has no other directory, and is started again.

        Not while another host is without power: in both places records may be gone that were acknowledged.
        """
        if machine.broker is not None and not any(one.has_lost_power for one in self._world.machines.values()):
            machine.disk.failing_syncs = 1


def end(world: World) -> None:
    """Everything that lasts is over; what has failed once may go on."""
    world.network.heal()
    world.work.slow_of.clear()
    for machine in world.machines.values():
        machine.disk.failing_syncs = 0
        machine.disk.limit(None)
        if machine.process is not None:
            machine.go_on(machine.process)
