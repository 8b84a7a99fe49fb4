"""What happens in one seed's world: who is there, and which faults at which times. Drawn whole before it begins.

So a storm can be shrunk: a fault less, a client less, an earlier end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import NamedTuple

KINDS = (
    "kill",
    "power",
    "stop",
    "cut",
    "cut_tree",
    "cut_peer",
    "slow",
    "reset",
    "expire",
    "clock",
    "slow_disk",
    "fsync",
)
"""`faults` has what each of them is."""

QUIET_S = 3.0
"""Before the first fault."""


class Fault(NamedTuple):
    """`broker` is who it happens to, `other` a peer of his; `draw` decides the rest."""

    at_s: float
    kind: str
    broker: int
    other: int
    for_s: float
    draw: float

    def __str__(self) -> str:
        return f"{self.at_s:.3f} {self.kind} broker {self.broker} other {self.other} for {self.for_s:.3f} s"


@dataclass(frozen=True, slots=True)
class Storm:
    """`clients` are kinds, each followed by its number."""

    seed: int
    brokers: int = 3
    seconds: float = 60.0
    partitions: int = 2
    clients: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    keys: dict[str, str] = field(default_factory=dict)

    def without(self, *, faults: tuple[Fault, ...] = (), client: str | None = None) -> Storm:
        return replace(
            self,
            faults=tuple(fault for fault in self.faults if fault not in faults),
            clients=tuple(name for name in self.clients if name != client),
        )


def draw(seed: int, *, seconds: float = 60.0, brokers: int | None = None, kinds: tuple[str, ...] = ()) -> Storm:
    """The storm of a seed: it has some kinds of faults and none of the others. `kinds`: those that it may have."""
    chance = random.Random(f"storm {seed}")
    count = chance.choice((1, 3, 3, 3)) if brokers is None else brokers
    swarm = [kind for kind in kinds or KINDS if chance.random() < 0.5]
    every_s = chance.choice((4.0, 8.0, 15.0))
    faults: list[Fault] = []
    at_s = QUIET_S
    while swarm and (at_s := at_s + chance.expovariate(1 / every_s)) < seconds:
        broker = chance.randint(1, count)
        other = chance.choice([number for number in range(1, count + 1) if number != broker] or [broker])
        faults.append(
            Fault(
                round(at_s, 3), chance.choice(swarm), broker, other, round(chance.uniform(0.2, 12), 3), chance.random()
            )
        )
    clients = [f"producer{number}" for number in range(1, chance.randint(1, 3) + 1)]
    clients += [f"transactional{number}" for number in range(1, 3) if chance.random() < 0.5]
    if chance.random() < 0.5:
        clients += [f"member{number}" for number in range(1, chance.randint(2, 3) + 1)]
    clients += [f"reader{number}" for number in range(1, chance.randint(1, 2) + 1)]
    keys = {"log.segment.bytes": chance.choice(("1048576", "16384"))}
    if count == 1:
        keys["log.flush.interval.messages"] = "1"  # the only copy, and power may fail
    else:
        keys["min.insync.replicas"] = "2"
    return Storm(seed, count, seconds, chance.randint(1, 3), tuple(clients), tuple(faults), keys)
