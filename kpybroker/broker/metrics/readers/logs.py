"""Log directories, flushes, and the cleaner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import log as g

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured


class LogsReader:
    """`kafka.log:type=LogManager`, `LogFlushStats`, `LogCleaner`, `LogCleanerManager`."""

    families: Final = (*g.MANAGER, *g.FLUSHES, *g.CLEANER, *g.CLEANER_MANAGER)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now; zeros of a cleaner that never had anything to do."""
        logs, cleaner = self._broker.logs, self._broker.cleaner
        directories = logs.dirs.configured
        offline = [int(not logs.dirs.is_live(directory)) for directory in directories]
        rows = [(directory,) for directory in directories]
        uncleanable: Counter[str] = Counter()
        if cleaner is not None:
            uncleanable.update(log.log_dir for log in cleaner.uncleanable)
        stats = None if cleaner is None else cleaner.stats
        since_ms = 0 if stats is None else (self._broker.clock.monotonic() - stats.looked_at) * 1000
        return [
            single((g.OFFLINE_DIRECTORIES, sum(offline))),
            Reading(rows, [(g.DIRECTORY_OFFLINE, offline)]),
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
            Reading(rows, [(g.UNCLEANABLE_PARTITIONS, [uncleanable[directory] for directory in directories])]),
        ]
