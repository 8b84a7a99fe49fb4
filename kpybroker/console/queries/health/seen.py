"""Asks the cluster what the checks judge. `quick` is part of the front page; `thorough` is asked after it is shown.

What the console's user may not ask, or what a broker does not say, is a check that is not known, with the reason.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kpybroker.client.actions import transactions
from kpybroker.client.actions.groups import describe_groups, lags_of, list_groups
from kpybroker.client.actions.partitions import Partition
from kpybroker.client.connect import raw_configs
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.wire import WireCluster, WireError
from kpybroker.client.doctor import state
from kpybroker.console.queries.health import checks, memory
from kpybroker.console.queries.health.checks import Brokers, Check, Disk, Newest, Verdict
from kpybroker.console.queries.samples import Samples
from kpybroker.console.queries.topics import all_topics
from kpybroker.console.queries.transactions import HANGING_S

FRESH_S: Final = 10.0
"""How long a thorough look serves all viewers."""
TOPICS_MAX: Final = 5000
"""Topics whose min.insync.replicas is asked for."""
PLACES_MAX: Final = 10_000
"""Partitions whose producers and newest records are asked for."""
GROUPS_MAX: Final = 200
GROUPS_S_MAX: Final = 3.0
MIN_ISR: Final = "min.insync.replicas"

T = TypeVar("T")


class Health:
    """What is kept between two looks, for all viewers."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.brokers = memory.SeenBrokers()
        self.kept: memory.Kept[Sequence[Check]] = memory.Kept(FRESH_S)

    def thorough(self, cluster: Cluster) -> Verdict:
        """All checks that take a while. Raises CommandError."""
        return Verdict(self.kept.get(lambda: _thorough(cluster, self.samples)))


def quick(cluster: Cluster, health: Health, found: Mapping[str, Any]) -> Verdict:
    """What Metadata and the log directories say. `found` is `storage.described`. Raises CommandError."""
    metadata = cluster.metadata()
    everything = _partitions(metadata)
    present = frozenset(metadata.brokers)
    now_ms = time.time_ns() // 1_000_000
    brokers = Brokers(
        present,
        frozenset(row["broker"] for row in found["brokers"] if row["looks_like"] is None) & present,
        Counter(broker for one in everything for broker in one.replicas),
        health.brokers.saw(present, now_ms),
        found["controller"],
    )
    return Verdict(
        [
            checks.brokers(brokers),
            checks.partitions(everything),
            checks.leaders(everything, present),
            checks.disks(_disks(found, health.samples), _not_said(found)),
        ]
    )


def _partitions(metadata: Any) -> list[Partition]:
    return [one for topic in all_topics(metadata) for one in topic.partitions]


def _disks(found: Mapping[str, Any], samples: Samples) -> list[Disk]:
    disks = []
    for row in found["directories"]:
        key = f"disk/{row['broker']}/{row['directory']}"
        if row["usable"] is not None:
            samples.add(key, row["usable"])
        is_offline, full_in_s = row["error"] is not None, memory.full_in_s(samples.points(key))
        disks.append(Disk(row["broker"], row["directory"], row["total"], row["usable"], is_offline, full_in_s))
    return disks


def _not_said(found: Mapping[str, Any]) -> str:
    silent = [str(row["broker"]) for row in found["brokers"] if row["disk"] is None]
    if not silent:
        return ""
    return f"broker {checks.some(silent)} did not say; the console's user needs Describe on the cluster"


# --- what takes longer


class _Found(NamedTuple):
    wire: WireCluster
    everything: Sequence[Partition]


