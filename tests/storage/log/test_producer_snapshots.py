"""Producer snapshots: Kafka's bytes, damage found, and which files are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.log.producer_entries import BatchMetadata, ProducerStateEntry
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.disk.files import read_file, write_file
from kpybroker.storage.log.producer_snapshots import ProducerSnapshots, decode_snapshot, encode_snapshot
from tests.support.storage.lossy_files import LossyFiles

# What Kafka 3.9.1's ProducerStateManager.writeSnapshot writes for producer 4000, epoch 3, last sequence 9 at offset
# 120, offset delta 2, timestamp 1700000000000, coordinator epoch 5, open transaction from 100.
KAFKAS_BYTES = bytes.fromhex(
    "0001fae9f6a7000000010000000000000fa00003000000090000000000000078000000020000018bcfe56800000000050000000000000064"
)


def entry(producer_id: int = 4000) -> ProducerStateEntry:
    return ProducerStateEntry(producer_id, 3, 5, 1_700_000_000_000, 100, [BatchMetadata(9, 120, 2, 1_700_000_000_000)])


def state_of(snapshots: ProducerSnapshots) -> list[tuple[int, int, int]]:
    return [(e.producer_id, e.last_sequence, e.last_data_offset) for e in snapshots.state.producers.values()]


def new(files: LossyFiles) -> ProducerSnapshots:
    return ProducerSnapshots(files, "/t-0", ProducerState("t-0"))


@pytest.fixture
def files() -> LossyFiles:
    files = LossyFiles()
    files.mkdir("/t-0")
    return files


def test_the_layout_is_kafkas() -> None:
    assert encode_snapshot([entry()]) == KAFKAS_BYTES


def test_a_snapshot_round_trips() -> None:
    (found,) = decode_snapshot(encode_snapshot([entry()]))
    assert (found.producer_id, found.producer_epoch, found.coordinator_epoch) == (4000, 3, 5)
    assert (found.last_timestamp, found.current_txn_first_offset) == (1_700_000_000_000, 100)
    assert found.batches == [BatchMetadata(9, 120, 2, 1_700_000_000_000)]
    (bare,) = decode_snapshot(encode_snapshot([ProducerStateEntry(1)]))
    assert (bare.batches, bare.current_txn_first_offset, bare.producer_epoch) == ([], -1, -1)


@given(st.data())
def test_every_flipped_bit_is_found(data: st.DataObject) -> None:
    good = encode_snapshot([entry(), entry(4001)])
    bit = data.draw(st.integers(0, len(good) * 8 - 1))
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptCheckpointError):
        decode_snapshot(bytes(bad))


@given(st.integers(0, 53))
def test_every_truncation_is_found(length: int) -> None:
    with pytest.raises(CorruptCheckpointError):
        decode_snapshot(encode_snapshot([entry()])[:length])


def test_a_snapshot_is_taken_once_an_offset(files: LossyFiles) -> None:
    snapshots = new(files)
    snapshots.state.producers = {4000: entry()}
    snapshots.take(sync=True)
    assert snapshots.offsets == ()
    snapshots.state.map_end_offset = 121
    snapshots.take(sync=False)
    snapshots.take(sync=False)
    assert list(snapshots.offsets) == [121]
    assert snapshots.unsynced == ("/t-0/00000000000000000121.snapshot",)
    assert read_file(files, snapshots.path(121)) == encode_snapshot([entry()])


def test_a_damaged_snapshot_is_removed_and_the_one_before_it_taken(files: LossyFiles) -> None:
    write_file(files, "/t-0/00000000000000000010.snapshot", encode_snapshot([entry()]), sync=False)
    write_file(files, "/t-0/00000000000000000020.snapshot", b"damaged", sync=False)
    snapshots = new(files)
    snapshots.truncate_and_reload(0, 30, 1_700_000_000_000)
    assert state_of(snapshots) == [(4000, 9, 120)]
    assert snapshots.state.map_end_offset == 10
    assert snapshots.offsets == (10,)
    assert len(snapshots.corrupt) == 1


def test_snapshots_outside_the_log_are_removed(files: LossyFiles) -> None:
    for offset in (5, 10, 20):
        write_file(files, f"/t-0/{offset:020d}.snapshot", encode_snapshot([]), sync=False)
    snapshots = new(files)
    snapshots.truncate_and_reload(5, 15, 0)
    assert snapshots.offsets == (10,)


def test_without_a_snapshot_the_state_begins_at_the_log_start(files: LossyFiles) -> None:
    snapshots = new(files)
    snapshots.truncate_and_reload(7, 15, 0)
    assert (snapshots.state.map_end_offset, snapshots.last_snapshot_offset) == (7, 7)


@pytest.mark.parametrize(
    ("present", "bases", "kept"),
    [
        ([0, 10, 20], [0, 10, 20], [0, 10, 20]),
        ([0, 5, 10, 25], [0, 10, 20], [0, 10, 25]),  # 25: of a clean stop
        ([5, 15], [0, 10, 20], []),
        ([21, 25], [0, 20], [25]),
    ],
)
def test_stray_snapshots(files: LossyFiles, present: list[int], bases: list[int], kept: list[int]) -> None:
    for offset in present:
        write_file(files, f"/t-0/{offset:020d}.snapshot", encode_snapshot([]), sync=False)
    snapshots = new(files)
    snapshots.remove_stray(bases)
    assert list(snapshots.offsets) == kept


def test_deletion_is_by_rename(files: LossyFiles) -> None:
    write_file(files, "/t-0/00000000000000000010.snapshot", b"", sync=False)
    snapshots = new(files)
    assert snapshots.mark_deleted(10) == "/t-0/00000000000000000010.snapshot.deleted"
    assert snapshots.mark_deleted(10) is None
    assert snapshots.offsets == ()
    write_file(files, "/t-0/00000000000000000020.snapshot", b"", sync=False)
    snapshots.reload()
    files.unlink("/t-0/00000000000000000020.snapshot")
    assert snapshots.mark_deleted(20) is None


def test_starting_again_removes_all(files: LossyFiles) -> None:
    write_file(files, "/t-0/00000000000000000010.snapshot", encode_snapshot([entry()]), sync=False)
    snapshots = new(files)
    snapshots.truncate_and_reload(0, 20, 1_700_000_000_000)
    snapshots.truncate_fully_and_start_at(50)
    assert (snapshots.offsets, state_of(snapshots), snapshots.state.map_end_offset) == ((), [], 50)
