"""What compaction must leave alone: what no one knows yet to be committed, and a log that is cut at the same time."""

from __future__ import annotations

import trio

from compat_tests.faults.history import History, Record
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.builder import BatchFields, build_batch
from tests.simulation.checks.observer import check_copies, is_in_sync, replicas
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Lost
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.keyed import CONFIGS
from tests.simulation.clients.transactional import Transactional
from tests.simulation.plays.parts import PLACE, end_of, heal_all_of, isolate, isr_of, leader_of, write
from tests.simulation.seams.agenda import until
from tests.simulation.seams.clock import EPOCH_MS
from tests.simulation.storm import CLEANING
from tests.simulation.world import World

KEY, PLAIN = b"key", "plain"
FILLERS, FILLER_BYTES = 20, 2_000
"""Records of other keys, in several segments."""
OPEN_S, CLEANED_S, SLOW_S = 10.0, 30.0, 60.0
"""Seconds: several looks of the cleaner, and less than a transaction's timeout; so many that all is compacted."""


class _OfKey(Transactional):
    """All its records have one key."""

    def _key(self, record: Record) -> bytes | None:
        return KEY

    async def write(self) -> None:
        await self._add(PLACE)
        records, batch = self._next_batch(PLACE, is_transactional=True)
        await self._produce(PLACE, records, batch)

    async def abort(self) -> None:
        await self._end(commits=False)


async def _write(client: Administrator, broker_id: int, key: bytes, number: int, size: int = 0) -> None:
    value = Record(PLAIN, number).value(size).encode()
    batch = bytes(build_batch([(key, value, EPOCH_MS)], BatchFields()))
    while True:
        try:
            assert await write(client, broker_id, batch, acks=1) is ErrorCode.NONE
            return
        except Lost:  # a connection from before a restart
            await client.pause()


async def compact_open_transaction(world: World) -> None:
    """The last record of a key is in a transaction that is aborted long after the one before could be compacted."""
    world.keys = dict(CLEANING)
    await world.start()
    client, producer = Administrator(world, "administrator"), _OfKey(world, History(), "producer", [PLACE], version=1)
    await client.create_topic(PLACE[0], 1, 1, **CONFIGS)
    await until(lambda: is_in_sync(world))
    await producer.init()
    await _write(client, 1, KEY, 0)
    await producer.write()
    for number in range(1, FILLERS):
        await _write(client, 1, b"other%d" % number, number, FILLER_BYTES)
    await trio.sleep(OPEN_S)
    await producer.abort()
    reader = Fetcher(world, "reader", [PLACE], committed=True)
    while not (found := [stored.record for stored in await reader.read_all(PLACE)]):
        await reader.pause()
    if Record(PLAIN, 0) not in found:
        world.problem("compacted: the last record of a key that was not aborted is not there")
    for each in (client, producer, reader):
        each.close()
    await world.stop()


async def cut_while_compacting(world: World) -> None:
    """A leader compacts its log, while one that has much less is elected uncleanly. What it has compacted is cut."""
    world.keys = dict(CLEANING)
    await world.start()
    client = Administrator(world, "administrator")
    await client.create_at(PLACE[0], (1, 2, 3), unclean_leader_election_enable="true", **CONFIGS)
    await until(lambda: is_in_sync(world))
    await _write(client, 1, KEY, 0)
    await until(lambda: {end_of(world, broker_id) for broker_id in world.machines} == {1})
    machine, *behind = world.machines.values()
    for other in behind:
        other.kill(power_cut=False)
    await until(lambda: isr_of(world) == {1})
    await trio.sleep(OPEN_S)  # the cleaner has begun to look
    world.work.slow_of[machine.host] = SLOW_S
    for number in range(1, FILLERS):
        await _write(client, 1, b"other%d" % (number % 3), number, FILLER_BYTES)
    await until(lambda: replicas(world, PLACE)[1].online_log().cleaning is not None)
    isolate(world, 1)
    for other in behind:
        await other.restart()
    await until(lambda: leader_of(world, other_than=1) is not None)
    leader = leader_of(world, other_than=1)
    assert leader is not None
    await _write(client, leader, KEY, FILLERS)
    world.work.slow_of.clear()  # what has begun is slow
    heal_all_of(world, 1)
    await until(lambda: is_in_sync(world) and not world.work.in_progress)
    await trio.sleep(CLEANED_S)
    check_copies(world)
    client.close()
    await world.stop()
