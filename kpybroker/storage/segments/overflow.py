"""Segments with offsets that their index cannot express: the loader splits them (KAFKA-6264)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.storage.disk.errors import StorageError
from kpybroker.wire.constants import INT32_MAX

if TYPE_CHECKING:
    from kpybroker.storage.segments.segment import LogSegment


class SegmentOverflowError(StorageError):
    """A segment holds an offset that its index cannot express."""

    def __init__(self, segment: LogSegment, offset: int) -> None:
        super().__init__(f"Offset {offset} cannot be expressed relative to the base of {segment}")
        self.segment = segment
        self.offset = offset


def check_no_overflow(segment: LogSegment, last_offset: int) -> None:
    """Raise SegmentOverflowError if an offset cannot be expressed relative to the base of its segment."""
    if not 0 <= last_offset - segment.base_offset <= INT32_MAX:
        raise SegmentOverflowError(segment, last_offset)
