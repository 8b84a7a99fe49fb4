"""Verifying logs of every kind: old formats, compacted, several batches in one append, one that is being written."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest

from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import encode_leader_epochs
from kpybroker.storage.disk.files import Files, write_file
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.inspection import batch_walk
from kpybroker.storage.inspection.verify import ERROR, NOTE, Finding, Totals, verify
from kpybroker.wire.compression import Codec
from kpybroker.wire.crc import crc32c
from kpybroker.wire.records.batch import TimestampType, iter_batches, stamp
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set
from tests.support.storage.batches import NOW_MS, append, batch, claiming, log_config, marker, open_log
from tests.support.storage.lossy_files import LossyFiles

DIRECTORY = "/data/t-0"
LOG = f"{DIRECTORY}/00000000000000000000.log"
INDEX_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
BUSY_OFFSETS = 2000
TXN_ENTRY = struct.Struct(">hqqqq")


def made(
    log: bytes,
    *,
    index: tuple[tuple[int, int], ...] = (),
    times: tuple[tuple[int, int], ...] = (),
    aborted: tuple[tuple[int, int, int, int], ...] = (),
    epochs: tuple[tuple[int, int], ...] = ((0, 0),),
) -> LossyFiles:
    """A partition of one segment at offset 0, while its broker is running."""
    files = LossyFiles()
    files.mkdir("/data")
    files.mkdir(DIRECTORY)
    content = {
        names.LOG_SUFFIX: log,
        names.INDEX_SUFFIX: b"".join(INDEX_ENTRY.pack(*entry) for entry in index),
        names.TIME_INDEX_SUFFIX: b"".join(TIME_ENTRY.pack(*entry) for entry in times),
        names.TXN_INDEX_SUFFIX: b"".join(TXN_ENTRY.pack(0, *entry) for entry in aborted),
    }
    for suffix, data in content.items():
        write_file(files, LOG.replace(names.LOG_SUFFIX, suffix), data, sync=True)
    checkpoint = encode_leader_epochs(EpochEntry(*entry) for entry in epochs)
    write_file(files, f"{DIRECTORY}/{names.LEADER_EPOCH_CHECKPOINT}", checkpoint, sync=True)
    return files


def findings(files: Files, path: str = DIRECTORY, **options: bool) -> list[Finding]:
    return list(verify(files, path, Totals(), **options))


def errors(files: Files, path: str = DIRECTORY, **options: bool) -> list[str]:
    return [finding.check for finding in findings(files, path, **options) if finding.severity == ERROR]


def chain(*batches: bytearray, epoch: int = 0, gap: int = 0) -> bytes:
    """Batches one after the other from offset 0."""
    data, offset = bytearray(), 0
    for one in batches:
        (_, header), *_ = iter_batches(bytes(one))
        stamp(one, 0, offset, epoch)
        offset += header.last_offset_delta + 1 + gap
        data += one
    return bytes(data)


def transactional(*values: bytes, producer_id: int = 1, sequence: int = 0) -> bytearray:
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    return batch(*values, **options)


def test_an_index_entry_may_name_the_last_of_several_batches_appended_together() -> None:
    sizes = [batch(b"a"), batch(b"b"), batch(b"c")]
    position = len(sizes[0])
    assert errors(made(chain(*sizes), index=((2, position),))) == []
    assert errors(made(chain(*sizes), index=((3, position),))) == ["index"]
    assert errors(made(chain(*sizes), index=((0, position),))) == ["index"]
    assert errors(made(chain(*sizes), index=((1, position + 1),))) == ["index"]
    assert errors(made(chain(*sizes), index=((2, 10_000),))) == ["index"]


def test_a_time_index_entry_names_the_first_batch_with_the_largest_timestamp() -> None:
    log = chain(batch(b"a", timestamp=NOW_MS), batch(b"b", timestamp=NOW_MS + 5), batch(b"c", timestamp=NOW_MS + 5))
    assert errors(made(log, times=((NOW_MS, 0), (NOW_MS + 5, 1)))) == []
    assert errors(made(log, times=((NOW_MS + 5, 2),))) == ["timeindex"]
    assert errors(made(log, times=((NOW_MS + 1, 1),))) == ["timeindex"]
    assert errors(made(log, times=((NOW_MS, 0), (NOW_MS, 1)))) == ["timeindex"]
    assert errors(made(log, times=((NOW_MS + 5, 9),))) == ["timeindex"]


def test_a_time_index_entry_may_say_what_only_the_records_say() -> None:
    """After time retention read them (`LogSegment.learn_timestamps`)."""
    wrong = claiming(batch(b"a", timestamp=NOW_MS + 5), max_timestamp=7)
    log = chain(wrong, batch(b"b", timestamp=NOW_MS))
    assert errors(made(log, times=((NOW_MS + 5, 0),))) == ["records"]
    assert errors(made(log, times=((NOW_MS + 6, 0),))) == ["timeindex", "records"]
    garbage = chain(claiming(wrong, attributes=Codec.GZIP))
    assert errors(made(garbage, times=((NOW_MS + 5, 0),))) == ["timeindex", "records"]


def test_aborted_transactions() -> None:
    log = chain(transactional(b"a"), transactional(b"b", sequence=1), marker(commit=False, producer_id=1))
    assert errors(made(log, aborted=((1, 0, 2, 3),))) == []
    assert errors(made(log)) == ["txnindex"]
    assert errors(made(log, aborted=((1, 1, 2, 3),))) == ["txnindex"]
    assert errors(made(log, aborted=((9, 0, 2, 3),))) == ["txnindex"]
    assert errors(made(log, aborted=((1, 0, 2, 4),))) == ["txnindex"]
    longer = chain(
        transactional(b"a"),
        transactional(b"b", sequence=1),
        marker(commit=False, producer_id=1),
        batch(b"c"),
        transactional(b"d", producer_id=2),
    )
    assert errors(made(longer, aborted=((1, 0, 2, 4),))) == []  # by a follower of Kafka that appended all at once
    assert errors(made(longer, aborted=((1, 0, 2, 5),))) == ["txnindex"]
    committed = chain(transactional(b"a"), marker(commit=True, producer_id=1))
    assert errors(made(committed)) == []
    assert errors(made(committed, aborted=((1, 0, 1, 2),))) == ["txnindex"]


def test_an_abort_without_records_here_needs_no_entry() -> None:
    assert errors(made(chain(batch(b"a"), marker(commit=False, producer_id=1)))) == []


def test_what_compaction_removed_is_one_note() -> None:
    """Records, whole batches, and a commit marker, after which the same producer's abort begins later."""
    kept = build_batch_of([Record(2, NOW_MS, b"k", b"v")], base_offset=0, last_offset=4)
    log = bytearray()
    for offset, one in ((0, kept), (10, transactional(b"old")), (20, transactional(b"new", sequence=5))):
        stamp(one, 0, offset, 0)
        log += one
    end = marker(commit=False, producer_id=1)
    stamp(end, 0, 21, 0)
    files = made(bytes(log + end), aborted=((1, 20, 21, 22),))
    (finding,) = findings(files)
    assert (finding.severity, finding.check) == (NOTE, "gap")
    assert "18 offsets are missing at 3 places" in finding.message


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats(magic: int) -> None:
    records = [Record(offset, NOW_MS, b"k", b"v" * 50) for offset in range(4)]
    plain = bytes(build_message_set(records, magic))
    wrapped = bytes(build_message_set(records, magic, codec=Codec.GZIP))
    totals = Totals()
    assert list(verify(made(plain), DIRECTORY, totals)) == []
    assert (totals.batches, totals.records) == (4, 4)
    totals = Totals()
    assert list(verify(made(wrapped), DIRECTORY, totals)) == []
    assert (totals.batches, totals.records) == (1, 4)
    assert errors(made(wrapped[:-9] + bytes([wrapped[-9] ^ 1]) + wrapped[-8:])) == ["crc"]


