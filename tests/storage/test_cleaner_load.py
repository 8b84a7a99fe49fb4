"""Compaction of random loads: whoever reads the compacted log makes the same table of it as before."""

from __future__ import annotations

from random import Random

import pytest

from kpybroker.core.producer_state import ProducerState
from tests.support.batches import log_config, open_log
from tests.support.cleaning import clean_log
from tests.support.keyed_load import KeyedLoad, Seen, all_records, committed_records, latest_values
from tests.support.lossy_files import LossyFiles

PATH = "/logs/t-0"
CONFIG = log_config(
    segment_bytes=10_000,
    segment_index_bytes=2_000,
    index_interval_bytes=500,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=60_000,
)


def producers(state: ProducerState) -> dict[int, tuple[object, ...]]:
    """What must survive of them: epoch, last sequence, and the transaction in progress."""
    return {
        producer_id: (
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.current_txn_first_offset,
        )
        for producer_id, entry in state.producers.items()
    }


def since(records: list[Seen], offset: int) -> list[Seen]:
    return [record for record in records if record.offset >= offset]


@pytest.mark.parametrize("seed", range(40))
def test_compaction_changes_nothing_that_a_reader_relies_on(seed: int) -> None:
    chance = Random(seed)
    files = LossyFiles()
    load = KeyedLoad(chance, legacy=seed % 4 == 3)
    log = open_log(files, PATH, CONFIG, verification_enabled=False)
    for _ in range(6):
        for _ in range(chance.randrange(10, 60)):
            load.step(log)
        if chance.random() < 0.7:
            load.end_all(log)
        log.update_high_watermark(log.log_end_offset)
        everything, committed = all_records(log), committed_records(log)
        end, stable, known = log.log_end_offset, log.last_stable_offset, producers(log.producers)
        load.now_ms += chance.choice((0, 30_000, 70_000))
        done = clean_log(
            log,
            now_ms=load.now_ms,
            map_bytes=24 * chance.choice((4, 8, 1000)),
            io_bytes=chance.choice((100, 3000, 1 << 20)),
        )
        kept, kept_committed = all_records(log), committed_records(log)
        assert [record.offset for record in kept] == sorted({record.offset for record in kept})
        assert set(kept) <= set(everything)
        assert set(kept_committed) <= set(committed)
        assert latest_values(kept_committed) == latest_values(committed)
        cleaned_to = 0 if done is None else done.end_offset
        assert since(kept_committed, cleaned_to) == since(committed, cleaned_to)
        assert (log.log_end_offset, log.last_stable_offset) == (end, stable)
        if chance.random() < 0.5:
            high_watermark = log.high_watermark
            clean_stop = chance.random() < 0.5
            if clean_stop:
                log.close()
            log = open_log(
                files,
                PATH,
                CONFIG,
                verification_enabled=False,
                now_ms=load.now_ms,
                had_clean_shutdown=clean_stop,
                cleaner_offset=log.cleaner_offset,
                recovery_point=log.recovery_point if clean_stop else chance.choice((0, log.recovery_point)),
            )
            log.update_high_watermark(high_watermark)
            assert all_records(log) == kept
            assert committed_records(log) == kept_committed
            assert producers(log.producers) == known
