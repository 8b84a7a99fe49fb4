"""Looks into brokers and the tree while things go on: at what no client could see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import trio

from compat_tests.faults.history import History, Look, Partition, StateLook
from kpybroker.broker.replication.partition import Partition as Replica
from kpybroker.storage.log.log import Log
from kpybroker.wire import znodes
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records
from kpybroker.wire.znodes.paths import partition_state_path
from kpybroker.wire.znodes.topics import PartitionState, decode_partition_state, decode_topic
from tests.simulation.clients.client import now_ns
from tests.simulation.world import Machine, World

EVERY_S = 0.25
READ_BYTES = 1 << 20


def states(world: World) -> Iterator[tuple[Partition, int, PartitionState]]:
    """Of each partition in the tree: its name, the version of its state, and that."""
    nodes = world.store.image.nodes
    topics = nodes.get(znodes.TOPICS)
    for topic in sorted(topics.children if topics is not None else ()):
        partitions = nodes.get(f"{znodes.TOPICS}/{topic}/partitions")
        for index in sorted(partitions.children if partitions is not None else (), key=int):
            node = nodes.get(partition_state_path(topic, int(index)))
            if node is not None:
                yield (topic, int(index)), node.version, decode_partition_state(node.data)


def assigned(world: World, partition: Partition) -> list[int]:
    """The brokers that are to have it, as the tree says; none for a topic that is gone."""
    topic, index = partition
    node = world.store.image.nodes.get(f"{znodes.TOPICS}/{topic}")
    found = None if node is None else decode_topic(topic, node.data).partitions.get(index)
    return [] if found is None else list(found.replicas)


def running(world: World) -> list[Machine]:
    return [machine for machine in world.machines.values() if machine.broker is not None]


def replicas(world: World, partition: Partition) -> dict[int, Replica]:
    """By broker, those that run."""
    found: dict[int, Replica] = {}
    for machine in running(world):
        assert machine.broker is not None
        replica = machine.broker.replicas.partition(*partition)
        if replica is not None and replica.log is not None:
            found[machine.broker_id] = replica
    return found


def is_relied_on(world: World, broker_id: int) -> bool:
    """Whether an ISR has the broker next to others, so that it leads or may be elected."""
    return any(broker_id in state.isr and len(state.isr) > 1 for _, _, state in states(world))


def is_in_sync(world: World) -> bool:
    """Whether all brokers run, and every partition has all replicas in its ISR, the leader's view included."""
    return not_in_sync(world) is None


def not_in_sync(world: World) -> str | None:
    """The first thing that is not."""
    if len(running(world)) < len(world.machines):
        return f"only {[machine.broker_id for machine in running(world)]} run"
    for partition, _, state in states(world):
        found = replicas(world, partition)
        leader = found.get(state.leader)
        name = f"{partition[0]}-{partition[1]}"
        if leader is None or leader.leader is None or leader.leader_epoch != state.leader_epoch:
            return f"{name} is not led: {state}"
        if set(state.isr) != set(leader.replicas) or leader.isr != frozenset(state.isr):
            return f"{name}: {state}, its replicas are {leader.replicas}, the leader's ISR is {sorted(leader.isr)}"
        for broker_id in state.isr:
            # Power may have failed there, and it has not read again what it has lost.
            if broker_id not in found or found[broker_id].online_log().log_end_offset < leader.high_watermark:
                return f"{name} of {broker_id}, which is in the ISR, ends before {leader.high_watermark}"
    return None


def is_left_behind(world: World, replica: Replica, broker_id: int, state: PartitionState) -> bool:
    """Whether it was taken from the partition while its broker had no session, or could not be reached until that
    ended: no one says so to it later, and it stays where it is, as in Kafka with ZooKeeper.
    """
    machine = world.machines[broker_id]
    has_been_away = machine.starts > 1 or (machine.tree is not None and machine.tree.generation > 1)
    return broker_id not in state.isr and replica.leader_epoch < state.leader_epoch and has_been_away


