"""Reading a partition's log for a share group: which batches there are, which of them were aborted, what is sent.

Batches are sent as they are in the log, so a member may receive records that it does not hold; it is given the offsets
that it does. Only the batches from the first to the last of those offsets are sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.core.share.values import Acquired, FetchedBatch
from kpybroker.storage.segments.file_records import walk_headers
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, BatchHeader
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.record import iter_records

if TYPE_CHECKING:
    from kpybroker.storage.disk.slice import FileSlice
    from kpybroker.storage.log.log import Log
    from kpybroker.storage.log.reader import FetchSlice


class PlacedBatch(NamedTuple):
    """A batch, and where it is in the slice; `offsets` are what the machine sees of it."""

    position: int
    header: BatchHeader
    offsets: FetchedBatch

    @property
    def end(self) -> int:
        """Where the next batch is in the slice."""
        return self.position + self.header.size


def batches_of(slice_: FileSlice, first_new: int, records_max: int) -> list[PlacedBatch]:
    """The whole batches of a slice, which may end within one, as far as a fetch of so many records can reach.

    From `first_new` on nothing was acquired before. Raises CORRUPT_MESSAGE, OSError.
    """
    batches: list[PlacedBatch] = []
    enough: int | None = None
    try:
        for position, header in walk_headers(slice_.read, slice_, 0, slice_.size):
            base, last = header.base_offset, header.last_offset
            batches.append(PlacedBatch(position, header, FetchedBatch(base, last)))
            if enough is None:
                enough = max(first_new, base) + records_max
            if last + 1 >= enough:
                break
    except KafkaError:
        end = batches[-1].end if batches else 0
        if slice_.size - end >= RECORD_BATCH_OVERHEAD:
            raise  # else it ends within a header
    return batches


def aborted_batches(log: Log, found: FetchSlice, batches: Sequence[PlacedBatch]) -> list[FetchedBatch]:
    """Those of the batches that belong to aborted transactions, markers left out. Raises LogDirError, CORRUPT_MESSAGE.

    As in Kafka (``fetchAbortedTransactionRecordBatches``): a transaction counts from the first batch that reaches its
    first offset, to its marker.
    """
    assert found.slice is not None
    transactions = sorted(log.aborted_transactions(found.start_offset, found), key=lambda one: -one.first_offset)
    if not transactions:
        return []
    aborted: list[FetchedBatch] = []
    producer_ids: set[int] = set()
    for batch in batches:
        header = batch.header
        if not header.has_producer_id:
            continue
        while transactions and transactions[-1].first_offset <= header.last_offset:
            producer_ids.add(transactions.pop().producer_id)
        if header.is_control:
            if _is_abort(found.slice, batch):
                producer_ids.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in producer_ids:
            aborted.append(batch.offsets)
    return aborted


def _is_abort(slice_: FileSlice, batch: PlacedBatch) -> bool:
    stored = slice_.read(batch.position, batch.header.size)
    record = next(iter_records(stored, batch.header, read_headers_max=0), None)
    return record is not None and parse_control_type(record.key) is ControlRecordType.ABORT


def _base(batch: PlacedBatch) -> int:
    return batch.header.base_offset


def keep_acquired(slice_: FileSlice, batches: Sequence[PlacedBatch], acquired: Sequence[Acquired]) -> None:
    """Narrow the slice to the batches that may have acquired offsets, and those between them."""
    begin = max(bisect_right(batches, acquired[0].first, key=_base) - 1, 0)
    last_sent = batches[max(bisect_right(batches, acquired[-1].last, key=_base) - 1, begin)]
    start = batches[begin].position
    slice_.narrow(start, last_sent.end - start)
