"""What the cleaner may discard of transactions (LogCleanerTest's CleanedTransactionMetadata)."""

from __future__ import annotations

from kpybroker.storage.cleaning.transactions import CleanedTransactions
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.records.batch import parse_header, stamp
from kpybroker.wire.records.builder import empty_batch
from tests.support.storage.batches import batch, marker

A, B = 1001, 1002


def data(offset: int, producer_id: int = -1) -> bytearray:
    ids = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    return batch(b"x", base_offset=offset, **(ids if producer_id >= 0 else {}))


def end(offset: int, producer_id: int, *, commit: bool) -> bytearray:
    found = marker(commit=commit, producer_id=producer_id)
    stamp(found, 0, offset, 0)
    return found


def discarded(known: CleanedTransactions, *batches: bytearray) -> list[bool]:
    return [known.may_discard(one, 0, parse_header(one)) for one in batches]


def test_committed_data_stay_and_their_marker_with_them() -> None:
    known = CleanedTransactions([])
    assert discarded(known, data(0), data(1, A), end(2, A, commit=True)) == [False, False, False]
    assert discarded(known, end(3, A, commit=True)) == [True]


def test_aborted_data_are_removed_and_the_marker_stays_while_there_were_any() -> None:
    aborted = [AbortedTxn(A, 1, 3, 4), AbortedTxn(B, 2, 6, 7)]
    known = CleanedTransactions(reversed(aborted))
    found = discarded(known, data(0, B), data(1, A), data(2, B), end(3, A, commit=False), data(4, A), data(5, B))
    # B's data at 0 are of a transaction before, A's at 4 of one after the aborted one.
    assert found == [False, True, True, False, False, True]
    assert discarded(known, end(6, B, commit=False)) == [False]
    assert known.take_retained() == aborted
    assert known.take_retained() == []


def test_a_marker_without_data_may_be_removed_and_leaves_no_index_entry() -> None:
    known = CleanedTransactions([AbortedTxn(A, 1, 3, 4)])
    assert discarded(known, data(2, B), end(3, A, commit=False)) == [False, True]
    assert known.take_retained() == []


def test_an_empty_control_batch_may_be_removed() -> None:
    emptied = empty_batch(parse_header(end(3, A, commit=True)))
    assert discarded(CleanedTransactions([]), data(2, A), emptied) == [False, True]


def test_an_aborted_transaction_that_began_before_is_known() -> None:
    known = CleanedTransactions([AbortedTxn(A, 1, 30, 31)])
    assert discarded(known, data(20, A), end(30, A, commit=False)) == [True, False]