class Observer:
    """Fills the looks of a history; `then` is what else looks so often. Topics that are made again and again, under one
    name, are `without` looks: `steps` sees which is which.
    """

    def __init__(self, world: World, history: History, then: Callable[[], None], without: Collection[str]) -> None:
        self._world, self._history, self._then, self._without = world, history, then, without

    async def run(self) -> None:
        while True:
            self.look()
            self._then()
            await trio.sleep(EVERY_S)

    def look(self) -> None:
        for partition, version, state in states(self._world):
            for broker_id, replica in replicas(self._world, partition).items():
                is_assigned = broker_id in assigned(self._world, partition)
                if not is_assigned and is_left_behind(self._world, replica, broker_id, state):
                    self._world.left_behind.add((broker_id, replica.topic_id, replica.index))
            if partition[0] in self._without:
                continue
            asked = now_ns()
            self._history.states[partition].append(
                StateLook(
                    *(asked, asked, version, state.leader, state.leader_epoch, state.controller_epoch),
                    frozenset(state.isr),
                )
            )
        for machine in running(self._world):
            assert machine.broker is not None
            for replica in machine.broker.replicas:
                self._look_at(machine.broker_id, replica)

    def _look_at(self, broker_id: int, replica: Replica) -> None:
        log, leader = replica.log, replica.leader
        if log is None or leader is None or replica.topic in self._without:
            return
        partition = replica.topic, replica.index
        self._history.heard[partition].setdefault(leader.partition_epoch, now_ns())
        if replica.lags_behind_epoch_start:
            return  # it does not know yet how far its log was committed, and says so to no client
        self._history.looks[partition].append(
            Look(
                *(now_ns(), broker_id, replica.leader_epoch),
                *(log.log_start_offset, log.high_watermark, log.log_end_offset),
            )
        )


def batches(log: Log, start: int, end: int) -> list[tuple[int, int, int]]:
    """(base offset, leader epoch, CRC) of the batches between two offsets."""
    found: list[tuple[int, int, int]] = []
    offset = start
    while offset < end:
        fetched = log.read(offset, READ_BYTES)
        if fetched.slice is None:
            break
        data = fetched.slice.read()
        fetched.slice.release()
        before = offset
        for _, header in iter_batches(data):
            if header.base_offset < end:
                found.append((header.base_offset, header.partition_leader_epoch, header.crc))
            offset = max(offset, header.next_offset)
        if offset == before:
            break
    return found


def latest(log: Log, end: int) -> dict[bytes, tuple[int, bytes | None]]:
    """Of each key below an offset the last record: where it is, and its value."""
    found: dict[bytes, tuple[int, bytes | None]] = {}
    offset = log.log_start_offset
    while offset < end and (data := log.read(offset, READ_BYTES).slice) is not None:
        content = data.read()
        data.release()
        for position, header in iter_batches(content):
            for record in iter_records(content, header, position):
                if record.offset < end and record.key is not None and not header.is_control:
                    value = None if record.value is None else bytes(record.value)
                    found[bytes(record.key)] = (record.offset, value)
            offset = max(offset, header.next_offset)
    return found


def check_copies(world: World) -> None:
    """Each replica's log up to its high watermark is the beginning of its leader's; of compacted logs, what is last."""
    for partition, _, state in states(world):
        found = replicas(world, partition)
        leader = found.pop(state.leader, None)
        if leader is None or leader.leader is None or leader.leader_epoch != state.leader_epoch:
            continue
        for broker_id, replica in found.items():
            if replica.leader_epoch != state.leader_epoch:
                continue
            mine, leaders = replica.online_log(), leader.online_log()
            end = min(mine.high_watermark, leaders.high_watermark, mine.log_end_offset)
            start = max(mine.log_start_offset, leaders.log_start_offset)
            if mine.config.compact:
                is_same = latest(mine, end) == latest(leaders, end)
            else:
                is_same = batches(mine, start, end) == batches(leaders, start, end)
            if not is_same:
                name = f"{partition[0]}-{partition[1]}"
                world.problem(f"copies differ: {name} of {broker_id} and of {state.leader} below {end}")
