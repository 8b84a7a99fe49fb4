"""What a history need not have kept: records that were deleted as asked for, or lost to an unclean election.

The checker of the storms knows of neither, so it is given a history without them. What may be missing is known exactly:
below the offset up to which records were deleted, or from where the log of a leader began that was elected without
having been in sync.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from compat_tests.faults.history import History, Partition, Record, StateLook, Transaction
from compat_tests.faults.share_groups.history import Delivery, ShareHistory
from kpybroker.core.leader_and_isr import NO_LEADER


def without_deleted(history: History, starts: dict[Partition, int]) -> None:
    """Forget what is below these offsets, but for what is there again: after a power cut, or a disk's failure, a log
    begins where its checkpoint says, as Kafka's. Readers may have missed it.
    """
    _forget(history, {partition: _below(history, partition, start) for partition, start in starts.items() if start})
    for reader in history.readers:
        reader.begins.update(starts)
        for partition, reads in reader.reads.items():
            there = {stored.offset for stored in history.log[partition]}
            start = starts.get(partition, 0)
            reader.reads[partition] = [read for read in reads if read.offset >= start or read.offset in there]


def without_unsynced(history: History, broker: int) -> None:
    """Power has failed at a broker: of what it showed only that is sure to be there which counted as written."""
    for looks in history.looks.values():
        for at, look in enumerate(looks):
            if look.broker == broker:
                looks[at] = look._replace(log_end=look.high_watermark)


def _below(history: History, partition: Partition, start: int) -> set[Record]:
    """Records that are not there, and were below it or may have been: the places of some are not known."""
    kept = {stored.record for stored in history.log[partition]}
    places = {ack.record: ack.offset for ack in history.acknowledged[partition]}
    sent = {
        record for transaction in history.transactions for place, record in transaction.records if place == partition
    }
    return {record for record in places.keys() | sent if record not in kept and places.get(record, -1) < start}


def _forget(history: History, forgotten: dict[Partition, set[Record]]) -> None:
    for partition, records in forgotten.items():
        history.acknowledged[partition] = [ack for ack in history.acknowledged[partition] if ack.record not in records]
    history.transactions[:] = [
        Transaction(outcome, tuple(each for each in records if each[1] not in forgotten.get(each[0], ())))
        for outcome, records in history.transactions
    ]


def without_lost(history: History, from_offsets: dict[Partition, int]) -> None:
    """Forget what was acknowledged or read from these offsets on, but for what is there and is the same."""
    for partition, start in from_offsets.items():
        there = {stored.offset: stored.record for stored in history.log[partition]}
        kept = set(there.values())
        history.acknowledged[partition] = [
            ack if ack.offset < start else ack._replace(offset=-1)
            for ack in history.acknowledged[partition]
            if 0 <= ack.offset < start or ack.record in kept
        ]
        for reader in history.readers:
            reads = reader.reads[partition]
            reader.reads[partition] = [
                read for read in reads if read.offset < start or there.get(read.offset) == read.record
            ]
        history.looks[partition].clear()


def of_share_group(
    shared: ShareHistory, history: History, topic: str, deleted: Mapping[Partition, int]
) -> ShareHistory:
    """With the log of its topic, and without what was said of records that are gone by now. What was `deleted`, below
    these offsets, may be there again, and the group does not go back for it. What leaders delivered that had been
    replaced is marked.
    """
    log = {
        partition: {stored.offset: identity(stored.record) for stored in history.log[partition]}
        for partition in history.log
        if partition[0] == topic
    }
    starts = {partition: min(offsets, default=0) for partition, offsets in log.items()}
    return replace(
        shared,
        log=log,
        deliveries=[
            one._replace(was_replaced=_was_replaced(one, history.states[one.partition]))
            for one in shared.deliveries
            if one.offset >= starts.get(one.partition, 0)
        ],
        acknowledgements=[one for one in shared.acknowledgements if one.offset >= starts.get(one.partition, 0)],
        deleted=dict(deleted),
    )


def _was_replaced(delivery: Delivery, looks: Sequence[StateLook]) -> bool:
    """Whether the tree had another leader before the member asked, and still had after it was given the record."""
    before = bisect_left(looks, delivery.asked_ns, key=attrgetter("reported_ns"))
    after = bisect_right(looks, delivery.received_ns, key=attrgetter("asked_ns"))
    around = {look.leader for look in (*looks[max(before - 1, 0) : before], *looks[after : after + 1])}
    return bool(around) and delivery.leader is not None and around.isdisjoint((delivery.leader, NO_LEADER))


def identity(record: Record | None) -> bytes:
    """A record as histories of share groups have it: whose it is, and its number."""
    return b"" if record is None else record.value().encode()
