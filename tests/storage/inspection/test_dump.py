"""`kpybroker log dump`: rows of every file of a log."""

from __future__ import annotations

import pytest

from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import write_file
from kpybroker.storage.inspection.dump import NotALogError, check_path, dump, kind_of
from kpybroker.storage.inspection.dump_segment import Row, Selection
from tests.support.storage.log_dir import ABORTED_FIRST, ABORTED_MARKER, ABORTED_PRODUCER, END_OFFSET, make_log_dir
from tests.support.storage.lossy_files import LossyFiles

ROOT = "/data"
OFFSETS = list(range(END_OFFSET))


@pytest.fixture
def files() -> LossyFiles:
    made = LossyFiles()
    make_log_dir(made, ROOT)
    return made


def rows(files: LossyFiles, path: str = ROOT, **options: object) -> list[Row]:
    return list(dump(files, path, Selection(**options)))  # type: ignore[arg-type]


def of(found: list[Row], kind: str) -> list[Row]:
    return [row for row in found if row["type"] == kind]


def test_a_log_directory_shows_every_file_it_knows(files: LossyFiles) -> None:
    found = rows(files)
    known = {f"{ROOT}/{entry.name}" for entry in files.listdir(ROOT) if not entry.is_dir}
    known |= {f"{ROOT}/topic-0/{entry.name}" for entry in files.listdir(f"{ROOT}/topic-0")}
    assert {row["file"] for row in of(found, "file")} == known
    assert all(row["file"] in known for row in found)
    assert of(found, "error") == []


def test_batches_follow_each_other_and_are_valid(files: LossyFiles) -> None:
    batches = of(rows(files), "batch")
    assert [row["baseOffset"] for row in batches] == OFFSETS
    assert all(row["isValid"] and row["count"] == 1 for row in batches)
    aborted = [row["baseOffset"] for row in batches if row["isTransactional"]]
    assert aborted == list(range(ABORTED_FIRST, ABORTED_MARKER + 1))
    assert [row["baseOffset"] for row in batches if row["isControl"]] == [ABORTED_MARKER]


def test_records_come_after_their_batch(files: LossyFiles) -> None:
    found = [row for row in rows(files, records=True) if row["type"] in ("batch", "record")]
    assert [row["type"] for row in found] == ["batch", "record"] * END_OFFSET
    records = found[1::2]
    assert [row["offset"] for row in records] == OFFSETS
    assert (records[3]["key"], records[3]["value"], records[3]["sequence"]) == (None, "value 3", 3)
    assert (records[ABORTED_MARKER]["control"], records[ABORTED_MARKER]["coordinatorEpoch"]) == ("ABORT", 0)


def test_an_offset_and_a_number_of_batches_choose_over_the_segments_of_a_partition(files: LossyFiles) -> None:
    shown = of(rows(files, f"{ROOT}/topic-0", offset=17, batches_left=20), "batch")
    assert [row["baseOffset"] for row in shown] == list(range(17, 37))
    assert len({row["file"] for row in shown}) > 1


def test_index_entries_name_batches(files: LossyFiles) -> None:
    found = rows(files)
    batches = {(row["file"], row["position"]): row for row in of(found, "batch")}
    entries = of(found, "offsetIndex")
    assert len(entries) > 5
    for entry in entries:
        log = entry["file"].replace(names.INDEX_SUFFIX, names.LOG_SUFFIX)
        assert batches[log, entry["position"]]["lastOffset"] == entry["offset"]
    timestamps = {row["lastOffset"]: row["timestamp"] for row in batches.values()}
    assert all(timestamps[entry["offset"]] == entry["timestamp"] for entry in of(found, "timeIndex"))


def test_the_transaction_index_and_snapshots(files: LossyFiles) -> None:
    found = rows(files)
    (aborted,) = of(found, "abortedTxn")
    assert (aborted["producerId"], aborted["firstOffset"], aborted["lastOffset"]) == (
        ABORTED_PRODUCER,
        ABORTED_FIRST,
        ABORTED_MARKER,
    )
    last = max(row["file"] for row in of(found, "producer"))
    producers = {row["producerId"]: row for row in of(found, "producer") if row["file"] == last}
    assert (producers[1]["lastSequence"], producers[1]["lastOffset"]) == (39, 39)
    assert producers[ABORTED_PRODUCER]["currentTxnFirstOffset"] is None


def test_small_files(files: LossyFiles) -> None:
    found = rows(files)
    assert [(row["epoch"], row["startOffset"]) for row in of(found, "leaderEpoch")] == [
        (0, 0),
        (1, 15),
        (2, 30),
        (3, 40),
    ]
    assert {(row["topic"], row["partition"], row["offset"]) for row in of(found, "checkpoint")} == {("topic", 0, 60)}
    assert of(found, "metaProperties")[0]["clusterId"] == "cluster"
    assert of(found, "cleanShutdown")[0]["brokerEpoch"] == 7
    assert len(of(found, "partitionMetadata")) == 1


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000000000.txnindex",
        "00000000000000000012.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "recovery-point-offset-checkpoint",
    ],
)
@pytest.mark.parametrize("data", [b"\x7f" * 101, b"some text\nand more of it, longer than a header is\n" * 3])
def test_rubbish_is_a_row_and_never_an_exception(files: LossyFiles, name: str, data: bytes) -> None:
    files.mkdir("/x")
    write_file(files, f"/x/{name}", data, sync=True)
    check_path(files, f"/x/{name}")
    assert of(rows(files, f"/x/{name}", records=True), "error")


def test_files_being_removed_are_shown_too(files: LossyFiles) -> None:
    path = f"{ROOT}/topic-0/00000000000000000000.log"
    files.rename(path, path + ".deleted")
    assert of(rows(files, path + ".deleted"), "batch")
    assert kind_of(path + ".swap") == names.LOG_SUFFIX


@pytest.mark.parametrize("path", ["/data/nothing", "/empty", "/data/coordination.sqlite"])
def test_what_is_no_log_is_refused(files: LossyFiles, path: str) -> None:
    files.mkdir("/empty")
    write_file(files, "/data/coordination.sqlite", b"", sync=True)
    with pytest.raises(NotALogError):
        check_path(files, path)


@pytest.mark.parametrize(
    "name",
    [
        *("leader-epoch-checkpoint.deleted", "partition.metadata.swap", "meta.properties", ".kafka_cleanshutdown"),
        *("recovery-point-offset-checkpoint", "00000000000000000007.log.deleted", "99999999999999999999999.log"),
        *("x.log", "x.snapshot", "-1.index", "\udcff.log", "00000000000000000000.txnindex.swap.deleted"),
    ],
)
def test_files_of_other_places_hide_nothing(files: LossyFiles, name: str) -> None:
    before = [row for row in rows(files, f"{ROOT}/topic-0") if not row["file"].endswith(name)]
    write_file(files, f"{ROOT}/topic-0/{name}", b"", sync=True)
    found = rows(files, f"{ROOT}/topic-0")
    assert [row for row in found if not row["file"].endswith(name)] == before
