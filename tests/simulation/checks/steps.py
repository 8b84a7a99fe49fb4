"""After each step: what must hold of every replica whenever tasks have run, and what no replica may take back.

Looks before each wait of trio's loop, at one broker after the other, at what has changed since the last time. Nothing
of it is simulated: a look changes no order, and takes no time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import trio

from kpybroker.broker.replication.partition import Partition as Replica
from kpybroker.core.replication.replica import LeaderState
from kpybroker.storage.log.log import Log
from tests.simulation.checks.observer import batches, running
from tests.simulation.clients.client import Partition, now_ns
from tests.simulation.world import World

PROBLEMS_MAX = 10
Batch = tuple[int, int, int]
"""Base offset, leader epoch, CRC."""


class _Seen(NamedTuple):
    """A replica as of the last look."""

    leader_epoch: int
    is_leader: bool
    log_start: int
    high_watermark: int
    log_end: int
    partition_epoch: int
    truncations: int


class Steps(trio.abc.Instrument):
    """An election of the `unclean` topic may lose what was committed: followers cut below high watermarks then."""

    def __init__(self, world: World, *, unclean: str | None) -> None:
        self._world = world
        self._unclean = unclean
        self._seen: dict[Replica, _Seen] = {}
        self._committed: dict[bytes, dict[int, Batch]] = {}
        """Of a partition, by its topic's id and its index: all batches that were below a replica's high watermark."""
        self._compared: dict[Log, int] = {}
        self._count = self._passes = 0
        self._highest: dict[bytes, tuple[int, int]] = {}
        """High watermark of a partition, and the leader epoch in which it came so far."""
        self.elected_ns: dict[str, list[int]] = defaultdict(list)
        """When a leader of a partition began, by topic."""
        self.lost_from: dict[Partition, int] = {}
        """Where the logs of leaders ended, or differed from what was committed, that were not in sync."""

    def before_io_wait(self, timeout: float) -> None:
        """One broker at a time: there are many passes of the loop in a moment, and few of them change anything."""
        machines = running(self._world)
        if not machines:
            return
        self._passes += 1
        machine = machines[self._passes % len(machines)]
        assert machine.broker is not None
        seen = self._seen
        for replica in machine.broker.replicas:
            log = replica.log
            if log is None or log.is_closed or replica.is_offline:
                continue
            before = seen.get(replica)
            if (
                before is None
                or before.high_watermark != log.high_watermark
                or before.log_end != log.log_end_offset
                or before.leader_epoch != replica.leader_epoch
                or before.is_leader != (replica.leader is not None)
                or before.log_start != log.log_start_offset
                or before.truncations != log.truncations
            ):
                self._look_at(machine.broker_id, replica, log, before)

    def _problem(self, what: str, broker_id: int, replica: Replica, why: str) -> None:
        self._count += 1
        if self._count > PROBLEMS_MAX:
            return
        self._world.problem(f"{what}: {replica.topic}-{replica.index} of {broker_id}: {why}")

    def _look_at(self, broker_id: int, replica: Replica, log: Log, before: _Seen | None) -> None:
        leader = replica.leader
        now = _Seen(
            replica.leader_epoch,
            leader is not None,
            log.log_start_offset,
            log.high_watermark,
            log.log_end_offset,
            -1 if leader is None else leader.partition_epoch,
            log.truncations,
        )
        self._seen[replica] = now
        self._check_order(broker_id, replica, log)
        if now.is_leader:
            key = _key(replica)
            if before is None or not before.is_leader or before.leader_epoch != now.leader_epoch:
                self.elected_ns[replica.topic].append(now_ns())
                self._check_elected(key, broker_id, replica, log)
            if now.high_watermark > self._highest.get(key, (0, 0))[0]:
                self._highest[key] = now.high_watermark, now.leader_epoch
        if before is not None:
            self._check_change(broker_id, replica, before, now)

    def _check_order(self, broker_id: int, replica: Replica, log: Log) -> None:
        broken = list(_broken_of_log(log))
        if replica.leader is not None:
            broken += _broken_of_leader(broker_id, replica, replica.leader, log)
        if broken:
            self._problem("invariant", broker_id, replica, f"not {', '.join(broken)}: {log!r}")

    def _check_change(self, broker_id: int, replica: Replica, before: _Seen, now: _Seen) -> None:
        text = f"{before} then {now}"
        if now.leader_epoch < before.leader_epoch:
            self._problem("leader epoch back", broker_id, replica, text)
        if now.leader_epoch != before.leader_epoch:
            return
        if now.is_leader and before.is_leader:
            if now.log_end < before.log_end:
                self._problem("log end of a leader back", broker_id, replica, text)
            if now.partition_epoch < before.partition_epoch:
                self._problem("partition epoch back", broker_id, replica, text)
            if now.truncations != before.truncations:
                self._problem("leader truncates", broker_id, replica, text)
            if now.high_watermark < before.high_watermark:
                self._problem("high watermark of a leader back", broker_id, replica, text)
        if now.log_start < before.log_start and not _begins_within_a_batch(before, now):
            self._problem("log start falls", broker_id, replica, text)

    def _check_elected(self, key: bytes, broker_id: int, replica: Replica, log: Log) -> None:
        """A leader that begins has all that was committed, unless it is none any more: it was paused, and reads an
        order that is older than the last election.
        """
        (highest, epoch), end = self._highest.get(key, (0, 0)), log.log_end_offset
        if replica.leader_epoch < epoch:
            return
        if replica.topic != self._unclean:
            if end < highest:
                self._problem("elected behind", broker_id, replica, f"{log!r}, when {highest} was committed")
            return
        known = self._committed.setdefault(key, {})
        for batch in batches(log, log.log_start_offset, min(end, highest)):
            if known.get(batch[0]) != batch:
                end = min(end, batch[0])
                break
        if end < highest:
            place = replica.topic, replica.index
            self.lost_from[place] = min(end, self.lost_from.get(place, end))
            self._highest[key] = end, replica.leader_epoch
            for offset in [offset for offset in known if offset >= end]:
                del known[offset]
            self._compared[log] = min(end, self._compared.get(log, 0))

    # --- the committed part of all copies, each batch compared once a process

    def compare(self) -> None:
        """Whatever is below a replica's high watermark is the same at all, also at those that are gone by now."""
        for machine in running(self._world):
            assert machine.broker is not None
            for replica in machine.broker.replicas:
                log = replica.log
                if log is None or log.is_closed or replica.is_offline or log.config.compact:
                    continue
                if replica.topic == self._unclean and replica.leader is None:
                    continue  # it may have to cut what it believes to be committed
                self._compare(machine.broker_id, replica, log)

    def _compare(self, broker_id: int, replica: Replica, log: Log) -> None:
        start, end = max(self._compared.get(log, 0), log.log_start_offset), log.high_watermark
        if start >= end:
            return
        known = self._committed.setdefault(_key(replica), {})
        for batch in batches(log, start, end):
            if (other := known.setdefault(batch[0], batch)) != batch:
                self._problem("copies differ", broker_id, replica, f"{batch} (offset, epoch, CRC), elsewhere {other}")
                break
        self._compared[log] = end


