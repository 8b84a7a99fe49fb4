"""Transactions of several stock clients, all the while that something is done to their brokers; then all is checked.

What was committed is there once, what was aborted is not, a transaction whose end is unknown is there whole or not at
all, and none is left open: of a history, as of the storms (`compat_tests/faults`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from compat_tests.eos.transaction_log import ends, is_commit
from compat_tests.faults.check import check
from compat_tests.faults.clients.readers import Follower, read_log
from compat_tests.faults.clients.transacting import WITH_OFFSETS, Transacting
from compat_tests.faults.clients.writers import Target
from compat_tests.faults.history import History, Partition
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.transactional import FRANZ, OF_VERSION_2
from compat_tests.support.waiting import eventually
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM

TOPIC = "written"
LIBRARIES = ("java-4.3.1", "java-3.9.1", "confluent")
LOADS = [
    pytest.param(LIBRARIES, id="java and confluent"),
    pytest.param((*LIBRARIES, FRANZ), id="and franz-go", marks=pytest.mark.wide),
]
GOES_ON = 3
DEADLINE_S = 240.0
"""For a few transactions, on a machine that is busy."""


class Load:
    """The clients, of these libraries; `with` starts them, and kills those that still run at the end."""

    def __init__(self, bootstrap: str, partitions: int, libraries: Sequence[str]) -> None:
        self.history = History()
        self._bootstrap = bootstrap
        self._partitions: list[Partition] = [(TOPIC, index) for index in range(partitions)]
        target = Target(bootstrap, TOPIC, partitions)
        self.writers = {library: Transacting(library, self.history, target) for library in libraries}
        self._follower = Follower(self.history, bootstrap, self._partitions, "read_committed")

    def __enter__(self) -> Load:
        for task in (*self.writers.values(), self._follower):
            task.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.stopping.set()
        for writer in self.writers.values():
            writer.kill()

    def renew_franz(self) -> None:
        """It stays in version 2 until it starts again."""
        if FRANZ in self.writers:
            self.writers[FRANZ].renew()

    def goes_on(self, when: str) -> None:
        """Everyone commits a few transactions more."""
        before = {library: writer.committed for library, writer in self.writers.items()}

        def all_have() -> bool:
            now = {library: writer.committed for library, writer in self.writers.items()}
            errors = {library: writer.errors[-2:] for library, writer in self.writers.items()}
            assert all(now[library] >= before[library] + GOES_ON for library in now), f"{before} -> {now}; {errors}"
            return True

        eventually(all_have, f"all commit, {when}", DEADLINE_S)

    def is_of_version(self, version: int) -> None:
        """Wait until those that know version 2 write transactions of `version`: in version 2 each has an epoch of its
        own. The others never do.
        """

        def is_used() -> bool:
            found = ends(self._bootstrap)
            for library in self.writers:
                before, last = found[library][-2:]
                if library in OF_VERSION_2:
                    is_bumped = (before.producer_id, before.producer_epoch) != (last.producer_id, last.producer_epoch)
                    assert (last.version, is_bumped) == (version, version == EPOCH_BUMP_FROM), (library, before, last)
                elif any(end.version for end in found[library] if is_commit(end)):
                    raise ValueError(f"{library} has no transactions of version 2")
            return True

        eventually(is_used, f"transactions of version {version}", DEADLINE_S)

    def finish(self) -> list[str]:
        """The clients end, and everything that is wrong."""
        for writer in self.writers.values():
            writer.stop()
        eventually(self._nothing_is_open, "the end of every transaction", DEADLINE_S)
        count = len(self._partitions)
        self.history.log |= read_log(self._bootstrap, TOPIC, count, "read_uncommitted")
        self.history.committed |= read_log(self._bootstrap, TOPIC, count, "read_committed")
        eventually(lambda: self._follower.has_all(self.history.committed), "the reader has read all", DEADLINE_S)
        self._follower.reader.finished = True
        self._follower.stop()
        return [*map(str, check(self.history)), *self._offsets()]

    def _nothing_is_open(self) -> bool:
        """Every last stable offset is the end of its log."""
        admin = quick.admin_client(self._bootstrap)
        ends = []
        for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            wanted = {TopicPartition(*partition): OffsetSpec.latest() for partition in self._partitions}
            asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=quick.DEADLINE_S)
            ends.append({(p.topic, p.partition): one.result(quick.DEADLINE_S).offset for p, one in asked.items()})
        stable, end = ends
        assert stable == end, f"stable {stable}, end {end}"
        return True

    def _offsets(self) -> list[str]:
        problems = []
        for library in WITH_OFFSETS:
            (found,) = quick.committed(self._bootstrap, library, [(TOPIC, 0)])
            possible = self.writers[library].offsets
            if found not in possible:
                problems.append(f"the group of {library} is at {found}, not in {possible}")
        return problems


def each_starts_again(cluster: Cluster, *, killed: bool) -> None:
    """One of its brokers that run after the other; every client connects again, and every coordinator moves."""
    running = [broker for broker in cluster.brokers.values() if broker.service.running]
    for broker in running:
        if killed:
            broker.kill()
            broker.start()
        else:
            broker.restart()
        cluster.wait_until_whole({one.node_id for one in running})
