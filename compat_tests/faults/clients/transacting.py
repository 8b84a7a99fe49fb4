"""Who writes in transactions by a stock client of any library, in the version that it and the brokers both have.

One process after another under one transactional id: who meets an error is replaced, and its successor ends what was
left open. Each transaction writes to every partition, and Java's commit an offset of a group.
"""

from __future__ import annotations

import threading

from compat_tests.faults.clients.writers import Target, Task
from compat_tests.faults.history import SEPARATOR, History, Outcome, Partition, Record, Transaction
from compat_tests.support.transactional import JAVA, Failed, Transactional

ABORTED_EVERY = 4
WITH_OFFSETS = tuple(JAVA)
"""franz-go commits offsets of what it reads alone, and librdkafka's call may not return when a coordinator moves."""
TIMEOUT_MS = 900_000
"""As long as brokers allow: a transaction that hangs is not ended by the coordinator before a test looks."""


class Transacting(Task):
    """Writes transaction after transaction; every fourth one is aborted."""

    def __init__(self, library: str, history: History, target: Target, **settings: str) -> None:
        """`settings` are those of a Java client, with `_` for `.`."""
        super().__init__(library, history)
        self.committed = 0
        self.errors: list[str] = []
        """What its processes met; each has cost one of them."""
        self.offsets = {-1}
        """One of these is committed for the group: the last that is known to be, or one since whose fate is unknown."""
        self._target, self._settings = target, settings
        self._next = self._transactions = 0
        self._renewing = threading.Event()
        self._producer: Transactional | None = None
        self._is_given_up = False
        self._as = library.replace(SEPARATOR, "-")
        history.idempotent.add(self._as)

    def renew(self) -> None:
        """Go on with a new process, as an application that is started again."""
        self._renewing.set()

    def kill(self) -> None:
        """End it as it is."""
        self._is_given_up = True
        self.stopping.set()
        if self._producer is not None:
            self._producer.kill()

    def work(self) -> None:
        while not self.stopping.is_set():
            self._renewing.clear()
            self._live()
        if not self._is_given_up:
            self._live()  # which ends what may be open, so that committed readers come to the end

    def _live(self) -> None:
        producer = Transactional(self.name, self._target.bootstrap, self.name, TIMEOUT_MS, **self._settings)
        self._producer = producer
        try:
            producer.do("init")
            while not self.stopping.is_set() and not self._renewing.is_set():
                self._transact(producer)
        except (Failed, AssertionError) as error:
            self.errors.append(str(error))
        finally:
            producer.kill()

    def _transact(self, producer: Transactional) -> None:
        number = self._transactions
        self._transactions += 1
        outcome = Outcome.ABORTED  # until a commit is asked for
        records: list[tuple[Partition, Record]] = []
        try:
            producer.do("begin")
            for partition in range(self._target.partitions):
                records += self._write(producer, partition)
            if self.name in WITH_OFFSETS:
                producer.do("offsets", self.name, [(self._target.topic, 0, number)])
            if number % ABORTED_EVERY == 0:
                producer.do("abort")
                return
            outcome = Outcome.UNKNOWN
            self.offsets.add(number)
            producer.do("commit")
            outcome = Outcome.COMMITTED
            self.offsets = {number}
            self.committed += 1
        finally:
            self.history.transactions.append(Transaction(outcome, tuple(records)))

    def _write(self, producer: Transactional, partition: int) -> list[tuple[Partition, Record]]:
        records = [Record(self._as, self._next + n) for n in range(2)]
        self._next += len(records)
        producer.do("produce", self._target.topic, partition, [record.value(60) for record in records])
        return [((self._target.topic, partition), record) for record in records]
