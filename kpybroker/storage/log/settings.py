"""What a log is opened with: the broker's settings for every log, and what the run before recorded about one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kpybroker.core.log.producer_state import PRODUCER_ID_EXPIRATION_MS_DEFAULT
from kpybroker.metrics.histogram import Histogram


class Deletes(Protocol):
    """A log, as far as its files to be removed go."""

    log_dir: str
    is_closed: bool

    @property
    def has_deletions(self) -> bool:
        """Whether there are any left."""

    def deletions_due(self, now_ms: int) -> list[str]:
        """Paths whose delay is over."""
        ...


class LogNotices:
    """What logs say of themselves, so that no one has to look at all of them again and again.

    `deleting`: the logs that have files to be removed later. `has_compacted`: whether one was ever compacted.
    """

    __slots__ = ("deleting", "has_compacted")

    def __init__(self) -> None:
        self.deleting: dict[Deletes, None] = {}
        self.has_compacted = False


class LogSettings(NamedTuple):
    """Settings that hold for all logs of a broker.

    `check_every_record` validates every record as Kafka does, even where the response does not depend on it.
    `random_below(n)` draws the jitter of a segment's roll. `flush_times`: where flushes are counted, in microseconds.
    """

    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT
    verification_enabled: bool = True
    check_every_record: bool = False
    random_below: Callable[[int], int] = random.randrange
    flush_times: Histogram | None = None
    notices: LogNotices | None = None


DEFAULT_SETTINGS = LogSettings()


class LogCheckpoints(NamedTuple):
    """What the checkpoints of a log directory say about one log. `cleaner_offset` is None if it was never cleaned."""

    log_start_offset: int = 0
    recovery_point: int = 0
    cleaner_offset: int | None = None
    had_clean_shutdown: bool = True


NO_CHECKPOINTS = LogCheckpoints()
