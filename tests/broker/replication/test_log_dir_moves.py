"""A replica that is moved to another directory of its broker has all that it had before."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers.cluster import alter_replica_log_dirs
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.hosted import until

NOW_MS = 1_000


@pytest.mark.parametrize("deleted_below", [0, 3, 10, 14, 20])
async def test_a_log_that_starts_within_a_batch_is_moved(tmp_path: Path, deleted_below: int) -> None:
    """DeleteRecords may move the log start there; the copy begins with that batch."""
    dirs = {str(tmp_path / name) for name in ("one", "two")}
    async with configured_broker(tmp_path, "a", log_dirs=",".join(sorted(dirs))) as broker:
        partition = broker.replicas.hosted("a", 0)
        for _ in range(2):
            batch = bytearray(build_batch([(None, b"x", NOW_MS) for _ in range(10)]))
            partition.append(ProducedBatches(batch, NOW_MS), 1)
        partition.delete_records(deleted_below)
        before = partition.online_log()
        (target,) = dirs - {before.log_dir}
        topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="a", partitions=[0])
        directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=target, topics=[topic])
        response = await call(broker, alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=[directory]), 2)
        assert response.results[0].partitions[0].error_code == 0
        await until(lambda: partition.online_log() is not before)
        moved = partition.online_log()
        assert moved.log_dir == target
        assert (moved.log_start_offset, moved.log_end_offset, moved.high_watermark) == (deleted_below, 20, 20)
        found = moved.read(deleted_below, 1 << 20, max_offset=20)
        if found.slice is not None:
            batches = [header.base_offset for _, header in iter_batches(found.slice.read())]
            found.slice.release()
            assert batches == [start for start in (0, 10) if start + 10 > deleted_below]
        assert (found.slice is None) == (deleted_below == 20)
