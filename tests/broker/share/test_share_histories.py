"""Histories of a share group at one broker: members fetch, acknowledge, sleep and vanish, writes fail, leaders change.

Each record is delivered at least once, to one member at a time, and never again after it was accepted or rejected; what
is given up was delivered as often as the limit says.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import create_topic
from tests.support.share.members import Member, MemoryPersister, data_of, produce, share_broker

LOCK_S = 30.0
DELIVERIES_MAX = 5
MEMBERS = 3
STEPS = 25
GAP, ACCEPT, RELEASE, REJECT = range(4)
PASSING = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION]


class History:
    """What the group was given, and what it has said of it. Offsets are of partition 0."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[str, float]] = {}
        self.deliveries: dict[int, int] = {}
        self.done: set[int] = set()
        self.unsure: set[int] = set()
        """Acknowledged, with a failure in response: it may have been persisted or not."""

    def acquired(self, member: str, offset: int, count: int, since: float) -> None:
        """`since`: the member holds it from then on, or from later on."""
        now = trio.current_time()
        assert offset not in self.done, f"{offset} was delivered again"
        holder, until = self.held.get(offset, (member, now))
        assert holder == member or until <= now, f"{offset} is held by {holder} until {until}, not by {member} at {now}"
        assert 1 <= count <= DELIVERIES_MAX
        assert count <= self.deliveries.get(offset, 0) + 1
        self.deliveries[offset] = count
        self.held[offset] = (member, since + LOCK_S)

    def ended(self, member: str) -> None:
        self.held = {offset: held for offset, held in self.held.items() if held[0] != member}


class Actor:
    """One member that does what chance says."""

    def __init__(self, broker: Broker, topic_id: bytes, name: str, history: History, chance: random.Random) -> None:
        self.member = Member(broker, topic_id, name)
        self.broker = broker
        self.history = history
        self.chance = chance

    def mine(self) -> list[int]:
        now = trio.current_time()
        held = self.history.held.items()
        return sorted(offset for offset, (name, until) in held if name == self.member.member_id and until > now)

    async def step(self) -> None:
        match self.chance.randrange(8):
            case 0 | 1 | 2:
                await self.fetch({})
            case 3 | 4:
                await self.fetch(self.choose())
            case 5:
                await self.acknowledge(self.choose())
            case 6:
                await trio.sleep(self.chance.choice([1, 10, LOCK_S + 1]))
            case 7:
                self.vanish()

    def choose(self) -> dict[int, int]:
        mine = self.mine()
        some = self.chance.sample(mine, self.chance.randint(0, len(mine)))
        return {offset: self.chance.choice([ACCEPT, ACCEPT, RELEASE, REJECT]) for offset in sorted(some)}

    async def fetch(self, types: dict[int, int]) -> None:
        chance, member = self.chance, self.member
        if member.epoch == 0 or not types:
            types = {}
        acks = {0: [(offset, offset, [kind]) for offset, kind in types.items()]} if types else {}
        self.sending(types)
        began = trio.current_time()
        response = await member.fetch(
            acks=acks,
            max_wait_ms=chance.choice([0, 500, 5_000, 40_000]),
            max_records=chance.choice([1, 2, 5, 500]),
            share_acquire_mode=chance.randrange(2),
        )
        if response.error_code != ErrorCode.NONE:
            member.epoch = 0
            return
        data = data_of(response)
        if data is not None:
            # the response may have waited until what it acknowledges was persisted, and the locks with it
            since = began if types else trio.current_time()
            for row in data.acquired_records:
                for offset in range(row.first_offset, row.last_offset + 1):
                    self.history.acquired(member.member_id, offset, row.delivery_count, since)
            self.result(types, data.acknowledge_error_code)

    async def acknowledge(self, types: dict[int, int]) -> None:
        if self.member.epoch == 0 or not types:
            return
        self.sending(types)
        response = await self.member.acknowledge({0: [(offset, offset, [kind]) for offset, kind in types.items()]})
        if response.error_code != ErrorCode.NONE:
            self.member.epoch = 0
            return
        self.result(types, response.responses[0].partitions[0].error_code)

    def sending(self, types: dict[int, int]) -> None:
        """From now on others may get what is released."""
        for offset, kind in types.items():
            if kind == RELEASE:
                self.history.held.pop(offset, None)

    def result(self, types: dict[int, int], code: int) -> None:
        for offset, kind in types.items():
            if code == ErrorCode.NONE:
                self.history.held.pop(offset, None)
                if kind != RELEASE:
                    self.history.done.add(offset)
            else:
                self.history.unsure.add(offset)

    def vanish(self) -> None:
        self.history.ended(self.member.member_id)
        self.broker._disconnected(self.member.connection.connection_id)
        self.member.epoch = 0


async def take_all(member: Member, history: History) -> None:
    """Accept all that there is."""
    idle = 0
    while idle < 3:
        data = data_of(await member.fetch(max_wait_ms=100))
        rows = [] if data is None else data.acquired_records
        idle = 0 if rows else idle + 1
        for row in rows:
            for offset in range(row.first_offset, row.last_offset + 1):
                history.acquired(member.member_id, offset, row.delivery_count, trio.current_time())
            acknowledged = await member.acknowledge({0: [(row.first_offset, row.last_offset, [ACCEPT])]})
            assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.NONE
            history.done |= set(range(row.first_offset, row.last_offset + 1))


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(8, 100))])
async def test_histories(tmp_path: Path, autojump_clock: trio.testing.MockClock, seed: int) -> None:
    chance, history, persister = random.Random(seed), History(), MemoryPersister()
    async with share_broker(tmp_path, persister) as broker:
        topic_id = await create_topic(broker, "t")
        partition = broker.replicas.hosted("t", 0)
        produced = 0

        async def act(name: str) -> None:
            actor = Actor(broker, topic_id, name, history, chance)
            for _ in range(STEPS):
                await actor.step()
                await trio.sleep(chance.choice([0, 0.1]))
            actor.vanish()

        async def disturb() -> None:
            nonlocal produced
            for _ in range(STEPS):
                await trio.sleep(chance.choice([0.1, 1, 5]))
                match chance.randrange(9):
                    case 0 | 1 | 2:
                        count = chance.randint(1, 6)
                        produced = produce(broker, *[b"x"] * count) + count
                    case 3:
                        persister.errors.append(chance.choice(PASSING))
                    case 4 | 5 | 6:
                        persister.gate = trio.Event()
                        await trio.sleep(chance.choice([1, 5, 20]))
                        persister.gate.set()
                    case 7:
                        partition.follow(2, partition.leader_epoch + 1, [0, 2])
                        history.held.clear()
                        await trio.sleep(chance.choice([0, 1]))
                        history.held.clear()
                        partition.lead(partition.leader_epoch + 1, 1, [0], [0])

        async with trio.open_nursery() as nursery:
            for number in range(MEMBERS):
                nursery.start_soon(act, f"m{number}")
            nursery.start_soon(disturb)
        persister.errors.clear()
        await trio.sleep(LOCK_S + 1)
        history.held.clear()
        last = Member(broker, topic_id, "last")
        await take_all(last, history)
        # As Kafka's, a share partition that was loaded with a gap keeps its start until it has read beyond that.
        produced = produce(broker, b"x") + 1
        await take_all(last, history)
        for offset in set(range(produced)) - history.done - history.unsure:
            assert history.deliveries.get(offset) == DELIVERIES_MAX, f"{offset} was lost"
        (led,) = broker.coordinators.share_partitions.led
        assert led.machine is not None
        assert led.machine.in_flight == 0, list(led.machine.runs())
