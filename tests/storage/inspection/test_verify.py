"""`kpybroker log verify`: a sound log has no findings, and every flipped bit is found."""

from __future__ import annotations

import json
import random
import struct

import pytest

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import encode_offsets, encode_partition_metadata
from kpybroker.storage.disk.files import read_file, write_file
from kpybroker.storage.inspection import verify_checks
from kpybroker.storage.inspection.dump import dump
from kpybroker.storage.inspection.dump_segment import Selection
from kpybroker.storage.inspection.verify import ERROR, NOTE, Finding, Totals, verify
from kpybroker.storage.segments.index import OffsetIndex
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, iter_batches, stamp
from tests.support.storage.batches import NOW_MS, batch
from tests.support.storage.log_dir import ABORTED_MARKER, END_OFFSET, make_log_dir
from tests.support.storage.lossy_files import LossyFiles

ROOT = "/data"


def sound(*, clean: bool = True) -> tuple[LossyFiles, str]:
    files = LossyFiles()
    return files, make_log_dir(files, ROOT, clean=clean)


def findings(files: LossyFiles, path: str = ROOT, severity: str | None = None) -> list[Finding]:
    found = list(verify(files, path, Totals()))
    return [finding for finding in found if severity in (None, finding.severity)]


def only_error(files: LossyFiles, path: str = ROOT) -> Finding:
    (error,) = findings(files, path, ERROR)
    return error


def content(files: LossyFiles, path: str) -> bytearray:
    data = read_file(files, path)
    assert data is not None, path
    return bytearray(data)


def write(files: LossyFiles, path: str, data: bytes) -> None:
    write_file(files, path, data, sync=True)


def segments(files: LossyFiles, directory: str) -> list[str]:
    listed = sorted(entry.name for entry in files.listdir(directory))
    return [f"{directory}/{name}" for name in listed if name.endswith(names.LOG_SUFFIX)]


