"""A transactional copier (`compat_tests/eos`) on the cluster: a group that copies `source` to `target` exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from compat_tests.eos import check as eos
from compat_tests.eos.copiers import CONFLUENT, JAVA, Copier, Task
from compat_tests.eos.readers import Reader, read_to_end
from compat_tests.support.quick import committed
from compat_tests.support.waiting import eventually

SOURCE, TARGET, GROUP = "source", "target", "copiers"
PARTITIONS = range(2)
END_S = 180.0
STUCK_S = 15.0


class Copying:
    """One copier at a time. Who gives up, which after a long absence of its broker it may, has a successor; so has who
    does not get on, as client libraries have calls that never end.
    """

    def __init__(self, bootstrap: str, seed: int, say: Callable[[str], None], jars: str) -> None:
        """`jars` are those of the Java copier."""
        self._bootstrap = bootstrap
        self._jars = jars
        self._random = Random(seed)
        self.reader = Reader(bootstrap, TARGET, PARTITIONS)
        self._say = say
        self.replaced = 0
        self._copier = self._start()
        self._seen = (0, time.monotonic())

    def _start(self) -> Copier:
        task = Task(
            bootstrap=self._bootstrap,
            group=GROUP,
            source=SOURCE,
            target=TARGET,
            transactional_id="copier",
            partition=None,
            count=0,
            seed=self._random.randrange(2**30),
            jars=self._jars,
        )
        return Copier(self._random.choice((CONFLUENT, CONFLUENT, JAVA)), task)

    def look_after(self) -> None:
        count, since = self._seen
        if self.reader.count > count:
            self._seen = (self.reader.count, time.monotonic())
        elif time.monotonic() > since + STUCK_S:
            self._say(f"a copier that does not get on is replaced; {self._copier.said()}")
            self.replaced += 1
            self._copier.kill()
            self._seen = (count, time.monotonic())
        if not self._copier.running:
            self._copier = self._start()

    def kill(self) -> None:
        self._copier.kill()
        self.reader.stop()

    def judge(self, bootstrap: str) -> list[str]:
        """What is wrong, when the source grows no more. Raises AssertionError when there is no end of copying."""
        inputs = read_to_end(bootstrap, SOURCE, PARTITIONS, "read_uncommitted")
        total = sum(map(len, inputs.values()))

        while (before := self.reader.count) < total:  # however slowly: who waited long has much to catch up with

            def gets_on(before: int = before) -> bool:
                self.look_after()
                return self.reader.count > before

            eventually(gets_on, f"copying goes on: {before} of {total}; {self._copier.said()[-500:]}", END_S)
        self._copier.kill()
        places = [(SOURCE, partition) for partition in PARTITIONS]
        copying = eos.Copying(
            inputs={partition: [stored.value for stored in log] for partition, log in inputs.items()},
            log=read_to_end(bootstrap, TARGET, PARTITIONS, "read_uncommitted"),
            committed=read_to_end(bootstrap, TARGET, PARTITIONS, "read_committed"),
            observed={partition: [self.reader.seen(partition)] for partition in PARTITIONS},
            positions=dict(zip(PARTITIONS, committed(bootstrap, GROUP, places), strict=True)),
        )
        return [f"copying: {problem}" for problem in (*eos.check(copying), *self.reader.failures)]
