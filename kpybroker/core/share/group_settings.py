"""What a share group sets for its partitions, its resets included: the `share.*` keys that a partition's leader reads.

`share.auto.offset.reset` is `latest`, `earliest`, or `by_duration:` and a duration as in ISO 8601 (``PnDTnHnMn.nS``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kpybroker.config.values import duration_ms
from kpybroker.core.share.values import ShareSettings

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration"


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a group begins in a partition that it has no state of. `age_ms` is for `by_duration`: so long ago."""

    kind: str = LATEST
    age_ms: int = 0


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """The settings of one group; the defaults are Kafka 4.3.1's."""

    partition: ShareSettings = field(default_factory=ShareSettings)
    offset_reset: OffsetReset = field(default_factory=OffsetReset)
    reads_committed: bool = False
    """With `read_committed`, records of aborted transactions are archived by the broker."""


def parse_offset_reset(text: str) -> OffsetReset:
    """Raises ValueError for anything but a strategy, case as it is written here."""
    if text in (LATEST, EARLIEST):
        return OffsetReset(text)
    strategy, _, duration = text.partition(":")
    if strategy == BY_DURATION:
        return OffsetReset(BY_DURATION, duration_ms(duration))
    raise ValueError(f"{text!r} is no strategy: {LATEST}, {EARLIEST}, or {BY_DURATION}:PnDTnHnMn.nS")