def with_suffix(files: LossyFiles, directory: str, suffix: str) -> list[str]:
    listed = sorted(entry.name for entry in files.listdir(directory))
    paths = [f"{directory}/{name}" for name in listed if name.endswith(suffix)]
    return [path for path in paths if content(files, path)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_sound_log_has_no_findings_and_is_counted(clean: bool) -> None:
    files, directory = sound(clean=clean)
    totals = Totals()
    assert list(verify(files, ROOT, totals)) == []
    sizes = sum(len(content(files, path)) for path in segments(files, directory))
    assert totals == Totals(1, len(segments(files, directory)), END_OFFSET, END_OFFSET, sizes)
    assert totals.segments > 3


def test_a_partition_and_each_of_its_files_can_be_named_alone() -> None:
    files, directory = sound()
    assert findings(files, directory) == []
    for entry in files.listdir(directory):
        assert findings(files, f"{directory}/{entry.name}") == []


def test_nothing_is_written() -> None:
    files, _ = sound()
    before = files.operations
    findings(files)
    assert files.operations == before


def lso_of(suffix: str, byte: int) -> bool:
    """A last stable offset that is too low makes a reader look at more entries, and no response wrong."""
    return suffix == names.TXN_INDEX_SUFFIX and byte % 34 >= 26


@pytest.mark.parametrize(
    "suffix", [names.LOG_SUFFIX, names.TIME_INDEX_SUFFIX, names.TXN_INDEX_SUFFIX, names.SNAPSHOT_SUFFIX]
)
def test_every_flipped_bit_is_found(suffix: str) -> None:
    files, directory = sound()
    rng = random.Random(7)
    paths = with_suffix(files, directory, suffix)
    for _ in range(250):
        path = rng.choice(paths)
        data = content(files, path)
        byte, bit = rng.randrange(len(data)), rng.randrange(8)
        if lso_of(suffix, byte):
            continue
        write(files, path, bytes(data[:byte]) + bytes([data[byte] ^ 1 << bit]) + bytes(data[byte + 1 :]))
        assert findings(files), f"{path}: bit {bit} of byte {byte}"
        write(files, path, bytes(data))
    assert findings(files) == []


def test_a_flipped_bit_of_an_offset_index_is_found_or_every_lookup_is_right() -> None:
    files, directory = sound()
    rng = random.Random(8)
    harmless = 0
    for _ in range(250):
        path = rng.choice(with_suffix(files, directory, names.INDEX_SUFFIX))
        data = content(files, path)
        byte, bit = rng.randrange(len(data)), rng.randrange(8)
        write(files, path, bytes(data[:byte]) + bytes([data[byte] ^ 1 << bit]) + bytes(data[byte + 1 :]))
        if not findings(files):
            harmless += 1
            base = names.offset_of(path.rpartition("/")[2])
            assert base is not None
            index = OffsetIndex(files, path, base, 240, active=False)
            log = bytes(content(files, path.replace(names.INDEX_SUFFIX, names.LOG_SUFFIX)))
            for position, header in iter_batches(log):
                assert index.lookup(header.base_offset).position <= position
        write(files, path, bytes(data))
    assert harmless < 25


@pytest.mark.parametrize("clean", [True, False])
def test_a_batch_cut_off_at_the_end_of_the_log_is_a_note_unless_the_stop_was_clean(clean: bool) -> None:
    files, directory = sound(clean=clean)
    path = segments(files, directory)[-1]
    data = content(files, path)
    torn = batch(b"being written", timestamp=NOW_MS + 99)
    stamp(torn, 0, END_OFFSET, 3)
    for size in (1, 16, 17, RECORD_BATCH_OVERHEAD - 1, RECORD_BATCH_OVERHEAD, len(torn) - 1):
        write(files, path, bytes(data + torn[:size]))
        (finding,) = findings(files)
        assert finding.severity == (ERROR if clean else NOTE)
        assert (finding.file, finding.position, finding.offset) == (path, len(data), END_OFFSET)


def test_a_batch_cut_off_elsewhere_is_an_error_and_the_walk_goes_on_with_the_next_segment() -> None:
    files, directory = sound(clean=False)
    first, second = segments(files, directory)[:2]
    write(files, first, bytes(content(files, first)[:-1]))
    broken = content(files, second)
    broken[RECORD_BATCH_OVERHEAD + 3] ^= 1
    write(files, second, bytes(broken))
    errors = findings(files, severity=ERROR)
    assert {(error.check, error.file) for error in errors} == {("batch", first), ("crc", second)}


def test_preallocated_space_at_the_end_of_a_log_in_use_is_a_note() -> None:
    files, directory = sound(clean=False)
    path = segments(files, directory)[-1]
    data = content(files, path)
    write(files, path, bytes(data) + bytes(1000))
    (finding,) = findings(files)
    assert (finding.severity, finding.check, finding.position) == (NOTE, "tail", len(data))


def test_a_length_that_swallows_what_follows_is_no_unfinished_batch() -> None:
    files, directory = sound(clean=False)
    path = segments(files, directory)[-1]
    data = content(files, path)
    struct.pack_into(">i", data, 8, 1 << 20)
    write(files, path, bytes(data))
    error = only_error(files)
    assert (error.check, error.file, error.position) == ("batch", path, 0)


def test_preallocated_zeros_follow_the_entries_of_an_index_in_use() -> None:
    files, directory = sound(clean=False)
    base = segments(files, directory)[-1].removesuffix(names.LOG_SUFFIX)
    for suffix in (names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX):
        write(files, base + suffix, bytes(content(files, base + suffix)) + bytes(2400))
    assert findings(files) == []


def test_a_segment_that_is_gone_is_a_gap_and_what_belonged_to_it_is_found() -> None:
    files, directory = sound()
    gone = segments(files, directory)[1]
    files.unlink(gone)
    found = findings(files)
    (gap,) = [finding for finding in found if finding.check == "gap"]
    assert gap.severity == NOTE
    assert gap.offset == names.offset_of(gone.rpartition("/")[2])
    strays = {finding.file for finding in found if finding.severity == ERROR}
    assert {
        gone.replace(names.LOG_SUFFIX, names.INDEX_SUFFIX),
        gone.replace(names.LOG_SUFFIX, names.TIME_INDEX_SUFFIX),
    } <= strays


def test_a_missing_index_is_an_error() -> None:
    files, directory = sound()
    path = segments(files, directory)[0].replace(names.LOG_SUFFIX, names.TIME_INDEX_SUFFIX)
    files.unlink(path)
    error = only_error(files)
    assert (error.file, error.message) == (path, "missing")


def test_an_abort_without_its_entry_is_found() -> None:
    files, directory = sound()
    (path,) = with_suffix(files, directory, names.TXN_INDEX_SUFFIX)
    files.unlink(path)
    error = only_error(files)
    assert (error.check, error.file, error.offset) == ("txnindex", path, ABORTED_MARKER)


def test_checkpoints_above_the_end_of_their_log() -> None:
    files, _ = sound()
    for name in (names.RECOVERY_POINT_CHECKPOINT, names.HIGH_WATERMARK_CHECKPOINT):
        path = f"{ROOT}/{name}"
        before = content(files, path)
        write(files, path, encode_offsets({TopicPartition("topic", 0): END_OFFSET + 1}))
        error = only_error(files)
        assert (error.check, error.file, error.offset) == ("checkpoint", path, END_OFFSET + 1)
        write(files, path, bytes(before))


def test_a_checkpoint_of_a_partition_that_is_not_here_is_a_note() -> None:
    files, _ = sound()
    write(files, f"{ROOT}/{names.CLEANER_OFFSET_CHECKPOINT}", encode_offsets({TopicPartition("gone", 3): 5}))
    (finding,) = findings(files)
    assert finding.severity == NOTE
    assert "gone-3" in finding.message


@pytest.mark.parametrize(
    "name", [names.META_PROPERTIES, names.RECOVERY_POINT_CHECKPOINT, f"topic-0/{names.LEADER_EPOCH_CHECKPOINT}"]
)
def test_a_small_file_that_cannot_be_read(name: str) -> None:
    files, _ = sound()
    write(files, f"{ROOT}/{name}", b"version=9\nfour\nfive")
    assert f"{ROOT}/{name}" in {error.file for error in findings(files, severity=ERROR)}


def test_leader_epochs_that_the_checkpoint_lacks_are_a_note_until_the_stop_is_clean() -> None:
    for clean in (True, False):
        files, directory = sound(clean=clean)
        path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
        lines = content(files, path).decode().splitlines()
        write(files, path, "\n".join(["0", "3", *lines[2:5], ""]).encode())
        (finding,) = findings(files)
        assert (finding.severity, finding.check) == (ERROR if clean else NOTE, "epochs")


def test_partitions_of_one_topic_have_one_topic_id() -> None:
    files, _ = sound()
    other = f"{ROOT}/topic-1"
    files.mkdir(other)
    write(files, f"{other}/{names.PARTITION_METADATA}", encode_partition_metadata(bytes(reversed(range(16)))))
    error = only_error(files)
    assert error.file == f"{other}/{names.PARTITION_METADATA}"


def test_a_partition_that_is_being_deleted_is_left_alone() -> None:
    files, directory = sound()
    files.rename(directory, f"{ROOT}/topic-0.0123456789abcdef-delete")
    write(files, f"{ROOT}/topic-0.0123456789abcdef-delete/00000000000000000000.log", b"rubbish")
    totals = Totals()
    found = list(verify(files, ROOT, totals))
    assert totals.partitions == 0
    assert {finding.severity for finding in found} == {NOTE}


class Changing(LossyFiles):
    """A segment that one reader finds half replaced, and the next one whole."""

    def __init__(self) -> None:
        super().__init__()
        self.torn: str | None = None

    def open(self, path: str, *, create: bool = False, writable: bool = True):  # type: ignore[no-untyped-def]
        file = super().open(path, create=create, writable=writable)
        if path == self.torn:
            self.torn = None
            return super().open(path + ".torn", create=False, writable=False)
        return file


def test_what_a_second_look_does_not_find_was_the_log_changing() -> None:
    files = Changing()
    directory = make_log_dir(files, ROOT)
    path = segments(files, directory)[1]
    write(files, path + ".torn", bytes(content(files, path)[:-5]))
    files.torn = path
    assert findings(files) == []
    assert files.torn is None


def test_a_decompression_bomb_is_named_and_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_checks, "UNCOMPRESSED_MAX", 1 << 20)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        files, directory = sound(clean=False)
        path = segments(files, directory)[-1]
        data = content(files, path)
        bomb = batch(bytes(4 << 20), timestamp=NOW_MS + 99, codec=codec)
        stamp(bomb, 0, END_OFFSET, 3)
        write(files, path, bytes(data + bomb))
        error = only_error(files)
        assert (error.check, error.position, error.offset) == ("records", len(data), END_OFFSET)


