"""What brokers still have once all clients have gone: members that no session ends, transactions that no one ends,
timers that run, tasks, waits, sessions, connections. There must be none.

A member that has vanished is gone when its session is over, so `leftovers` is asked for as long as that takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from kpybroker.broker.app import Broker
from kpybroker.core.timer_heap import HasDeadline, TimerHeap
from kpybroker.core.transaction.values import TransactionState
from tests.simulation.checks.observer import running
from tests.simulation.seams.order import task_names
from tests.simulation.world import Machine, World

T = TypeVar("T", bound=HasDeadline)

LASTING = frozenset(
    (
        "PeriodicProducerExpirationCheck",
        "alter-partition",
        "config-event-process-thread",
        "controller-event-thread",
        "delete-expired-group-metadata",
        "feature-zk-node-event-process-thread",
        "highwatermark-checkpoint",
        "isr-change-propagation",
        "isr-expiration",
        "isr-writes",
        "share-group-lock-timeout",
        "share-state-prune",
        "share-state-snapshots",
        "transaction-abort",
        "transactionalId-expiration",
    )
)
"""Tasks that last as long as their broker."""
LASTING_OF = ("kafka-", "log-", "ReplicaFetcherThread-", "timers of ", "kpybroker.broker.", "tests.simulation.", "<")
"""How others begin: those of the log, of one thing each, those without names of their own, the simulator's, trio's."""
OPEN = (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def leftovers(world: World) -> Iterator[str]:
    """All there is now."""
    for name in task_names():
        if name not in LASTING and not name.startswith(LASTING_OF):
            yield f"the task {name}"
    hosts = {machine.host for machine in world.machines.values()}
    for machine in running(world):
        broker = machine.broker
        assert broker is not None
        for what in (*_of_replicas(broker), *_of_groups(broker), *_of_shares(broker), *_of_transactions(broker)):
            yield f"{what} at {machine.host}"
        yield from _of_connections(machine, hosts)


def _of_replicas(broker: Broker) -> Iterator[str]:
    for replica in broker.replicas:
        name = f"{replica.topic}-{replica.index}"
        if replica.offset_waiters.waiting:
            yield f"{len(replica.offset_waiters.waiting)} waits for the high watermark of {name}"
        for what in ("_log_start_waiters", "_sessions"):
            if found := getattr(replica, what):
                yield f"{len(found)} in {what} of {name}"


def _of_groups(broker: Broker) -> Iterator[str]:
    groups = broker.coordinators.built_groups
    if groups is None:
        return
    for machine in groups.partitions.machines:
        for group in machine.groups.values():
            if not group.is_empty or group.pending_members:
                modern = () if group.modern is None else group.modern.members
                yield f"members of {group.group_id}: {[*group.members, *group.pending_members, *modern]}"
        for share in machine.shares.groups.values():
            if share.members:
                yield f"members of {share.group_id}: {[*share.members]}"
        heaps: list[TimerHeap[Any]] = [machine._timers._heap, *machine._modern._heaps]
        for timers in heaps:
            if found := _that_count(timers):
                yield f"timers of groups: {found}"


def _of_shares(broker: Broker) -> Iterator[str]:
    shares = broker.coordinators.built_share_partitions
    if shares is None:
        return
    if len(shares.sessions):
        yield f"{len(shares.sessions)} share sessions"
    for led in shares.led:
        if led.waiting or led.writes or led.is_writing:
            yield f"{len(led.waiting)} waits for and {len(led.writes)} writes of {led.key}"
    if found := _that_count(shares._timers):
        yield f"timers of share partitions: {found}"


def _of_transactions(broker: Broker) -> Iterator[str]:
    if "transactions" not in vars(broker.coordinators):
        return
    for machine in broker.coordinators.transactions.partitions.machines:
        for name, transaction in machine.transactions.items():
            if transaction.pending is not None or transaction.current.state in OPEN:
                yield f"the transaction of {name}: {transaction.current}, then {transaction.pending}"
        if machine.deadline is not None:
            yield f"a timer of transactions, for {machine.deadline:.3f}"


def _that_count(timers: TimerHeap[T]) -> list[T]:
    """Entries of a heap that are not stale."""
    return [entry for _, _, entry in timers._entries if timers._may_count(entry)]


def _of_connections(machine: Machine, hosts: set[str]) -> Iterator[str]:
    """Those of others than brokers."""
    assert machine.broker is not None
    for connection in machine.broker.server._connections.values():
        if connection.client_host not in hosts:
            yield f"a connection of {connection.client_host} to {machine.host}"
