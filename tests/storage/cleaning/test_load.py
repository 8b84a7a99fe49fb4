"""Compaction of random loads: the compacted log gives a reader the same table as before."""

from __future__ import annotations

from contextlib import closing
from random import Random

import pytest

from kpybroker.core.log.producer_state import ProducerState
from kpybroker.storage.log.log import Log
from kpybroker.wire.records.record import iter_records
from tests.support.storage.batches import log_config, open_log, read_all
from tests.support.storage.cleaning import clean_log
from tests.support.storage.keyed_load import KeyedLoad, Seen, all_records, committed_records, latest_values
from tests.support.storage.lossy_files import LossyFiles

PATH = "/logs/t-0"
CONFIG = log_config(
    segment_bytes=10_000,
    segment_index_bytes=2_000,
    index_interval_bytes=500,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=60_000,
)


def producers(state: ProducerState) -> dict[int, tuple[object, ...]]:
    """What must survive of each producer: epoch, last sequence, and the transaction in progress."""
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


def check_lookups(log: Log, kept: list[Seen], chance: Random) -> None:
    """By offset, in gaps too, and by time: as by a walk over everything (of the first segment that may have it)."""
    for start in [0, *(chance.randrange(log.log_end_offset) for _ in range(5))]:
        found = read_all(log, start, max_bytes=chance.choice((1, 3000, 1 << 20)))
        assert found == [(record.offset, record.value) for record in since(kept, start)]
    for record in chance.sample(kept, min(len(kept), 5)):
        timestamp = record.timestamp + chance.choice((-1, 0, 1))
        segment = next((one for one in log.segments() if one.largest_timestamp >= timestamp), None)
        walk = () if segment is None else segment.records.batches()
        stored = (one for _, header, batch in walk for one in iter_records(batch, header))  # markers too
        expected = next(((one.timestamp, one.offset) for one in stored if one.timestamp >= timestamp), None)
        with closing(log.search_timestamp(timestamp)) as search:
            hits = (batch.run() for batch in search if batch is not None)
            hit = next((hit for hit in hits if hit is not None), None)
        assert (hit and (hit.timestamp, hit.offset)) == expected


@pytest.mark.parametrize("seed", range(16))
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
        check_lookups(log, kept, chance)
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
            check_lookups(log, kept, chance)
            assert committed_records(log) == kept_committed
            assert producers(log.producers) == known