def test_leader_epochs_do_not_fall() -> None:
    first, second = batch(b"a"), batch(b"b")
    log = bytearray()
    for offset, epoch, one in ((0, 5, first), (1, 4, second)):
        stamp(one, 0, offset, epoch)
        log += one
    assert errors(made(bytes(log), epochs=((5, 0),))) == ["epochs", "epochs"]
    assert errors(made(b"", epochs=((3, 0), (2, 0)))) == ["epochs"]
    assert errors(made(chain(batch(b"a")), epochs=((0, 0), (1, 2)))) == ["epochs"]


def test_records_are_checked_unless_shallow() -> None:
    """A header with a false largest timestamp and a correct CRC."""
    true = build_batch_of([Record(0, NOW_MS, None, b"v"), Record(1, NOW_MS + 3, None, b"w")])
    lying = build_batch_of(
        [Record(0, NOW_MS, None, b"v"), Record(1, NOW_MS, None, b"w")],
        BatchFields(timestamp_type=TimestampType.CREATE_TIME),
    )
    assert errors(made(bytes(true))) == []
    data = bytearray(lying)
    struct.pack_into(">q", data, 35, NOW_MS + 9)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    assert errors(made(bytes(data))) == ["records"]
    assert errors(made(bytes(data)), is_deep=False) == []


def test_a_batch_too_large_to_hold_is_checked_by_its_crc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_walk, "WHOLE_BATCH_MAX", 1000)
    monkeypatch.setattr(batch_walk, "WINDOW", 300)
    log = chain(batch(b"a"), batch(bytes(5000)), batch(b"c"))
    (finding,) = findings(made(log))
    assert (finding.severity, finding.check, finding.offset) == (NOTE, "records", 1)
    broken = bytearray(log)
    broken[2000] ^= 1
    assert errors(made(bytes(broken))) == ["crc"]


def test_a_log_that_is_being_written_rolled_and_shortened_has_no_errors(tmp_path: Path) -> None:
    """At whatever moments the files are read."""
    files = local_files()
    directory = str(tmp_path / "busy-0")
    config = log_config(segment_bytes=3000, index_interval_bytes=200, segment_index_bytes=240, retention_bytes=9000)
    log = open_log(files, directory, config)
    stopping = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            number = 0
            while not stopping.is_set():
                append(
                    log,
                    b"v" * (number % 90),
                    timestamp=NOW_MS + number,
                    producer_id=1,
                    producer_epoch=0,
                    base_sequence=number,
                )
                log.update_high_watermark(log.log_end_offset)
                number += 1
                if number % 50 == 0:
                    log.delete_old_segments(NOW_MS)
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    found: list[Finding] = []
    try:
        while log.log_end_offset < BUSY_OFFSETS and not failures:
            found += (finding for finding in findings(files, directory) if finding.severity == ERROR)
    finally:
        stopping.set()
        writer.join()
    log.close()
    assert (failures, found) == ([], [])