def test_many_findings_of_a_kind_are_counted() -> None:
    files, directory = sound()
    path = segments(files, directory)[0]
    count = verify_checks.FINDINGS_MAX + 30
    write(files, path.replace(names.LOG_SUFFIX, names.INDEX_SUFFIX), struct.pack(">ii", 1, 1) * (count + 1))
    errors = findings(files, severity=ERROR)
    reported = [error for error in errors if error.check == "index"]
    assert len(reported) == verify_checks.FINDINGS_MAX + 1
    assert "more of these" in reported[-1].message


def damaged(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 3, 30, 300))
    return rng.choice(
        (
            lambda: data[:at],
            lambda: data[:at] + rng.randbytes(size) + data[at + size :],
            lambda: data[:at] + bytes(size) + data[at:],
            lambda: data[:at] + data[at + size :],
            lambda: data + rng.randbytes(size),
            lambda: b"[" * 100_000,
        )
    )()


def test_no_damage_to_any_file_raises_anything() -> None:
    files, directory = sound()
    rng = random.Random(7)
    paths = [
        f"{place}/{entry.name}" for place in (ROOT, directory) for entry in files.listdir(place) if not entry.is_dir
    ]
    for _ in range(300):
        chosen = {path: bytes(content(files, path)) for path in rng.sample(paths, rng.choice((1, 1, 1, 4)))}
        for path, data in chosen.items():
            write(files, path, damaged(rng, data))
        findings(files)
        for row in dump(files, ROOT, Selection(records=True)):
            json.dumps(row)
        for path, data in chosen.items():
            write(files, path, data)
    assert findings(files) == []
