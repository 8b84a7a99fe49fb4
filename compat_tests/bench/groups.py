"""`make bench-groups`: how long a hundred members of one group need to settle, on Kafka and on kpybroker.

    python -m compat_tests.bench.groups [--rounds 7] [--members 100] [--only 'new, bare']

Four crowds. Of the classic protocol, next to Kafka 3.9.1: bare connections that send a heartbeat every 100 ms, on the
stock server.properties (`group.initial.rebalance.delay.ms=0`, so that generations overtake each other), which show the
broker's share; and confluent-kafka consumers as they come, on Kafka's default delay of 3 s: their heartbeats every 3 s
and the delay are most of it; without the delay it is luck whether a first, small generation has to be ended by them.
Of the new protocol (KIP-848), next to Kafka 4.3.1: the same two, on as many partitions as members; bare connections
with heartbeats every 100 ms and no pause between assignments, confluent-kafka with the brokers' defaults, 5 s and 1 s.
Three figures each: all join at once, until all hold an assignment of one generation, or own all partitions between
them; half leave at once, until the rest does; all leave at once, until the group is empty. Both brokers run all the
time and nothing is pinned; the rounds alternate, one of each broker is not counted. Exits with 1 when a median of ours
is above 1.2 × that of Kafka, or 2 × for the new protocol.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import trio
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.bench.measuring.brokers import (
    KAFKA_4,
    KIND_NAMES,
    Cores,
    Measured,
    both_brokers,
    both_brokers_of_kafka_4,
    compile_sources,
    scratch_directory,
)
from compat_tests.support.groups.crowd import Crowd
from compat_tests.support.groups.new_crowd import NewCrowd
from compat_tests.support.quick import QUIET, admin_client, create_topic
from kpybroker.config.development import QUICK_GROUPS

RATIO_MAX, NEW_RATIO_MAX = 1.2, 2.0
HEARTBEAT_S = 0.1
POLL_S = 0.002
DEADLINE_S = 120.0
FIGURES = ("all join", "half leave", "all leave")

EMPTY = "Empty"

Times = tuple[float, ...]
C = TypeVar("C", Crowd, NewCrowd)


def raw_crowd(broker: Measured, group: str, count: int) -> Times:
    async def is_empty(crowd: Crowd) -> bool:
        return (await crowd.described())[0] == EMPTY

    return _laps(lambda nursery: Crowd(nursery, broker.port, group, HEARTBEAT_S), is_empty, count)


def new_raw_crowd(broker: Measured, group: str, count: int) -> Times:
    async def is_empty(crowd: NewCrowd) -> bool:
        return await crowd.state() == EMPTY

    create_topic(broker.bootstrap, group, count)
    return _laps(lambda nursery: NewCrowd(nursery, broker.port, group, group, count), is_empty, count)


def _laps(new_crowd: Callable[[trio.Nursery], C], is_empty: Callable[[C], Awaitable[bool]], count: int) -> Times:
    """All join, half leave, all leave."""

    async def scenario() -> Times:
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                crowd = new_crowd(nursery)
                members: list[Any] = await crowd.connect(count)
                watch = Stopwatch()
                crowd.start(members)
                await crowd.settled()
                watch.lap()
                await crowd.leave(members[::2])
                await crowd.settled()
                watch.lap()
                await crowd.leave(members[1::2])
                while not await is_empty(crowd):
                    await trio.lowlevel.checkpoint()
                watch.lap()
                nursery.cancel_scope.cancel()
        return watch.laps

    return trio.run(scenario)


class Stopwatch:
    def __init__(self) -> None:
        self.laps: Times = ()
        self._since = time.perf_counter()

    def lap(self) -> None:
        now = time.perf_counter()
        self.laps += (now - self._since,)
        self._since = now


def stock_consumers(broker: Measured, group: str, count: int, protocol: str = "classic") -> Times:
    create_topic(broker.bootstrap, group, count)
    admin = admin_client(broker.bootstrap)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol, **QUIET}
    consumers = [Consumer(settings) for _ in range(count)]
    watch = Stopwatch()
    for consumer in consumers:
        consumer.subscribe([group])
    _poll_until(consumers, partial(_shared, consumers, group, count))
    watch.lap()
    _close(consumers[::2])
    _poll_until(consumers[1::2], partial(_shared, consumers[1::2], group, count))
    watch.lap()
    _close(consumers[1::2])
    end = time.monotonic() + DEADLINE_S
    while not _is_empty(admin, group):
        assert time.monotonic() < end, "the group did not become empty"
    watch.lap()
    return watch.laps


def _poll_until(consumers: list[Consumer], done: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while True:
        for consumer in consumers:
            consumer.poll(0)
        if done():
            return
        assert time.monotonic() < end, "the consumers did not settle"
        time.sleep(POLL_S)


def _shared(consumers: list[Consumer], topic: str, partitions: int) -> bool:
    """Every partition has one owner and every consumer as many as the others."""
    owned = [consumer.assignment() for consumer in consumers]
    if len({len(parts) for parts in owned}) != 1:
        return False
    everything = {TopicPartition(topic, n).partition for n in range(partitions)}
    return sorted(part.partition for parts in owned for part in parts) == sorted(everything)


def _close(consumers: list[Consumer]) -> None:
    """Their leaves are sent before any of their ends is waited for."""
    for consumer in consumers:
        consumer.unsubscribe()
    for consumer in consumers:
        consumer.close()


def _is_empty(admin: AdminClient, group: str) -> bool:
    described = admin.describe_consumer_groups([group])[group].result(timeout=DEADLINE_S)
    return bool(described.state.name == "EMPTY")


class CrowdKind(NamedTuple):
    """`keys` are those of both brokers' configuration."""

    name: str
    run: Callable[[Measured, str, int], Times]
    reference: str
    brokers: Callable[[Path, Cores, Mapping[str, str]], AbstractContextManager[Mapping[str, Measured]]]
    keys: Mapping[str, str]
    ratio_max: float


