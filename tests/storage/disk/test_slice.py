"""Counted files and slices."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.disk.slice import FileSlice, LazyFile, SharedFile
from kpybroker.storage.segments.file_records import FileRecords, walk_headers
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.system.sockets import HAS_SENDFILE
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD
from tests.support.storage.batches import batch
from tests.support.storage.lossy_files import LossyFiles


def test_a_file_closes_with_its_last_holder(files: LossyFiles) -> None:
    shared = SharedFile(files.open("/a", create=True))
    piece = FileSlice(shared, 0, 0)
    shared.release()
    assert files.open_count == 1
    piece.release()
    assert files.open_count == 0
    piece.release()
    with pytest.raises(AssertionError):
        shared.acquire()


def test_a_slice_reads_within_itself(files: LossyFiles) -> None:
    records = FileRecords(SegmentFiles(files, "", 0))
    records.append(b"0123456789")
    piece = records.slice(2, 5)
    assert (piece.position, piece.size, len(piece)) == (2, 5, 5)
    assert piece.read() == b"23456"
    assert piece.read(3) == b"56"
    assert piece.read(1, 2) == b"34"
    assert piece.read(9) == b""
    assert records.slice(8, 100).size == 2
    piece.release()


@pytest.mark.skipif(not HAS_SENDFILE, reason="needs sendfile")
def test_a_slice_is_sent_by_sendfile(tmp_path: Path) -> None:
    records = FileRecords(SegmentFiles(local_files(), str(tmp_path), 0))
    records.append(b"0123456789")
    piece = records.slice(2, 5)
    here, there = socket.socketpair()
    assert os.sendfile(here.fileno(), piece.fileno(), piece.position, piece.size) == 5
    assert there.recv(100) == b"23456"
    piece.release()
    here.close()
    there.close()


def test_truncation_under_a_reader_leaves_it_the_old_bytes(tmp_path: Path) -> None:
    records = FileRecords(SegmentFiles(local_files(), str(tmp_path), 0))
    path = records.path
    records.append(b"0123456789")
    piece = records.slice(0, 10)
    records.truncate_to(4)
    records.append(b"xyz")
    assert piece.read() == b"0123456789"
    assert records.read(0, 100) == Path(path).read_bytes() == b"0123xyz"
    piece.release()
    records.truncate_to(2)
    assert Path(path).read_bytes() == b"01"
    with pytest.raises(ValueError, match="truncate"):
        records.truncate_to(3)


def test_headers_are_walked_by_any_window() -> None:
    records = FileRecords(SegmentFiles(LossyFiles(), "", 0))
    sizes = []
    for number in range(20):
        data = batch(b"x" * number * 37, base_offset=number)
        sizes.append(len(data))
        records.append(data)
    records.append(b"\0" * 10)  # a header that is cut off
    positions = [sum(sizes[:at]) for at in range(20)]
    for window in (61, 100, 1000, 1 << 20):
        assert [(at, header.base_offset) for at, header in records.headers(window=window)] == list(
            zip(positions, range(20), strict=True)
        )
        walked = list(records.batches(window=window))
        assert [len(data) for _, _, data in walked] == sizes
        assert all(data == records.read(at, header.size) for at, header, data in walked)
    assert [at for at, _ in records.headers(positions[5], positions[7])] == positions[5:7]


def test_of_batches_larger_than_a_window_only_headers_are_read() -> None:
    data = b"".join(
        batch(b"x" * size, base_offset=number) for number, size in enumerate((10, 2000, 2000, 2000, 10, 10))
    )
    sizes: list[int] = []

    def read(position: int, size: int) -> bytes:
        sizes.append(size)
        return data[position : position + size]

    assert [header.base_offset for _, header in walk_headers(read, "/a", 0, len(data), 1000)] == list(range(6))
    assert sizes[0] == 1000
    assert sizes[1:4] == [RECORD_BATCH_OVERHEAD] * 3
    assert len(sizes) <= 6


def test_a_header_that_no_batch_can_have_is_corrupt() -> None:
    records = FileRecords(SegmentFiles(LossyFiles(), "", 0))
    records.append(b"\0" * 100)
    with pytest.raises(KafkaError):
        list(records.headers())


def test_a_file_shorter_than_it_should_be_is_corrupt(files: LossyFiles) -> None:
    records = FileRecords(SegmentFiles(files, "", 0))
    for number in range(3):
        records.append(batch(b"x" * 50, base_offset=number))
    other = files.open(records.path)
    other.truncate(130)
    with pytest.raises(KafkaError):
        list(records.batches())


def test_a_lazy_file_is_opened_by_its_first_use_and_again_after_a_close(files: LossyFiles) -> None:
    file = LazyFile(files, "/a", create=True)
    assert files.stat("/a") is None
    file.shared.file.pwrite(b"x", 0)
    assert files.open_count == 1
    file.close()
    assert files.open_count == 0
    assert file.shared.file.size() == 1
    with pytest.raises(FileNotFoundError):
        _ = LazyFile(files, "/b", create=False).shared


def test_a_lazy_file_syncs_only_what_is_dirty(files: LossyFiles) -> None:
    file = LazyFile(files, "/a", create=True)
    file.sync()
    assert files.stat("/a") is None
    file.shared.file.pwrite(b"x", 0)
    file.dirty = True
    file.sync()
    assert not file.dirty
    before = files.operations
    file.sync()
    assert files.operations == before
