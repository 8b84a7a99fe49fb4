"""What a share group sets for its partitions, its resets included: the `share.*` keys that a partition's leader reads.

`share.auto.offset.reset` is `latest`, `earliest`, or `by_duration:` and a duration as in ISO 8601 (``PnDTnHnMn.nS``),
whose parts may have signs and whose letters may be small, as for Java's ``Duration.parse``; it must not be negative.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from kpybroker.core.share.values import ShareSettings

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration"

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_SECONDS = (86_400, 3_600, 60, 1)


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
        age_ms = _duration_ms(duration)
        if age_ms >= 0:
            return OffsetReset(BY_DURATION, age_ms)
    raise ValueError(f"{text!r} is no strategy: {LATEST}, {EARLIEST}, or {BY_DURATION}:PnDTnHnMn.nS")


def _duration_ms(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        return -1
    sign, days, time, hours, minutes, seconds, fraction = match.groups()
    parts = (days, hours, minutes, seconds)
    if all(part is None for part in parts) or (time is not None and len(time) == 1):
        return -1
    total_ns = sum(int(part) * unit for part, unit in zip(parts, _SECONDS, strict=True) if part) * 1_000_000_000
    if fraction:
        below = int(fraction.ljust(9, "0"))
        total_ns += -below if seconds.startswith("-") else below
    return (-total_ns if sign == "-" else total_ns) // 1_000_000
