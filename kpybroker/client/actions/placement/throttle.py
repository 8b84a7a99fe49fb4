"""How fast moves copy: the settings that `kafka-reassign-partitions.sh --throttle` makes, and removes at the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kpybroker.client.actions.partitions import Place
from kpybroker.client.actions.placement.asking import by_topic
from kpybroker.client.actions.placement.plan import Replicas
from kpybroker.client.connect import raw_configs
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.wire import WireCluster

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
SET, DELETE = 0, 1
OF_COMMANDS: Final = frozenset((1, 2))
"""Sources of what was set for one topic or one broker."""


def start(wire: WireCluster, current: Replicas, plan: Replicas, rate: int) -> None:
    """No more than `rate` bytes a second, for each broker that is copied from or to. Raises CommandError."""
    for topic, numbers in by_topic(plan).items():
        sources = ",".join(f"{n}:{broker}" for n in numbers for broker in current[topic, n])
        targets = ",".join(
            f"{n}:{broker}" for n in numbers for broker in plan[topic, n] if broker not in current[topic, n]
        )
        values = [(LEADERS, SET, sources), (FOLLOWERS, SET, targets)]
        raw_configs.alter(wire, raw_configs.TOPIC, topic, [one for one in values if one[2]])
    for broker in sorted({one for found in (current, plan) for place in plan for one in found[place]}):
        if broker in wire.nodes:
            raw_configs.alter(wire, raw_configs.BROKER, str(broker), [(key, SET, str(rate)) for key in RATES])


def present(wire: WireCluster, topics: Iterable[str], moving: Iterable[Place]) -> list[tuple[str, str, str, str]]:
    """What `end` would remove: kind, name, key and value. Raises CommandError."""
    busy = by_topic(moving)
    wanted = [(raw_configs.TOPIC, "topic", sorted(set(topics) - busy.keys()), (LEADERS, FOLLOWERS))]
    if not busy:
        wanted += [(raw_configs.BROKER, "broker", [str(broker)], RATES) for broker in sorted(wire.nodes)]
    found = []
    for number, kind, names, keys in wanted:
        broker = wire.broker(int(names[0])) if kind == "broker" else None
        for name, entries in raw_configs.describe(wire, number, names, broker, keys=keys).items():
            if isinstance(entries, CommandError):
                raise CommandError(f"{kind} {name}: {entries.cause}", entries.fix, name=entries.name)
            found += [(kind, name, one.name, one.value) for one in entries if one.value and one.source in OF_COMMANDS]
    return found


def end(wire: WireCluster, topics: Iterable[str], moving: Iterable[Place], failures: Failures) -> None:
    """Remove the settings of those topics that have them and do not move; of brokers if nothing is `moving`."""
    busy = by_topic(moving)
    described = raw_configs.describe(wire, raw_configs.TOPIC, sorted(set(topics) - busy.keys()))
    for topic, found in described.items():
        if not isinstance(found, CommandError) and any(one.name in (LEADERS, FOLLOWERS) and one.value for one in found):
            _delete(wire, raw_configs.TOPIC, topic, (LEADERS, FOLLOWERS), failures)
    if not busy:
        for broker in sorted(wire.nodes):
            _delete(wire, raw_configs.BROKER, str(broker), RATES, failures)


def _delete(wire: WireCluster, kind: int, name: str, keys: tuple[str, ...], failures: Failures) -> None:
    try:
        raw_configs.alter(wire, kind, name, [(key, DELETE, None) for key in keys])
    except CommandError as error:
        failures.add(f"the throttle of {'topic' if kind == raw_configs.TOPIC else 'broker'} {name}", error)
