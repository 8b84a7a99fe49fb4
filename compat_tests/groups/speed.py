"""`make bench-assignors`: 10 000 members and 10 000 partitions, in processor time of this thread.

    python -m compat_tests.groups.speed

Each kind of subscriptions three times: a first assignment, the same again, and after a tenth of the members has left.
Exits with 1 where all of it takes longer than TOTAL_S_MAX, or one slice, in which no one else can run, longer than
SLICE_MS_MAX. Garbage is collected as in a broker, and that counts in the slice in which it happens.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from kpybroker.cli.interpreter.garbage import THRESHOLDS, freeze
from kpybroker.core.assignors.by_name import ASSIGNORS
from kpybroker.core.assignors.values import (
    Assignment,
    Assignor,
    Member,
    MemberId,
    Members,
    Slices,
    TopicId,
    Topics,
)

MEMBERS, PARTITIONS = 10_000, 10_000
REPEATS = 3
SLICE_MS_MAX, TOTAL_S_MAX = 20.0, 3.0

Subscriptions = Callable[[tuple[TopicId, ...]], frozenset[TopicId]]
"""Of one member. Where all have the same it must be one object: 10 000 sets of 10 000 topics would take gigabytes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Of one assignment; `total_s` has all slices."""

    assignment: Assignment
    worst_ms: float
    total_s: float
    slices: int

    def __str__(self) -> str:
        return f"{self.total_s * 1000:5.0f} ms in {self.slices:4}, worst {self.worst_ms:4.1f}"


def take(assignor: Assignor, members: Members, topics: Topics) -> Taken:
    """The same slices several times, and the least of each, so that a busy machine matters little."""
    runs = [_timed(assignor(members, topics)) for _ in range(REPEATS)]
    times = [min(each) for each in zip(*(times for _, times in runs), strict=True)]
    return Taken(runs[0][0], max(times) * 1000, sum(times), len(times))


def _timed(slices: Slices[Assignment]) -> tuple[Assignment, list[float]]:
    times: list[float] = []
    while True:
        begun = time.thread_time()
        try:
            next(slices)
        except StopIteration as end:
            times.append(time.thread_time() - begun)
            return end.value, times
        times.append(time.thread_time() - begun)


def group(random: Random, topics: tuple[TopicId, ...], subscriptions: Subscriptions) -> dict[MemberId, Member]:
    return {f"{random.getrandbits(64):016x}": Member(topics=subscriptions(topics)) for _ in range(MEMBERS)}


def kinds(random: Random) -> dict[str, tuple[int, Subscriptions]]:
    """How many topics share the partitions, and what a member subscribes to."""
    some = [sorted(random.sample(range(100), 50)) for _ in range(10)]
    return {
        "one topic": (1, _all_of_it()),
        "100 topics": (100, _all_of_it()),
        "10 000 topics": (10_000, _all_of_it()),
        "100 topics, ten subscriptions": (100, lambda topics: frozenset(topics[n] for n in random.choice(some))),
        "100 topics, each its own": (100, lambda topics: frozenset(random.sample(topics, 20))),
    }


def _all_of_it() -> Subscriptions:
    @cache
    def all_of_it(topics: tuple[TopicId, ...]) -> frozenset[TopicId]:
        return frozenset(topics)

    return all_of_it


def main() -> int:
    """Print a line for each kind and assignor; 1 if any is too slow."""
    gc.set_threshold(*THRESHOLDS)
    random = Random(5)
    slow = False
    for kind, (count, subscriptions) in kinds(random).items():
        ids = tuple(number.to_bytes(16, "big") for number in range(count))
        topics = dict.fromkeys(ids, PARTITIONS // count)
        for name, assignor in ASSIGNORS.items():
            members = group(random, ids, subscriptions)
            gc.collect()
            freeze()
            first = take(assignor, members, topics)
            members = {each: replace(member, owned=first.assignment[each]) for each, member in members.items()}
            again = take(assignor, members, topics)
            for each in sorted(members)[: MEMBERS // 10]:
                del members[each]
            fewer = take(assignor, members, topics)
            slow |= any(taken.worst_ms > SLICE_MS_MAX or taken.total_s > TOTAL_S_MAX for taken in (first, again, fewer))
            print(f"{kind:30} {name:8} first {first} | again {again} | fewer {fewer}", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
