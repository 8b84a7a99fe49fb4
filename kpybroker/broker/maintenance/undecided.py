"""Which logs have a segment that retention by time cannot decide by headers and file alone (`time_retention` reads it).

Nearly always none has: what reads records is imported only then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kpybroker.storage.log.maintenance import undecided_segment
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.storage.log.log import Log
    from kpybroker.storage.segments.segment import LogSegment

logger = logging.getLogger("kafka.log.LogManager")


def undecided(log: Log, now_ms: int) -> LogSegment | None:
    """The log's first such segment; None while it is cleaned or closed, too."""
    if log.is_closed or log.cleaning is not None:
        return None
    try:
        return undecided_segment(log, now_ms)
    except KafkaError as error:  # damaged data
        logger.error("Cannot read the timestamps of log %s: %s", log, error)
        return None
