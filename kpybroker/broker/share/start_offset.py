"""Where a share group begins in a partition that it has no state of (`share.auto.offset.reset`)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import in_thread, next_slice
from kpybroker.core.share.group_settings import EARLIEST, LATEST, OffsetReset
from kpybroker.storage.disk.errors import failing_takes_offline
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.loop.slow_work import ClientsWork
    from kpybroker.broker.replication.partition import Partition


async def start_offset(partition: Partition, reset: OffsetReset, now_ms: int, work: ClientsWork) -> int:
    """The offset. Raises KafkaError, also if this broker does not lead the partition, and LogDirError.

    By duration it is that of the first record that is young enough; OFFSET_NOT_AVAILABLE if there is none, as in Kafka.
    """
    log = partition.leader_log()
    if reset.kind == LATEST:
        if partition.lags_behind_epoch_start:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return log.high_watermark
    if reset.kind == EARLIEST:
        return log.log_start_offset
    with failing_takes_offline(log.log_dir), closing(log.search_timestamp(now_ms - reset.age_ms)) as search:
        for step in search:
            if step is not None:
                found = await in_thread(step.run, work) if step.is_long else step.run()
                if found is not None:
                    return found.offset
            await next_slice()
    raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
