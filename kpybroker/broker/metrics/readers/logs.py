"""Log directories, flushes, and the cleaner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.reading import Reading, Value, single
from kpybroker.metrics.tables import log as g
from kpybroker.storage.disk.errors import LogDirError

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured


class LogsReader:
    """`kafka.log:type=LogManager`, `LogFlushStats`, `LogCleaner`, `LogCleanerManager`."""

    families: Final = (*g.MANAGER, *g.DISK, *g.FLUSHES, *g.CLEANER, *g.CLEANER_MANAGER)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now; zeros of a cleaner that never had anything to do."""
        logs, cleaner = self._broker.logs, self._broker.cleaner
        directories = logs.dirs.configured
        offline = [int(not logs.dirs.is_live(directory)) for directory in directories]
        rows = [(directory,) for directory in directories]
        uncleanable: Counter[str] = Counter()
        uncleanable_bytes: Counter[str] = Counter()
        for log in () if cleaner is None else cleaner.uncleanable:
            uncleanable[log.log_dir] += 1
            uncleanable_bytes[log.log_dir] += log.size
        stats = None if cleaner is None else cleaner.stats
        since_ms = 0 if stats is None else (self._broker.clock.monotonic() - stats.looked_at) * 1000
        return [
            single((g.OFFLINE_DIRECTORIES, sum(offline))),
            Reading(rows, [(g.DIRECTORY_OFFLINE, offline), *self._volumes(directories)]),
            single((g.FLUSH_TIME, logs.flush_times)),
            single(
                (g.BUFFER_UTILIZATION, 0 if stats is None else stats.buffer_utilization_percent),
                (g.RECOPY, 0 if stats is None else stats.recopy_percent),
                (g.MAX_CLEAN_TIME, 0 if stats is None else stats.clean_time_s),
            ),
            single(
                (g.MAX_DIRTY, 0 if stats is None else stats.max_dirty_percent),
                (g.SINCE_LAST_RUN, int(since_ms)),
            ),
            Reading(
                rows,
                [
                    (g.UNCLEANABLE_PARTITIONS, [uncleanable[directory] for directory in directories]),
                    (g.UNCLEANABLE_BYTES, [uncleanable_bytes[directory] for directory in directories]),
                ],
            ),
        ]

    def _volumes(self, directories: Sequence[str]) -> list[tuple[Family, list[Value]]]:
        """Nothing of a directory that is offline, or whose volume does not say."""
        total: list[Value] = []
        usable: list[Value] = []
        dirs = self._broker.logs.dirs
        for directory in directories:
            try:
                usage = dirs.disk_usage(directory) if dirs.is_live(directory) else None
            except LogDirError:
                usage = None
            total.append(None if usage is None else usage.total_bytes)
            usable.append(None if usage is None else usage.usable_bytes)
        return [(g.TOTAL_BYTES, total), (g.USABLE_BYTES, usable)]
