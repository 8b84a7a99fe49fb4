"""What must hold of a `Load` after a restart, checked on the log directories that it left."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_meta_properties, decode_offsets
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.log.log import Log
from tests.support.storage.batches import NOW_MS, append, found_by, read_all
from tests.support.storage.lossy_files import LossyFiles
from tests.support.storage.storage_load import (
    DIRS,
    FAR_FUTURE_MS,
    PLAIN,
    TRANSACTIONAL,
    History,
    Known,
    Load,
    next_sequence,
    open_manager,
)

LEFTOVERS = (names.DELETED_SUFFIX, names.CLEANED_SUFFIX, names.SWAP_SUFFIX, names.DELETE_DIR_SUFFIX, ".tmp")


def check_restart(load: Load, files: LossyFiles) -> None:
    """Open what a crash left: everything acknowledged is there, appends work, and the next stop is clean."""
    if not load.had_failures:
        check_checkpoints(load, files)
    manager = open_manager(files)
    assert not manager.dirs.offline
    found: dict[str, list[tuple[int, bytes | None]]] = {}
    for topic, known in load.known.items():
        log = manager.get(topic, 0)
        if log is None:
            assert not known.must_exist, f"{topic} is gone"
            continue
        check_log(known, log)
        log.assign_topic_id(known.topic_id)
        log.update_high_watermark(log.log_end_offset)
        sequence = next_sequence(log.producers, PLAIN)
        append(log, b"more", leader_epoch=9, producer_id=PLAIN, producer_epoch=0, base_sequence=sequence)
        found[topic] = read_all(log)
        assert found[topic][-1] == (log.log_end_offset - 1, b"more")
    for job in manager.deletions_due(FAR_FUTURE_MS):
        job()
    manager.shutdown()
    assert not leftovers(files), leftovers(files)
    assert files.open_count == 0
    again = open_manager(files)
    for topic, records in found.items():
        log = again.get(topic, 0)
        assert log is not None
        assert read_all(log) == records
    again.shutdown()


def check_log(known: Known, log: Log) -> None:
    start, end = log.log_start_offset, log.log_end_offset
    assert known.start_min <= start <= known.start_max, "the log start as checkpointed, or as it was to become"
    assert end >= known.flushed, "what was flushed is there"
    assert log.topic_id in ((known.topic_id,) if known.must_exist else (known.topic_id, None))
    history = _history_of(known.histories, log)
    for offset in range(start, end):
        entry = history[offset]
        assert entry is not None
        assert log.epoch_for_offset(offset) == entry.epoch
    assert start == end or log.latest_epoch <= max(
        (entry.epoch for entry in history[:end] if entry is not None), default=-1
    )
    for producer_id in (PLAIN, TRANSACTIONAL):
        sequences = [
            e.sequence for e in history[start:end] if e is not None and e.producer_id == producer_id and e.value
        ]
        if sequences:
            assert log.producers.producers[producer_id].last_sequence == sequences[-1]
    _check_lookups(log, history)
    assert aborted(log) == _expected_aborts(history[:end], start)


def _history_of(histories: Iterable[History], log: Log) -> History:
    """Which of the histories the log holds."""
    start, end = log.log_start_offset, log.log_end_offset
    found = read_all(log)
    assert len({offset for offset, _ in found}) == len(found)
    for history in histories:
        wanted = [(o, history[o]) for o in range(start, min(end, len(history)))]
        records = [(o, entry.value) for o, entry in wanted if entry is not None and entry.value is not None]
        if found == records and end <= len(history) and all(entry is not None for _, entry in wanted):
            return history
    raise AssertionError(f"{log} holds none of its histories: {found}")


def _check_lookups(log: Log, history: History) -> None:
    for offset in range(log.log_start_offset, log.log_end_offset):
        entry = history[offset]
        if entry is None or entry.value is None:
            continue
        located = found_by(log.search_timestamp(NOW_MS + offset))
        assert located is not None, offset
        assert located.offset == offset


def aborted(log: Log) -> list[tuple[int, int]]:
    found = log.collect_aborted_transactions(log.log_start_offset, log.log_end_offset)
    return [(transaction.first_offset, transaction.last_offset) for transaction in found]


def _expected_aborts(history: History, start: int) -> list[tuple[int, int]]:
    found, first = [], None
    for offset, entry in enumerate(history):
        if entry is None or entry.producer_id != TRANSACTIONAL:
            continue
        if entry.committed is None:
            first = offset if first is None else first
        else:
            if entry.committed is False and offset >= start and first is not None:
                found.append((first, offset))
            first = None
    return found


def check_checkpoints(load: Load, files: LossyFiles) -> None:
    """Each is the last one that was written, or one that was being written: whole in any case."""
    for (directory, kind), written in load.checkpoints.items():
        path = f"{directory}/{kind}"
        assert decode_offsets(read_file(files, path) or b"", path) in written, path
    for directory in DIRS:
        path = f"{directory}/{names.META_PROPERTIES}"
        data = read_file(files, path)
        assert load.manager is None or data is not None
        if data is not None:
            assert decode_meta_properties(data, path).cluster_id == "cluster"


def leftovers(files: LossyFiles) -> list[str]:
    found = []
    for directory in DIRS:
        for entry in files.listdir(directory):
            inside = files.listdir(f"{directory}/{entry.name}") if entry.is_dir else []
            found += [name for name in (entry.name, *(e.name for e in inside)) if name.endswith(LEFTOVERS)]
    return found
