"""The checks: what was seen, and what follows from it. Nothing is asked here.

A finding is `bad` where clients fail or records may be lost, and `warn` where it may come to that. Each names the page
on which the cause is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from kpybroker.client.actions.partitions import Partition
from kpybroker.client.show.cells import moment, size

NAMED_MAX: Final = 5
IMBALANCE_MAX: Final = 0.10
"""Of the partitions whose preferred leader a broker is, those that another one leads: Kafka's own default of
``leader.imbalance.per.broker.percentage``."""
FREE_WARN, FREE_BAD = 0.15, 0.05
"""The part of a disk that is free."""
FULL_WITHIN_S: Final = 24 * 3600.0
AHEAD_MS: Final = 5_000
GROWS_AFTER_S: Final = 20.0
"""How long a lag is watched before it can be said to grow."""
REPLICATION, TRANSACTIONS, LOG_DIRS = "/replication", "/transactions", "/log-dirs"


class Finding(NamedTuple):
    """What is not well: `kind` is bad or warn, `link` the page that shows it."""

    kind: str
    text: str
    link: str


class Check(NamedTuple):
    """One thing that was looked at. `said` is what was seen where nothing is wrong, `unknown` what cannot be known."""

    name: str
    said: str
    findings: Sequence[Finding] = ()
    unknown: str = ""

    @property
    def kind(self) -> str:
        """bad, warn, idle for not known, or good."""
        kinds = {one.kind for one in self.findings}
        return "bad" if "bad" in kinds else "warn" if kinds else "idle" if self.unknown else "good"


def counted(count: int, word: str) -> str:
    """`1 broker`, `2 brokers`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return ", ".join(found[:NAMED_MAX]) + more


def place_name(partition: Partition) -> str:
    """`orders-0`."""
    return f"{partition.topic}-{partition.number}"


# --- brokers and partitions


class Brokers(NamedTuple):
    """Those that Metadata names, those of them that do not respond, those that replicas name, and when each was seen
    last."""

    present: frozenset[int]
    silent: frozenset[int]
    of_replicas: Mapping[int, int]
    last_seen_ms: Mapping[int, int]
    controller: int | None


def brokers(seen: Brokers) -> Check:
    """Who should be there and is not: replicas name it, or the console has seen it."""
    found = []
    missing = sorted({*seen.of_replicas, *seen.last_seen_ms} - seen.present)
    for one in missing:
        replicas = seen.of_replicas.get(one, 0)
        at = moment(seen.last_seen_ms.get(one))
        last = f", seen last at {at}" if at else ""
        why = f"{counted(replicas, 'replica')} should be there" if replicas else "it holds no replica"
        found.append(Finding("bad" if replicas else "warn", f"broker {one} is missing: {why}{last}", REPLICATION))
    for one in sorted(seen.silent):
        found.append(Finding("bad", f"broker {one} does not respond", f"/brokers/{one}"))
    if seen.controller is None:
        found.append(Finding("bad", "there is no controller: no topic is created and no leader elected", REPLICATION))
    return Check("Brokers", f"{counted(len(seen.present), 'broker')}, all respond", found)


def partitions(everything: Sequence[Partition]) -> Check:
    """Offline and under-replicated ones."""
    offline = [one for one in everything if one.leader is None]
    behind = [one for one in everything if one.leader is not None and len(one.isr) < len(one.replicas)]
    found = []
    if offline:
        text = f"{counted(len(offline), 'partition')} without a leader: {some(map(place_name, offline))}"
        found.append(Finding("bad", text, REPLICATION))
    if behind:
        text = f"{counted(len(behind), 'partition')} under-replicated: {some(map(place_name, behind))}"
        found.append(Finding("warn", text, REPLICATION))
    return Check("Partitions", f"{counted(len(everything), 'partition')}, every replica in sync", found)


def leaders(everything: Sequence[Partition], present: frozenset[int]) -> Check:
    """Brokers that lead fewer of their preferred partitions than Kafka itself tolerates."""
    preferred: Counter[int] = Counter()
    elsewhere: Counter[int] = Counter()
    for one in everything:
        first = one.replicas[0] if one.replicas else None
        if first is not None and first in present:
            preferred[first] += 1
            elsewhere[first] += one.leader is not None and one.leader != first
    found = [
        Finding(
            "warn",
            f"broker {broker} should lead {counted(count, 'partition')}, and others lead {elsewhere[broker]} of them",
            REPLICATION,
        )
        for broker, count in sorted(preferred.items())
        if elsewhere[broker] > count * IMBALANCE_MAX
    ]
    return Check("Leaders", "preferred replicas lead", found)


def min_isr(everything: Sequence[Partition], minimum: Mapping[str, int], unknown: str) -> Check:
    """Partitions that take no records with ``acks=all``."""
    under = [one for one in everything if one.leader is not None and len(one.isr) < minimum.get(one.topic, 1)]
    found = []
    if under:
        text = f"{counted(len(under), 'partition')} under min.insync.replicas: {some(map(place_name, under))}"
        found.append(Finding("bad", f"{text}: producers with acks=all fail", REPLICATION))
    return Check("Min ISR", "every partition has min.insync.replicas in sync", found, unknown)


