"""Loading lets others run: within a batch of many records, and while the members of a large group are started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import OffsetRecord, Record, RecordVersions, encode_record
from kpybroker.core.group.timers import Timers
from kpybroker.core.group.values import DescribeGroup
from kpybroker.core.modern_group.timers import MemberTimers
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.records.builder import build_batch
from kpybroker.wire.yield_budget import ELEMENT, SLICE_UNITS
from tests.support.brokers.fake_broker import FakeBroker, fake_broker
from tests.support.requests.large_groups import settled_classic_group, settled_consumer_group
from tests.support.time_slices import counted_time_slices

MEMBERS = 2_000
PER_SLICE_MAX = 2 * SLICE_UNITS // ELEMENT
"""Of one slice of the loading, or of two: trio decides at random which of two tasks runs first."""


def append(broker: FakeBroker, records: list[Record]) -> None:
    """One batch."""
    encoded = [(*encode_record(record, RecordVersions()), 0) for record in records]
    broker.partitions[0].append(ProducedBatches(build_batch(encoded), 0))


def small_groups(count: int) -> Iterator[Record]:
    for number in range(count):
        yield OffsetRecord(f"g{number}", ("t", 0), OffsetAndMetadata(number, -1, "", 0))
        yield settled_classic_group(f"h{number}", 1)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], int]], Counter[tuple[str, int]]]]:
    """Given what counts time slices, counts how often each piece of work was done in each of them."""
    done: Counter[tuple[str, int]] = Counter()
    slices: list[Callable[[], int]] = []

    def count(kind: type, name: str) -> None:
        plain = getattr(kind, name)

        def counting(self: object, *arguments: Any) -> Any:
            if slices:
                done[name, slices[0]()] += 1
            return plain(self, *arguments)

        monkeypatch.setattr(kind, name, counting)

    count(GroupMachine, "replay")
    count(MemberTimers, "start")
    count(Timers, "heartbeat")

    def begin(time_slices: Callable[[], int]) -> Counter[tuple[str, int]]:
        slices.append(time_slices)
        return done

    yield begin
    slices.clear()


@pytest.mark.parametrize(
    ("records", "replayed", "timer", "members"),
    [
        (list(settled_consumer_group("g", MEMBERS)), 3 * MEMBERS + 2, "start", MEMBERS),
        ([settled_classic_group("g", MEMBERS)], 1, "heartbeat", MEMBERS),
        (list(small_groups(MEMBERS)), 2 * MEMBERS, "heartbeat", MEMBERS),
    ],
    ids=["a consumer group", "a classic group", "small groups"],
)
async def test_others_run_while_groups_are_loaded(
    counted: Any, records: list[Record], replayed: int, timer: str, members: int
) -> None:
    async with fake_broker(leads=False) as broker, counted_time_slices() as slices:
        append(broker, records)
        done = counted(slices)
        await broker.lead()
        assert sum(count for (name, _), count in done.items() if name == "replay") == replayed
        assert sum(count for (name, _), count in done.items() if name == timer) == members
        assert max(done.values()) <= PER_SLICE_MAX
        assert len(broker.groups.list_groups((), ())[1]) == len({record.group_id for record in records})


async def test_leadership_that_is_lost_within_a_batch_ends_the_loading() -> None:
    async with fake_broker(leads=False) as broker, counted_time_slices() as slices:
        append(broker, list(settled_consumer_group("g", MEMBERS)))
        broker.groups.on_elected(0, 0)
        begun = slices()
        while slices() < begun + 5:
            await trio.lowlevel.checkpoint()
        broker.groups.on_resigned(0, 0)
        append(broker, [settled_classic_group("g", 1)])
        await broker.lead(0, 1)
        described = await broker.groups.ask(DescribeGroup("g"))
        assert (described.state, len(described.members)) == ("Stable", 1)


@pytest.mark.parametrize("group", [[settled_classic_group("g", 3)], list(settled_consumer_group("g", 3))])
async def test_members_that_never_come_are_gone_after_their_sessions(
    autojump_clock: trio.testing.MockClock, group: list[Record]
) -> None:
    """No request arrives that would make anyone look at the clock. Found by the play of members that vanish."""
    async with fake_broker(leads=False) as broker:
        append(broker, group)
        await broker.lead()
        (machine,) = broker.groups.partitions.machines
        assert not machine.groups["g"].is_empty
        await trio.sleep(60)
        await trio.sleep(60)  # the rebalance that the first end of a session has begun
        assert machine.groups["g"].is_empty
