"""The transaction index (TransactionIndexTest)."""

from __future__ import annotations

import struct

import pytest

from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.disk.files import read_file, write_file
from kpybroker.storage.segments.txn_index import AbortedTxn, TransactionIndex
from tests.support.storage.lossy_files import LossyFiles

PATH = "/00000000000000000000.txnindex"
ENTRIES = [AbortedTxn(0, 0, 10, 11), AbortedTxn(1, 5, 15, 13), AbortedTxn(2, 18, 35, 25), AbortedTxn(3, 32, 50, 40)]


def filled(files: LossyFiles) -> TransactionIndex:
    index = TransactionIndex(files, PATH, 0)
    for entry in ENTRIES:
        index.append(entry)
    return index


def test_the_file_appears_with_the_first_abort_in_kafkas_bytes(files: LossyFiles) -> None:
    index = TransactionIndex(files, PATH, 0)
    assert index.entries() == []
    assert files.stat(PATH) is None
    index.append(AbortedTxn(7, 1, 2, 3))
    assert read_file(files, PATH) == struct.pack(">hqqqq", 0, 7, 1, 2, 3)


def test_entries_survive(files: LossyFiles) -> None:
    filled(files).handle.close()
    index = TransactionIndex(files, PATH, 0)
    index.sanity_check()
    assert index.entries() == ENTRIES


def test_markers_must_come_in_order() -> None:
    with pytest.raises(CorruptIndexError):
        filled(LossyFiles()).append(AbortedTxn(9, 0, 50, 60))


def test_collecting_stops_where_no_later_entry_can_matter() -> None:
    index = filled(LossyFiles())
    for fetch_range, expected, complete in [
        ((0, 100), ENTRIES, False),
        ((0, 32), ENTRIES[:3], True),
        ((0, 35), ENTRIES, True),
        ((10, 35), ENTRIES, True),
        ((11, 35), ENTRIES[1:], True),
        ((20, 41), ENTRIES[2:], False),
    ]:
        found: list[AbortedTxn] = []
        assert index.collect_aborted(*fetch_range, found) == complete
        assert found == expected


def test_truncation_goes_by_the_marker(files: LossyFiles) -> None:
    index = filled(files)
    index.truncate_to(51)
    assert index.entries() == ENTRIES
    index.truncate_to(50)
    assert index.entries() == ENTRIES[:3]
    index.append(ENTRIES[3])
    index.reset()
    assert index.entries() == []
    assert read_file(files, PATH) == b""


@pytest.mark.parametrize(
    "content",
    [
        struct.pack(">hqqqq", 1, 0, 0, 200, 0),  # a version we do not know
        struct.pack(">hqqqq", 0, 0, 0, 99, 0),  # before the segment
        struct.pack(">hqqqqhqqqq", 0, 0, 0, 200, 0, 0, 0, 0, 150, 0),  # out of order
    ],
)
def test_what_cannot_be_is_found(files: LossyFiles, content: bytes) -> None:
    write_file(files, PATH, content, sync=False)
    with pytest.raises(CorruptIndexError):
        TransactionIndex(files, PATH, 100).sanity_check()


def test_renaming_a_file_that_may_not_be_there(files: LossyFiles) -> None:
    TransactionIndex(files, PATH, 0).handle.rename_to(PATH + ".deleted")
    assert files.stat(PATH + ".deleted") is None
    index = filled(files)
    index.handle.rename_to(PATH + ".deleted")
    index.handle.close()
    assert files.stat(PATH + ".deleted") is not None
    assert files.stat(PATH) is None
    assert files.open_count == 0
