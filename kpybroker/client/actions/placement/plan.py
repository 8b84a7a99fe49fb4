"""Where replicas go: spread over brokers, or as a file of `kafka-reassign-partitions.sh` says. Nothing is asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from kpybroker.client.actions.partitions import Place
from kpybroker.client.connect.errors import usage

Replicas = Mapping[Place, Sequence[int]]
"""The brokers of each partition, the preferred leader first."""

BROKER_DIGITS_MAX = 9
FORM = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}'


def spread(current: Replicas, brokers: Sequence[int], replicas: int | None = None) -> dict[Place, list[int]]:
    """Each partition on some of the brokers, with as many replicas as it has, or `replicas`. Raises CommandError.

    What is there stays, so that little is copied; the rest goes where the fewest of these partitions are. A partition
    that changes is led by the one of its brokers that leads the fewest.
    """
    held: Counter[int] = Counter(broker for found in current.values() for broker in found if broker in brokers)
    leads: Counter[int] = Counter()
    order = {broker: index for index, broker in enumerate(brokers)}
    made: dict[Place, list[int]] = {}
    for place in sorted(current):
        count = replicas or len(current[place])
        if count > len(brokers):
            raise usage(
                f"{place[0]}-{place[1]} has {count} replicas, and {len(brokers)} brokers are named",
                "name more brokers: --to; or fewer replicas: --replicas",
            )
        kept = [broker for broker in current[place] if broker in order]
        for broker in kept[count:]:
            held[broker] -= 1
        chosen = kept[:count]
        while len(chosen) < count:
            broker = min((one for one in brokers if one not in chosen), key=lambda one: (held[one], order[one]))
            held[broker] += 1
            chosen.append(broker)
        if chosen != list(current[place]):
            leader = min(chosen, key=lambda one: (leads[one], chosen.index(one)))
            chosen = [leader, *(one for one in chosen if one != leader)]
        leads[chosen[0]] += 1
        made[place] = chosen
    return made


def parse_brokers(texts: Iterable[str]) -> list[int]:
    """`1,2,3`. Raises CommandError."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) <= BROKER_DIGITS_MAX):
            raise usage(f"{part[:100]!r} is no id of a broker", "write ids with commas: --to 1,2,3")
    brokers = [int(part) for part in parts]
    if len(set(brokers)) < len(brokers):
        raise usage("a broker is named twice", "name each broker once")
    return brokers


def load(text: str) -> dict[Place, list[int]]:
    """A plan of `kafka-reassign-partitions.sh`. Raises CommandError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise usage(f"the plan is not JSON: {error}", f"write it like {FORM}") from None
    made: dict[Place, list[int]] = {}
    parts = found.get("partitions") if isinstance(found, dict) else None
    if not isinstance(parts, list) or not parts:
        raise usage("the plan has no partitions", f"write it like {FORM}")
    for part in parts:
        place, replicas = _part(part)
        if place in made:
            raise usage(f"the plan has {place[0]}-{place[1]} twice", "name each partition once")
        made[place] = replicas
    return made


def _part(part: Any) -> tuple[Place, list[int]]:
    given = part if isinstance(part, dict) else {}
    topic, number, replicas = given.get("topic"), given.get("partition"), given.get("replicas")
    if isinstance(topic, str) and _is_id(number) and isinstance(replicas, list) and _are_brokers(replicas):
        return (topic, number), replicas
    cause = f"the plan has {json.dumps(part)[:100]}, which is no partition with its brokers"
    raise usage(cause, f"write it like {FORM}")


def _are_brokers(values: list[Any]) -> bool:
    return bool(values) and all(map(_is_id, values)) and len(set(values)) == len(values)


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def dump(plan: Replicas) -> str:
    """The plan as that tool reads it."""
    parts = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for (topic, number), replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": parts}) + "\n"
