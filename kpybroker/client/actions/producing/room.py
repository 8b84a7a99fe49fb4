"""`Room`: whether the target has the topics and partitions that records go to; with `--create` it makes them.

A producer would create a topic with the broker's defaults, or wait for one, and a record for a partition that the
target lacks cannot go elsewhere without losing its order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import ConfigResource, ConfigSource, NewPartitions, NewTopic

from kpybroker.client.actions.partitions import Topic
from kpybroker.client.connect.admin import POLL_S, Cluster
from kpybroker.client.connect.errors import CommandError, Failures

THROTTLES: Final = frozenset({"follower.replication.throttled.replicas", "leader.replication.throttled.replicas"})
"""Settings of a topic that name its replicas: no other topic has these."""
OF_THE_CLUSTER: Final = THROTTLES | {"min.insync.replicas", "unclean.leader.election.enable"}
"""Settings of a topic that belong to its brokers: a new topic in another cluster does not get them."""


class TargetTopic(NamedTuple):
    """A topic of the source, the name that its records have in the target, and how many partitions they need there."""

    source: Topic
    name: str
    partitions: int


class Room:
    """The partitions of the target's topics, as far as they are known.

    `address` is named in errors and fixes; `errors` is around what is asked of the target.
    """

    def __init__(
        self,
        target: Cluster,
        address: str,
        *,
        creates: bool,
        errors: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._target = target
        self._address = address
        self._creates = creates
        self._errors = errors
        self._counts: dict[str, int] = {}

    def prepare(self, source: Cluster, wanted: Sequence[TargetTopic], *, by_key: bool) -> None:
        """All topics and partitions are there afterwards. Raises CommandError, or SystemExit for what was reported."""
        self._refresh()
        missing = [one for one in wanted if one.name not in self._counts]
        if missing and not self._creates:
            failures = Failures()
            for one in missing:
                fix = f"kpybroker topic create {one.name} -p {len(one.source.partitions)} -b {self._address}"
                failures.add(
                    f"topic {one.name}",
                    CommandError(f"it does not exist in {self._address}", f"create it: {fix}; or let --create do it"),
                )
            raise SystemExit(failures.exit_code())
        if missing:
            self._create(source, missing)
        for one in wanted:
            self.require(one.name, 1 if by_key else one.partitions)

    def require(self, name: str, count: int) -> bool:
        """The topic has `count` partitions afterwards; whether this was news. Raises CommandError if it has not."""
        if self._counts.get(name, 0) >= count:
            return False
        self._refresh()
        has = self._counts.get(name, 0)
        if has >= count:
            return True
        if not self._creates or not has:
            raise CommandError(
                f"topic {name} has {has} partition{'s' if has != 1 else ''} in {self._address}, and {count} are needed",
                f"add them: kpybroker topic alter {name} -p {count} -b {self._address}; or let --create do it; "
                "or --by-key spreads records by their keys",
            )
        request = [NewPartitions(name, count)]
        with self._errors():
            self._target.result(self._target.admin.create_partitions(request, **self._target.timeouts)[name])
        self._wait_for({name: count})
        return True

    def has(self, name: str) -> bool:
        """Whether there is such a topic."""
        if name not in self._counts:
            self._refresh()
        return name in self._counts

    def create(self, name: str) -> None:
        """Make a topic with the target's own numbers and settings. Raises CommandError."""
        request = [NewTopic(name, -1, -1)]
        with self._errors():
            self._target.result(self._target.admin.create_topics(request, **self._target.timeouts)[name])
        self._wait_for({name: 1})

    def _create(self, source: Cluster, missing: Sequence[TargetTopic]) -> None:
        """As many partitions as the source has, its settings, and the target's number of replicas."""
        names = [ConfigResource(ConfigResource.Type.TOPIC, one.source.name) for one in missing]
        described = source.admin.describe_configs(names, **source.timeout)
        found = {key.name: source.result(future) for key, future in described.items()}
        request = [
            NewTopic(one.name, len(one.source.partitions), -1, config=own_settings(found[one.source.name]))
            for one in missing
        ]
        failures = Failures()
        with self._errors():
            results = self._target.results(self._target.admin.create_topics(request, **self._target.timeouts))
        for name, _, error in results:
            if error is not None and "TOPIC_ALREADY_EXISTS" not in error.cause:
                failures.add(f"topic {name}", error)
        if failures.exit_code():
            raise SystemExit(1)
        self._wait_for({one.name: len(one.source.partitions) for one in missing})

    def _wait_for(self, counts: Mapping[str, int]) -> None:
        """A controller responds before all brokers know."""
        end = time.monotonic() + self._target.settings.timeout_s
        while True:
            self._refresh()
            late = [name for name, count in counts.items() if self._counts.get(name, 0) < count]
            if not late:
                return
            if time.monotonic() > end:
                raise CommandError(f"topic {late[0]} was created, and the brokers of {self._address} do not show it")
            time.sleep(POLL_S)

    def _refresh(self) -> None:
        with self._errors():
            found = self._target.metadata().topics
        self._counts = {name: len(topic.partitions) for name, topic in found.items() if topic.partitions}


def own_settings(found: Mapping[str, Any], *, everything: bool = False) -> dict[str, str]:
    """What was set for a topic; without `everything`, for another cluster, not what belongs to its brokers."""
    return {
        key: entry.value
        for key, entry in found.items()
        if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        and key not in (THROTTLES if everything else OF_THE_CLUSTER)
    }


@contextmanager
def in_target(address: str) -> Iterator[None]:
    """Errors say that they are the target's, and their fixes name its options."""
    try:
        yield
    except CommandError as error:
        fix = error.fix.replace("-b HOST:PORT", "--to HOST:PORT").replace("--command-config", "--to-config")
        raise CommandError(f"target {address}: {error.cause}", fix, error.exit_code) from None
