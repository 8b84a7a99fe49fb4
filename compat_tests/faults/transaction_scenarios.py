"""Scenarios of transactions of version 2 (KIP-890), by bare requests: no client of the storm uses them.

As `scenarios`, which lists them: what must not be reported goes into the history.
"""

from __future__ import annotations

from compat_tests.faults.clients.raw_producer import EPOCH_BUMPED_FROM, RawProducer
from compat_tests.faults.cluster import MAIN, FaultyCluster
from compat_tests.faults.faults import Roles
from compat_tests.faults.history import Outcome, Transaction
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode

ADDS_FROM = 12
"""The version of Produce that adds partitions to a transaction."""
CHANGE_S = 30.0


def write_without_adding(cluster: FaultyCluster, roles: Roles) -> None:
    """The leader adds its partition to the transaction, which else no marker would end."""
    producer = RawProducer(cluster, is_transactional=True)
    _write(producer, roles, 0)
    if (MAIN, 0) not in producer.partitions():
        cluster.history.failures.append(f"{producer.name} has written to {MAIN}-0, which its coordinator does not know")
    _commit(cluster, producer, 0)


def end_in_later_epochs(cluster: FaultyCluster, roles: Roles) -> None:
    """Each end gives the producer a later epoch, in which the next transaction is; what is late has an earlier one."""
    producer = RawProducer(cluster, is_transactional=True)
    for number in range(3):
        _write(producer, roles, number)
        before = producer.epoch
        _commit(cluster, producer, number)
        if producer.epoch <= before:
            cluster.history.failures.append(
                f"the end in epoch {before} has given {producer.name} epoch {producer.epoch}"
            )


def repeat_marker(cluster: FaultyCluster, roles: Roles) -> None:
    """The marker of a transaction reaches its partition once more, when the next one is open: it must not end that."""
    producer = RawProducer(cluster, is_transactional=True)
    _write(producer, roles, 0)
    _commit(cluster, producer, 0)
    _write(producer, roles, 1)
    code = producer.end_with_marker(roles.leaders[0], 0)
    if code is ErrorCode.NONE:
        cluster.history.failures.append(f"a marker of epoch {producer.epoch} has ended the transaction of that epoch")
    _commit(cluster, producer, 1)


def _write(producer: RawProducer, roles: Roles, number: int) -> None:
    """The first record of a transaction, once the one before is complete."""
    leader = roles.leaders[0]
    eventually(
        lambda: producer.write(leader, 0, number, sequence=0, version=ADDS_FROM) is ErrorCode.NONE,
        f"{producer.name} writes record {number}",
        CHANGE_S,
    )


def _commit(cluster: FaultyCluster, producer: RawProducer, number: int) -> None:
    producer.commit(EPOCH_BUMPED_FROM)
    written = ((MAIN, 0), producer.record(number))
    cluster.history.transactions.append(Transaction(Outcome.COMMITTED, (written,)))
