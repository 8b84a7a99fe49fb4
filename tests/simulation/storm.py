"""What happens in one seed's world: who is there, and which faults at which times. Drawn whole before it begins.

So a storm can be shrunk: a fault less, a client less, an earlier end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.simulation.clients.habits import NO_HABITS, Habits

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
    "pause",
    "full_disk",
    "cut_client",
)
"""`faults` has what each of them is."""

QUIET_S = 3.0
"""Before the first fault."""
UNCLEAN, TRIMS, CLEANS = 0.1, 0.5, 0.4
CLEANING = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "1500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "offsets.topic.segment.bytes": "12288",
    "transaction.state.log.segment.bytes": "12288",
    "share.coordinator.state.topic.segment.bytes": "12288",
}
"""Where logs are compacted, segments are small: the last one never is."""
VANISH, ARE_STATIC = 0.5, 0.3
GROUPS = ("member", "member", "consumer", "streamer", "sharer", None)
"""Of which kind the members of a group are, if there is one."""


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
    """`clients` are kinds, each followed by its number. `is_unclean`: a replica that was not in sync may be elected, so
    that what was acknowledged is lost. `trims`: records are deleted.
    """

    seed: int
    brokers: int = 3
    seconds: float = 60.0
    partitions: int = 2
    clients: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    keys: dict[str, str] = field(default_factory=dict)
    is_unclean: bool = False
    trims: bool = False
    habits: Habits = NO_HABITS

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
    is_unclean = count > 1 and chance.random() < UNCLEAN
    clients = _clients(chance, is_unclean=is_unclean)
    keys = {"log.segment.bytes": chance.choice(("1048576", "16384"))}
    if count == 1:
        keys["log.flush.interval.messages"] = "1"  # the only copy, and power may fail
    else:
        keys["min.insync.replicas"] = "2"
    if chance.random() < CLEANS:
        keys |= CLEANING
        clients.append("keyed1")
    partitions, trims = chance.randint(1, 3), chance.random() < TRIMS and not is_unclean
    of_members = random.Random(f"storm {seed} members")
    habits = Habits(of_members.random() < VANISH, of_members.random() < ARE_STATIC)
    return Storm(seed, count, seconds, partitions, tuple(clients), tuple(faults), keys, is_unclean, trims, habits)


def _clients(chance: random.Random, *, is_unclean: bool) -> list[str]:
    """Where acknowledged records may be lost, there are only those that can live with that."""
    clients = [f"producer{number}" for number in range(1, chance.randint(1, 3) + 1)]
    if not is_unclean:
        clients += [f"transactional{number}" for number in range(1, 3) if chance.random() < 0.5]
        if (kind := chance.choice(GROUPS)) is not None:
            clients += [f"{kind}{number}" for number in range(1, chance.randint(2, 3) + 1)]
    clients += [f"reader{number}" for number in range(1, chance.randint(1, 2) + 1)]
    clients += [f"{kind}1" for kind in ("operator", "tools") if chance.random() < 0.3]
    return clients