def _thorough(cluster: Cluster, samples: Samples) -> list[Check]:
    everything = _partitions(cluster.metadata())
    with cluster.wire() as wire:
        found = _Found(wire, everything)
        minimum, isr_unknown = _known(lambda: _minimum(found))
        hanging, unknown = _known(lambda: _hanging(found))
        newest, clock_unknown = _known(lambda: _newest(found))
    lags, total, watched_s, groups_unknown = _lags(cluster, samples)
    now_ms = time.time_ns() // 1_000_000
    return [
        checks.min_isr(everything, minimum or {}, isr_unknown),
        checks.groups(lags, total, watched_s, groups_unknown),
        checks.transactions(hanging or [], HANGING_S, unknown),
        checks.clocks(newest, now_ms, clock_unknown),
    ]


def _known(ask: Callable[[], T]) -> tuple[T | None, str]:
    """What was asked for, or None and why it is not known. Raises WireError."""
    try:
        return ask(), ""
    except WireError:
        raise
    except CommandError as error:
        return None, error.cause


def _minimum(found: _Found) -> dict[str, int]:
    names = sorted({one.topic for one in found.everything})
    if len(names) > TOPICS_MAX:  # then only those that can be under it: others have all of their replicas in sync
        names = sorted({one.topic for one in found.everything if len(one.isr) < len(one.replicas)})[:TOPICS_MAX]
    minimum, refused = {}, None
    for name, entries in raw_configs.describe(found.wire, raw_configs.TOPIC, names, keys=[MIN_ISR]).items():
        if isinstance(entries, CommandError):
            refused = entries
        else:
            minimum[name] = next((int(one.value) for one in entries if one.name == MIN_ISR and one.value), 1)
    if refused is not None:
        raise CommandError(f"{refused.cause}; it needs DescribeConfigs on each topic")
    return minimum


def _few_enough(found: _Found) -> None:
    if len(found.everything) > PLACES_MAX:
        count = len(found.everything)
        raise CommandError(f"there are {count} partitions, and more than {PLACES_MAX} are not asked")


def _hanging(found: _Found) -> list[dict[str, Any]]:
    _few_enough(found)
    failures = Failed()
    rows = transactions.hanging_rows(found.wire, None, HANGING_S, failures)
    if failures.first is not None and not rows:
        raise failures.first
    return rows


class Failed(Failures):
    """Keeps the first failure, and reports none."""

    def __init__(self) -> None:
        super().__init__(silent=True)
        self.first: CommandError | None = None

    def add(self, item: str, error: CommandError) -> dict[str, str]:
        """Count it."""
        self.first = self.first or CommandError(f"{item}: {error.cause}", error.fix, name=error.name)
        return super().add(item, error)


def _newest(found: _Found) -> Newest | None:
    """The newest record of all partitions. Raises CommandError where brokers are too old to say."""
    _few_enough(found)
    latest_ms = time.time_ns() // 1_000_000 + checks.AHEAD_MS
    newest: Newest | None = None
    for broker in sorted(found.wire.nodes):
        led: dict[str, list[int]] = {}
        for one in found.everything:
            if one.leader == broker:
                led.setdefault(one.topic, []).append(one.number)
        for row in state.newest_records(found.wire.broker(broker), led, latest_ms):
            if row.timestamp_ms >= 0 and (newest is None or row.timestamp_ms > newest.timestamp_ms):
                newest = Newest(row.topic, row.partition, row.timestamp_ms)
    return newest


def _lags(cluster: Cluster, samples: Samples) -> tuple[list[checks.GroupLag], int, float, str]:
    """The lags of the first GROUPS_MAX groups, of how many, for how long they were watched, and why not."""
    failures = Failed()
    try:
        names = sorted(list_groups(cluster, failures))
        described = describe_groups(cluster, names[:GROUPS_MAX], failures)
    except WireError:
        raise
    except CommandError as error:
        return [], 0, 0.0, error.cause
    lags = []
    for name, behind in lags_of(cluster, described, failures).items():
        if behind is not None:
            samples.add(f"lag/{name}", behind.lag)
            lags.append(memory.lag_of(name, samples.points(f"lag/{name}")))
    unknown = failures.first.cause if failures.first is not None else ""
    return lags, len(names), max((one.seconds for one in lags), default=0.0), unknown