DELAY = "group.initial.rebalance.delay.ms"
OF_3_9, OF_4 = (KIND_NAMES["kafka"], both_brokers), (KAFKA_4, both_brokers_of_kafka_4)
CROWDS = (
    CrowdKind("classic, bare connections", raw_crowd, *OF_3_9, {DELAY: "0"}, RATIO_MAX),
    CrowdKind("classic, confluent-kafka", stock_consumers, *OF_3_9, {DELAY: "3000"}, RATIO_MAX),
    CrowdKind("new, bare connections", new_raw_crowd, *OF_4, QUICK_GROUPS, NEW_RATIO_MAX),
    CrowdKind("new, confluent-kafka", partial(stock_consumers, protocol="consumer"), *OF_4, {}, NEW_RATIO_MAX),
)


def describe(crowd: CrowdKind, times: Mapping[str, list[Times]]) -> tuple[list[str], bool]:
    """Rows of a table, and whether every ratio is within the bar."""
    rows, met = [], True
    for index, figure in enumerate(FIGURES):
        kafkas, ours = ([one[index] * 1000 for one in times[kind]] for kind in KIND_NAMES)
        ratio = statistics.median(ours) / statistics.median(kafkas)
        is_met = ratio <= crowd.ratio_max
        met = met and is_met
        cells = (f"{statistics.median(ms):,.0f} ({min(ms):,.0f} to {max(ms):,.0f})" for ms in (kafkas, ours))
        rows.append(
            f"| {crowd.name}: {figure} | {crowd.reference} | {' | '.join(cells)} | "
            f"{ratio:.2f}{'' if is_met else ' **over**'} |"
        )
    return rows, met


def measure(crowd: CrowdKind, directory: Path, rounds: int, members: int) -> tuple[list[str], bool]:
    times: dict[str, list[Times]] = {kind: [] for kind in KIND_NAMES}
    with crowd.brokers(directory, Cores.shared(), crowd.keys) as brokers:
        for number in range(rounds + 1):
            for kind, broker in brokers.items():
                taken = crowd.run(broker, f"crowd-{number}", members)
                print(f"{kind} {crowd.name} {[f'{one:.3f}' for one in taken]}", file=sys.stderr, flush=True)
                if number > 0:
                    times[kind].append(taken)
    return describe(crowd, times)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds [7]")
    parser.add_argument("--members", type=int, default=100, help="members [100]")
    parser.add_argument("--only", default="", help="only the crowds with this in their name")
    parser.add_argument("--dir", help="where the brokers keep their files [the system's temporary directory]")
    options = parser.parse_args()
    compile_sources()
    table = [
        f"| ms, median (range) of {options.rounds} | next to | Kafka | kpybroker | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    all_met = True
    with scratch_directory(options.dir) as scratch:
        for crowd in CROWDS:
            if options.only in crowd.name:
                directory = scratch / crowd.name.replace(", ", "-").replace(" ", "-")
                directory.mkdir()
                rows, met = measure(crowd, directory, options.rounds, options.members)
                table += rows
                all_met = all_met and met
    print("\n".join(table))
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
