"""Power cuts and kills at every file operation of a load: what was made durable is never lost, nothing has a hole."""

from __future__ import annotations

import random
import zlib

import pytest

from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_leader_epochs
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.batches import (
    NOW_MS,
    append,
    append_as_coordinator,
    batch,
    found_by,
    log_config,
    marker,
    open_log,
    read_all,
)
from tests.support.storage.lossy_files import LossyFiles, PowerCut

CONFIG = log_config(segment_bytes=700, index_interval_bytes=100, segment_index_bytes=400, retention_ms=-1)
PATH = "/logs/t-0"


class Load:
    """A scripted load: appends of an idempotent producer over three leader epochs, a flush after every third one."""

    def __init__(self) -> None:
        self.files = LossyFiles()
        self.durable = 0  # the log end that the last completed flush covers
        self.appended: list[bytes] = []
        self.log: Log | None = None

    def run(self) -> None:
        self.log = open_log(self.files, PATH, CONFIG)
        self.log.assign_topic_id(b"i" * 16)
        for number in range(24):
            value = b"%d" % number * 8
            self.appended.append(value)
            append(
                self.log,
                value,
                leader_epoch=number // 8,
                producer_id=5,
                producer_epoch=0,
                base_sequence=number,
                timestamp=NOW_MS + number,
            )
            if number % 3 == 2:
                self.log.flush()
                self.durable = self.log.log_end_offset
        self.log.close()
        self.durable = self.log.log_end_offset


def cut_at(load: Load, operation: int) -> bool:
    """Run the load and stop it at an operation; False where the load ends before it."""

    def stop(number: int, kind: str, path: str) -> None:
        if number == operation:
            raise PowerCut

    load.files.before_operation = stop
    try:
        load.run()
    except PowerCut:
        return True
    return False


def check_recovered(files: LossyFiles, load: Load, recovery_point: int) -> None:
    log = open_log(files, PATH, CONFIG, had_clean_shutdown=False, recovery_point=recovery_point)
    found = read_all(log)
    assert [offset for offset, _ in found] == list(range(len(found))), "offsets without a hole"
    assert [value for _, value in found] == load.appended[: len(found)], "the records that were appended"
    assert len(found) >= load.durable, "what was flushed is there"
    assert log.log_end_offset == len(found)
    expected_epochs = [EpochEntry(epoch, epoch * 8) for epoch in range(3) if epoch * 8 < len(found)]
    assert log.epochs.entries == expected_epochs
    if found:
        producer = log.producers.producers[5]
        assert (producer.last_sequence, producer.last_data_offset) == (len(found) - 1, len(found) - 1)
        located = found_by(log.search_timestamp(NOW_MS + len(found) - 1))
        assert located is not None
        assert located.offset == len(found) - 1
    # The load continues where it stopped, and a clean stop keeps everything.
    append(log, b"more", leader_epoch=9, producer_id=5, producer_epoch=0, base_sequence=len(found))
    log.close()
    again = open_log(files, PATH, CONFIG)
    assert read_all(again) == [*found, (len(found), b"more")]
    assert files.open_count > 0
    again.close()


def total_operations() -> int:
    load = Load()
    load.run()
    return load.files.operations


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_operation_loses_nothing_that_was_flushed(seed: int) -> None:
    for operation in range(1, total_operations() + 1):
        load = Load()
        assert cut_at(load, operation)
        chance = random.Random(zlib.crc32(b"%d %d" % (seed, operation)))
        recovery_point = 0 if chance.random() < 0.5 else load.durable
        check_recovered(load.files.crash(chance), load, recovery_point)


def test_a_kill_at_any_operation_loses_nothing_that_was_written() -> None:
    for operation in range(1, total_operations() + 1):
        load = Load()
        assert cut_at(load, operation)
        if load.log is not None:
            load.durable = load.log.log_end_offset
        check_recovered(load.files.snapshot(), load, load.log.recovery_point if load.log else 0)