def _begins_within_a_batch(before: _Seen, now: _Seen) -> bool:
    """A follower without records that was to begin within a batch of the leader begins with that, as Kafka's does; and
    stays there if the disk has no room for the batch.
    """
    is_empty = before.log_start == before.log_end and now.log_start == now.log_end
    return is_empty and not now.is_leader and now.truncations > before.truncations


def _broken_of_log(log: Log) -> Iterator[str]:
    """What does not hold, and has to of each log at any time."""
    start, mark, end = log.log_start_offset, log.high_watermark, log.log_end_offset
    if not start <= mark <= end:
        yield "log start <= high watermark <= log end"
    if log.last_stable_offset > mark:
        yield "last stable offset <= high watermark"
    if log.recovery_point > end:
        yield f"recovery point {log.recovery_point} <= log end"
    if log.producers.map_end_offset > end:
        yield f"end of the producers' state {log.producers.map_end_offset} <= log end"
    epochs = log.epochs.entries
    if any(one.epoch >= next_.epoch or one.start_offset > next_.start_offset for one, next_ in pairwise(epochs)):
        yield f"epochs rise: {epochs}"
    if epochs and epochs[-1].start_offset > end:
        yield f"the last epoch begins in the log: {epochs}"


def _broken_of_leader(broker_id: int, replica: Replica, leader: LeaderState, log: Log) -> Iterator[str]:
    """What does not hold of a leader and its log. What has to be flushed first is not at the leader's end yet."""
    if leader.log_end_offset > log.log_end_offset:
        yield f"the leader's log end {leader.log_end_offset} is in the log"
    if leader.high_watermark != log.high_watermark:
        yield f"the leader's high watermark {leader.high_watermark} is the log's"
    if broker_id not in leader.isr:
        yield f"the leader is in its ISR {sorted(leader.isr)}"
    if not leader.isr <= leader.maximal_isr:
        yield f"the ISR {sorted(leader.isr)} is in the maximal one {sorted(leader.maximal_isr)}"
    if log.latest_epoch != replica.leader_epoch:
        yield f"the epoch {replica.leader_epoch} is the log's last one, {log.latest_epoch}"


def _key(replica: Replica) -> bytes:
    """Of a partition, and of none that had its name before."""
    return replica.topic_id + replica.index.to_bytes(4, "big")
