"""Transactions whose markers are late, arrive again, or are cut off."""

from __future__ import annotations

from compat_tests.faults.history import History, Outcome, Record, Transaction
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.simulation.checks.observer import is_in_sync, replicas
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Lost
from tests.simulation.clients.transactional import TRANSACTION, Transactional
from tests.simulation.plays.parts import (
    PLACE,
    end_of,
    heal_all_of,
    isolate,
    isr_of,
    judge,
    lead_again,
    leader_of,
    others,
    restart_all,
    write,
)
from tests.simulation.seams.agenda import until
from tests.simulation.world import World

UNDER_WAY_S = 3.0
"""Until a marker was tried."""


class _Scripted(Transactional):
    """Does one step after the other."""

    @property
    def coordinator_id(self) -> int:
        return self._coordinators[self.name, TRANSACTION]

    async def add(self) -> None:
        await self._add(PLACE)

    def next_batch(self) -> tuple[list[Record], bytes]:
        return self._next_batch(PLACE, is_transactional=True)

    async def write(self) -> list[Record]:
        records, batch = self.next_batch()
        await self._produce(PLACE, records, batch)
        return records

    async def send(self, records: list[Record], batch: bytes) -> None:
        """To the leader, which may be another one now."""
        self.forget(PLACE)
        await self._produce(PLACE, records, batch)

    async def commit(self, records: list[Record]) -> None:
        await self._end(commits=True)
        sent = tuple((PLACE, record) for record in records)
        self._history.transactions.append(Transaction(Outcome.COMMITTED, sent))

    async def mark(self, broker_id: int, *, commits: bool, version: int) -> ErrorCode:
        """A marker of the present epoch, as if it came from the coordinator. Raises `Lost`."""
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=PLACE[0], partition_indexes=[PLACE[1]])
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            transaction_result=commits,
            topics=[topic],
            transaction_version=version,
        )
        response = await self.ask(broker_id, WriteTxnMarkersRequest(markers=[marker]), version)
        (found,) = response.markers
        (of_topic,) = found.topics
        (of_partition,) = of_topic.partitions
        return ErrorCode(of_partition.error_code)


class _Scene:
    """One partition and one transactional producer, whose coordinator does not lead it where there are several."""

    def __init__(self, world: World, version: int) -> None:
        self.world, self.version = world, version
        self.history = History()
        self.administrator = Administrator(world, "administrator")

    async def begin(self, **configs: str) -> _Scripted:
        world = self.world
        await world.start()
        await self.administrator.create_topic(PLACE[0], 1, len(world.machines), **configs)
        await until(lambda: leader_of(world) is not None)
        number = 0
        while True:
            number += 1
            producer = _Scripted(world, self.history, f"transactional{number}", [PLACE], version=self.version)
            await producer.init()
            if len(world.machines) == 1 or producer.coordinator_id != leader_of(world):
                await until(lambda: is_in_sync(world))
                return producer
            producer.close()

    async def end(self, producer: _Scripted) -> None:
        world = self.world
        await until(lambda: is_in_sync(world) and not is_open(world))
        await judge(world, self.history)
        for client in (self.administrator, producer):
            client.close()
        await world.stop()


def is_open(world: World) -> bool:
    """Whether a transaction of the partition has no end yet."""
    leader = leader_of(world)
    if leader is None:
        return True
    log = replicas(world, PLACE)[leader].online_log()
    return log.last_stable_offset < log.log_end_offset


async def repeat_marker(world: World) -> None:
    """The marker of a transaction arrives once more when the next one is open: it does not end that."""
    scene = _Scene(world, version=2)
    producer = await scene.begin()
    await producer.commit(await producer.write())
    records = await producer.write()
    if (error := await producer.mark(1, commits=True, version=2)) is ErrorCode.NONE:
        world.problem("marker: one of the present epoch has ended the transaction of that epoch")
    producer.note(f"its marker is refused: {error.name}")
    await producer.commit(records)
    await scene.end(producer)


async def commit_below_min_isr(world: World) -> None:
    """A transaction is committed while the leader of what it wrote takes nothing: the marker comes later, but comes."""
    scene = _Scene(world, version=1)
    producer = await scene.begin(min_insync_replicas="3")
    third = await _decide(scene, producer)
    await producer.pause(UNDER_WAY_S)
    await restart_all(world, [world.machines[third]])
    await scene.end(producer)


async def decide_and_die(world: World) -> None:
    """And its coordinator dies before that: the next one goes on."""
    scene = _Scene(world, version=1)
    producer = await scene.begin(min_insync_replicas="3")
    third = await _decide(scene, producer)
    dead = [world.machines[third], world.machines[producer.coordinator_id]]
    dead[1].kill(power_cut=False)
    await restart_all(world, dead)
    await scene.end(producer)


async def _decide(scene: _Scene, producer: _Scripted) -> int:
    """Commit while too few replicas are in sync. The broker that was killed for that."""
    world = scene.world
    await producer.add()
    records = await producer.write()
    leader = leader_of(world)
    third = next(key for key in world.machines if key not in (leader, producer.coordinator_id))
    world.machines[third].kill(power_cut=False)
    await until(lambda: len(isr_of(world)) == 2)
    await producer.commit(records)
    return third


async def abort_and_be_cut(world: World) -> None:
    """A leader that is isolated has a batch and the marker that aborts its transaction. Both are cut off, and the
    transaction goes on with the next leader and is committed. Then the first one leads again.
    """
    scene = _Scene(world, version=1)
    producer = await scene.begin()
    first = leader_of(world)
    assert first is not None
    await producer.add()
    before = await producer.write()
    await until(lambda: is_in_sync(world))
    isolate(world, first)
    records, batch = producer.next_batch()
    await write(producer, first, batch, acks=1, transactional_id=producer.name)
    end = end_of(world, first)
    try:
        await producer.mark(first, commits=False, version=1)
    except Lost:
        pass  # it waits for the others to have it
    assert end_of(world, first) > end
    await until(lambda: leader_of(world, other_than=first) is not None)
    await producer.send(records, batch)
    await producer.commit([*before, *records])
    heal_all_of(world, first)
    await lead_again(world, scene.administrator, first)
    await scene.end(producer)


async def be_cut_uncleanly(world: World) -> None:
    """A leader that is alone has the marker of a transaction. One that has not got it is elected: it is open again."""
    scene = _Scene(world, version=1)
    producer = await scene.begin(unclean_leader_election_enable="true")
    first = leader_of(world)
    assert first is not None
    await producer.add()
    await producer.write()
    await until(lambda: len({end_of(world, broker_id) for broker_id in world.machines}) == 1)
    for other in others(world, first):
        other.kill(power_cut=False)
    await until(lambda: isr_of(world) == {first})
    assert await producer.mark(first, commits=True, version=1) is ErrorCode.NONE
    assert not is_open(world)
    isolate(world, first)
    for other in others(world, first):
        await other.restart()
    await until(lambda: leader_of(world, other_than=first) is not None)
    heal_all_of(world, first)
    await until(lambda: is_in_sync(world))
    stable = {key: replica.online_log().last_stable_offset for key, replica in replicas(world, PLACE).items()}
    if len(set(stable.values())) > 1:
        world.problem(f"last stable offset: by broker {stable}")
    for client in (scene.administrator, producer):
        client.close()
    await world.stop()