# --- groups, transactions, disks, clocks


class GroupLag(NamedTuple):
    """A group's lag, and by how much it has grown within so many seconds; None where it has not been seen to grow."""

    group: str
    lag: int
    grown: int | None
    seconds: float


def groups(lags: Sequence[GroupLag], total: int, watched_s: float, unknown: str) -> Check:
    """Groups whose lag is there and grows."""
    found = [
        Finding(
            "warn",
            f"group {one.group} lags by {one.lag}, and grew by {one.grown} within {one.seconds:.0f} s",
            f"/group?id={quote(one.group, safe='')}",
        )
        for one in sorted(lags, key=lambda one: -one.lag)
        if one.grown is not None
    ]
    left = f"; {total - len(lags)} were not asked" if total > len(lags) else ""
    if not unknown and lags and watched_s < GROWS_AFTER_S:
        unknown = f"whether a lag grows is known after {GROWS_AFTER_S:.0f} s of watching"
    return Check("Groups", f"{counted(len(lags), 'group')}, no lag grows{left}", found, unknown)


def transactions(hanging: Sequence[Mapping[str, Any]], older_than_s: float, unknown: str) -> Check:
    """Open transactions that no coordinator knows: they hold back readers of committed records for good."""
    found = [
        Finding(
            "bad",
            f"a transaction hangs in {one['topic']}-{one['partition']} since {moment(one['last_timestamp_ms'])}: "
            "readers of committed records wait behind it",
            f"{TRANSACTIONS}?topic={quote(one['topic'], safe='')}",
        )
        for one in hanging[:NAMED_MAX]
    ]
    if len(hanging) > NAMED_MAX:
        found.append(Finding("bad", f"and {len(hanging) - NAMED_MAX} more", TRANSACTIONS))
    return Check("Transactions", f"none hangs for more than {older_than_s / 60:.0f} minutes", found, unknown)


class Disk(NamedTuple):
    """A log directory; sizes are None where the broker does not say (before Kafka 3.3), `full_in_s` where it does not
    fill."""

    broker: int
    directory: str
    total: int | None
    usable: int | None
    is_offline: bool
    full_in_s: float | None = None


def disks(seen: Sequence[Disk], unknown: str) -> Check:
    """Directories that are offline, nearly full, or full within a day at the rate at which they fill now."""
    found = []
    for one in seen:
        where = f"broker {one.broker}, {one.directory}"
        if one.is_offline:
            found.append(Finding("bad", f"{where} is offline", LOG_DIRS))
        elif one.total and one.usable is not None:
            free = one.usable / one.total
            if free < FREE_WARN:
                kind = "bad" if free < FREE_BAD else "warn"
                found.append(Finding(kind, f"{where}: {size(one.usable)} of {size(one.total)} are free", LOG_DIRS))
            elif one.full_in_s is not None and one.full_in_s < FULL_WITHIN_S:
                hours = one.full_in_s / 3600
                found.append(Finding("warn", f"{where} is full in {hours:.1f} hours if it fills on as now", LOG_DIRS))
    if not unknown and any(one.total is None and not one.is_offline for one in seen):
        unknown = "these brokers do not say how large their disks are (Kafka does from 3.3 on)"
    said = "1 log directory" if len(seen) == 1 else f"{len(seen)} log directories"
    return Check("Disks", f"{said}, with room", found, unknown)


class Newest(NamedTuple):
    """The newest record of a partition, by its timestamp."""

    topic: str
    partition: int
    timestamp_ms: int


CLOCKS: Final = "Kafka's protocol has no request for a broker's time: a clock that is behind cannot be seen"


def clocks(newest: Newest | None, now_ms: int, unknown: str) -> Check:
    """A record from the future: the clock of its producer or broker is ahead of this machine's, or this one's is
    behind."""
    found = []
    if newest is not None and newest.timestamp_ms > now_ms + AHEAD_MS:
        ahead = (newest.timestamp_ms - now_ms) / 1000
        text = f"the newest record of {newest.topic}-{newest.partition} is {ahead:.0f} s ahead of this machine's clock"
        found.append(Finding("warn", text, f"/topics/{quote(newest.topic, safe='')}/messages"))
    return Check("Clocks", f"no record is from the future. {CLOCKS}", found, unknown)


# --- all of them


class Verdict(NamedTuple):
    """All checks, the worst first."""

    checks: Sequence[Check]

    @property
    def findings(self) -> list[Finding]:
        """Of all checks, bad ones first."""
        return sorted((one for check in self.checks for one in check.findings), key=lambda one: one.kind != "bad")

    @property
    def unknown(self) -> list[Check]:
        """Checks of which something is not known."""
        return [one for one in self.checks if one.unknown]

    @property
    def kind(self) -> str:
        """good only where nothing is wrong and all checks that can be made were made."""
        kinds = {one.kind for one in self.checks}
        return next((kind for kind in ("bad", "warn", "idle") if kind in kinds), "good")