def test_a_crash_during_recovery_is_recovered_from() -> None:
    load = Load()
    assert cut_at(load, total_operations() // 2)
    crashed = load.files.crash(random.Random(1))
    probe = crashed.snapshot()
    open_log(probe, PATH, CONFIG, had_clean_shutdown=False)
    for operation in range(1, probe.operations + 1):
        files = crashed.snapshot()

        def stop(number: int, kind: str, path: str, at: int = operation) -> None:
            if number == at:
                raise PowerCut

        files.before_operation = stop
        with pytest.raises(PowerCut):
            open_log(files, PATH, CONFIG, had_clean_shutdown=False)
        check_recovered(files.crash(random.Random(operation)), load, 0)


def filled() -> LossyFiles:
    load = Load()
    load.run()
    return load.files


def segment_paths(files: LossyFiles, suffix: str) -> list[str]:
    return sorted(f"{PATH}/{entry.name}" for entry in files.listdir(PATH) if entry.name.endswith(suffix))


def damage(files: LossyFiles, path: str, position: int) -> None:
    file = files.open(path)
    file.pwrite(bytes([file.pread(1, position)[0] ^ 0x55]), position)
    file.close()


def test_after_an_unclean_stop_the_log_ends_before_the_first_bad_batch() -> None:
    whole = [value for _, value in read_all(open_log(filled(), PATH, CONFIG))]
    for path in segment_paths(filled(), names.LOG_SUFFIX):
        files = filled()
        base = names.offset_of(path.rpartition("/")[2])
        assert base is not None
        damage(files, path, 75)  # within the first batch's records
        log = open_log(files, PATH, CONFIG, had_clean_shutdown=False)
        assert [value for _, value in read_all(log)] == whole[:base]
        assert log.log_end_offset == base
        assert [segment.base_offset for segment in log.segments()][-1] == base
        assert log.deletions_due(NOW_MS + 10**9) != [] or base == segment_bases(files)[-1]


def segment_bases(files: LossyFiles) -> list[int]:
    return sorted(
        offset
        for entry in files.listdir(PATH)
        if entry.name.endswith(names.LOG_SUFFIX) and (offset := names.offset_of(entry.name)) is not None
    )


def test_nothing_below_the_recovery_point_is_read() -> None:
    files = filled()
    bases = segment_bases(files)
    damage(files, segment_paths(files, names.LOG_SUFFIX)[0], 75)
    log = open_log(files, PATH, CONFIG, had_clean_shutdown=False, recovery_point=bases[1])
    assert log.log_end_offset == 24


@pytest.mark.parametrize("suffix", [names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_index_is_rebuilt(suffix: str, clean: bool) -> None:
    expected = {path: read_file(filled(), path) for path in segment_paths(filled(), suffix)}
    for path in expected:
        files = filled()
        files.unlink(path)
        log = open_log(files, PATH, CONFIG, had_clean_shutdown=clean)
        for number in range(24):
            found = found_by(log.search_timestamp(NOW_MS + number))
            assert found is not None
            assert found.offset == number
            fetched = log.read(number, 1)
            assert fetched.slice is not None
        log.close()
        if suffix == names.INDEX_SUFFIX or not clean:
            assert read_file(files, path) == expected[path]


@pytest.mark.parametrize("suffix", [names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX])
def test_no_flipped_bit_of_an_index_makes_a_read_wrong(suffix: str) -> None:
    """A wrong position is noticed where it is used, and the index rebuilt."""
    whole = read_all(open_log(filled(), PATH, CONFIG))
    checked = 0
    sound = filled()
    for path in segment_paths(sound, suffix):
        size = len(read_file(sound, path) or b"")
        for bit in range(0, size * 8, 5):
            files = sound.snapshot()
            checked += 1
            file = files.open(path)
            file.pwrite(bytes([file.pread(1, bit // 8)[0] ^ 1 << bit % 8]), bit // 8)
            file.close()
            log = open_log(files, PATH, CONFIG)
            for offset in range(0, 24, 3):
                assert read_all(log, offset) == whole[offset:]
                located = found_by(log.search_timestamp(NOW_MS + offset))
                assert located is not None
                assert located.offset == offset
    assert checked > 50


def test_a_damaged_epoch_checkpoint_is_found_again_from_the_batches() -> None:
    files = filled()
    path = f"{PATH}/{names.LEADER_EPOCH_CHECKPOINT}"
    assert decode_leader_epochs(read_file(files, path) or b"", path) == [(0, 0), (1, 8), (2, 16)]
    files.unlink(path)
    log = open_log(files, PATH, CONFIG, had_clean_shutdown=False)
    assert log.epochs.entries == [(0, 0), (1, 8), (2, 16)]


def test_epochs_that_a_truncation_removed_stay_removed_after_a_kill(files: LossyFiles) -> None:
    """The checkpoint is written with the next flush; until then it has epochs that are no longer in the log."""
    log = open_log(files, PATH, CONFIG)
    for epoch in (1, 3):
        append(log, b"x", leader_epoch=epoch)
        append(log, b"x", leader_epoch=epoch)
    log.flush()
    log.prepare_truncation(2)
    log.truncate_to(2, now_ms=NOW_MS)
    for epoch in (2, 2, 4):
        append(log, b"y", leader_epoch=epoch)
    assert log.epochs.entries == [(1, 0), (2, 2), (4, 4)]
    again = open_log(files.snapshot(), PATH, CONFIG, had_clean_shutdown=False, recovery_point=log.recovery_point)
    assert again.epochs.entries == [(1, 0), (2, 2), (4, 4)]


def test_aborts_are_indexed_again(files: LossyFiles) -> None:
    log = open_log(files, PATH, CONFIG, verification_enabled=False)
    for number in range(8):
        options = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True}
        append(log, b"x" * 200, base_sequence=number, **options)
        append_as_coordinator(log, marker(commit=number % 2 == 0, producer_id=5))
    expected = log.collect_aborted_transactions(0, 100)
    assert [(txn.first_offset, txn.last_offset) for txn in expected] == [(2, 3), (6, 7), (10, 11), (14, 15)]
    for path in segment_paths(files, names.TXN_INDEX_SUFFIX):
        files.unlink(path)
    recovered = open_log(files.snapshot(), PATH, CONFIG, had_clean_shutdown=False)
    assert recovered.collect_aborted_transactions(0, 100) == expected
    recovered.update_high_watermark(recovered.log_end_offset)
    assert recovered.first_unstable_offset is None or recovered.first_unstable_offset >= 16


def test_an_open_transaction_is_known_after_a_kill(files: LossyFiles) -> None:
    log = open_log(files, PATH, CONFIG, verification_enabled=False)
    append(log, b"plain")
    append(log, b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    for _ in range(20):
        append(log, b"y" * 50)
    for clean in (False, True):
        if clean:
            log.close()
        again = open_log(files.snapshot(), PATH, CONFIG, had_clean_shutdown=clean, verification_enabled=False)
        again.update_high_watermark(again.log_end_offset)
        assert again.last_stable_offset == 1
        assert again.has_ongoing_transaction(5)


@pytest.mark.parametrize("rolls_after", [None, 3])
def test_each_of_the_last_five_batches_is_known_when_it_is_sent_again_after_a_kill(
    files: LossyFiles, rolls_after: int | None
) -> None:
    """Several may have been in flight without an acknowledgement; Kafka knows the last one only."""
    log = open_log(files, "/logs/t-0")
    for sequence in range(7):
        append(log, b"%d" % sequence, producer_id=9, producer_epoch=0, base_sequence=sequence)
        if sequence == rolls_after:
            log.roll(NOW_MS)
    log = open_log(files.snapshot(), "/logs/t-0", had_clean_shutdown=False)
    for sequence in range(2, 7):
        assert append(log, b"%d" % sequence, producer_id=9, producer_epoch=0, base_sequence=sequence) == sequence
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(log, b"1", producer_id=9, producer_epoch=0, base_sequence=1)
    assert append(log, b"7", producer_id=9, producer_epoch=0, base_sequence=7) == log.log_end_offset - 1 == 7


def test_a_cleanly_closed_log_that_cannot_be_read_is_refused() -> None:
    """Kafka would cut nothing either: after a clean stop the log is whole."""
    files = filled()
    path = segment_paths(files, names.LOG_SUFFIX)[-1]
    file = files.open(path)
    last = list(open_log(filled(), PATH, CONFIG).active_segment.records.headers())[-1][0]
    file.pwrite(b"\xff\xff\xff\xff", last + 8)
    file.close()
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
        open_log(files, PATH, CONFIG)


def test_damage_within_a_clean_log_fails_reads_there_and_nowhere_else() -> None:
    files = filled()
    whole = read_all(open_log(files.snapshot(), PATH, CONFIG))
    path = segment_paths(files, names.LOG_SUFFIX)[0]
    file = files.open(path)
    file.pwrite(b"\xff\xff\xff\xff", 8)  # the first batch's length
    file.close()
    log = open_log(files, PATH, CONFIG)
    for _ in range(2):
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
            log.read(0, 100)
    following = log.segments()[1].base_offset
    assert read_all(log, following) == whole[following:]
    assert read_all(log, following - 1) == whole[following - 1 :]


def test_offsets_that_go_back_end_the_log(files: LossyFiles) -> None:
    log = open_log(files, PATH, CONFIG)
    append(log, b"a")
    append(log, b"b")
    log.active_segment.records.append(batch(b"c", base_offset=1))
    again = open_log(files.snapshot(), PATH, CONFIG, had_clean_shutdown=False)
    assert read_all(again) == [(0, b"a"), (1, b"b")]
